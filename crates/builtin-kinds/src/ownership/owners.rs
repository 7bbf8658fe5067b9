//! Entries of `metadata.managedFields`.
//!
//! Source: apimachinery `meta/v1/types.go` (`ManagedFieldsEntry`) and `util/managedfields/internal/managedfields.go`.

use std::collections::BTreeSet;

use apimachinery::go_text;
use serde_json::{Map, Value};

use super::set::Fields;

/// Field of the metadata.
pub(super) const FIELD: &str = "managedFields";

/// Operation of an entry. `Apply` sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// An entry: a manager and its fields.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) manager: String,
    pub(super) operation: Operation,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) time: Option<String>,
    pub(super) fields: Fields,
}

impl Owner {
    /// Returns the identity of an entry. With `Apply` the version is not part of it.
    fn identity(&self) -> (String, Operation, String, String) {
        let version = match self.operation {
            Operation::Apply => String::new(),
            Operation::Update => self.api_version.clone(),
        };
        (
            self.manager.clone(),
            self.operation,
            self.subresource.clone(),
            version,
        )
    }

    /// Returns the name of the manager in a conflict message.
    pub(super) fn described(&self) -> String {
        let manager = go_text::quote(&self.manager);
        let with = if self.subresource.is_empty() {
            manager
        } else {
            format!("{manager} with subresource {}", go_text::quote(&self.subresource))
        };
        match self.operation {
            Operation::Apply => with,
            Operation::Update => format!("{with} using {}", self.api_version),
        }
    }
}

/// Decodes the entries of an object.
pub(super) fn read(object: &Value) -> Vec<Owner> {
    let metadata = object.get("metadata");
    let entries = metadata
        .and_then(|metadata| metadata.get(FIELD))
        .and_then(Value::as_array);
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = entries.into_iter().flatten();
    let read = entries.map(|entry| Owner {
        manager: text(entry, "manager"),
        operation: match entry["operation"].as_str() {
            Some("Apply") => Operation::Apply,
            Some(_) | None => Operation::Update,
        },
        api_version: text(entry, "apiVersion"),
        subresource: text(entry, "subresource"),
        time: entry["time"].as_str().map(str::to_owned),
        fields: Fields::decode(&entry["fieldsV1"]),
    });
    // Of two entries with one identity the first is dropped, as in kube-apiserver.
    let mut later = BTreeSet::new();
    let mut owners: Vec<Owner> = read
        .rev()
        .filter(|owner| later.insert(owner.identity()))
        .collect();
    owners.reverse();
    owners
}

/// Writes entries into an object, the oldest first, without empty ones.
pub(super) fn write(object: &mut Value, mut owners: Vec<Owner>) {
    owners.retain(|owner| !owner.fields.is_empty());
    owners.sort_by(|a, b| {
        let rank = |owner: &Owner| {
            (
                owner.operation,
                owner.time.clone(),
                owner.manager.clone(),
                owner.subresource.clone(),
            )
        };
        rank(a).cmp(&rank(b))
    });
    let entries: Vec<Value> = owners
        .into_iter()
        .map(|owner| {
            let operation = match owner.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            };
            let mut entry = Map::with_capacity(7);
            let mut put = |field: &str, value| drop(entry.insert(field.to_owned(), value));
            if !owner.manager.is_empty() {
                put("manager", owner.manager.into());
            }
            put("operation", operation.into());
            put("apiVersion", owner.api_version.into());
            if let Some(time) = owner.time {
                put("time", time.into());
            }
            put("fieldsType", "FieldsV1".into());
            put("fieldsV1", owner.fields.encode());
            if !owner.subresource.is_empty() {
                put("subresource", owner.subresource.into());
            }
            Value::Object(entry)
        })
        .collect();
    super::without(object);
    if !entries.is_empty() {
        object["metadata"][FIELD] = entries.into();
    }
}
