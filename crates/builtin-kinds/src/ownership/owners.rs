//! Entries of `metadata.managedFields`.
//!
//! Source: apimachinery `meta/v1/types.go` (`ManagedFieldsEntry`) and `util/managedfields/internal/{managedfields,capmanagers}.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::go_text;
use apimachinery::object::{field, field_mut};
use serde_json::{Map, Value};

use super::set::Fields;

/// Field of the metadata.
pub(super) const FIELD: &str = "managedFields";

/// Number of entries of updates; beyond it the oldest are united.
const MAX_UPDATERS: usize = 10;

/// Manager of the united entries.
const ANCIENT_CHANGES: &str = "ancient-changes";

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

/// What tells entries apart, in the order of conflicts. With `Apply` the version is not part of it.
type Identity<'o> = (&'o str, Operation, &'o str, &'o str);

impl Owner {
    pub(super) fn identity(&self) -> Identity<'_> {
        let version = match self.operation {
            Operation::Apply => "",
            Operation::Update => &self.api_version,
        };
        (&self.manager, self.operation, version, &self.subresource)
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

/// Decodes the entries of an object; none if they are invalid.
pub(super) fn read(object: &Value) -> Vec<Owner> {
    decode(field(field(object, "metadata"), FIELD)).unwrap_or_default()
}

/// Decodes entries. `None`: they are no list, or one of them is invalid.
pub(super) fn decode(entries: &Value) -> Option<Vec<Owner>> {
    let entries = entries.as_array()?;
    let mut owners: Vec<Owner> = entries.iter().map(decode_entry).collect::<Option<_>>()?;
    // Of two entries with one identity the first is dropped.
    let mut later = BTreeSet::new();
    let lasting: Vec<bool> = owners
        .iter()
        .rev()
        .map(|owner| later.insert(owner.identity()))
        .collect();
    if lasting.contains(&false) {
        let mut lasting = lasting.into_iter().rev();
        owners.retain(|_| lasting.next().unwrap_or(true));
    }
    Some(owners)
}

fn decode_entry(entry: &Value) -> Option<Owner> {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let operation = match entry["operation"].as_str()? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || entry["fieldsType"] != "FieldsV1" {
        return None;
    }
    let mut fields = Fields::decode(&entry["fieldsV1"]).ok()?;
    // Nobody owns the whole object.
    fields.remove_root();
    Some(Owner {
        manager: text("manager"),
        operation,
        api_version,
        subresource: text("subresource"),
        time: entry["time"].as_str().map(str::to_owned),
        fields,
    })
}

/// Unites the oldest entries of updates, by version, until there are few enough.
pub(super) fn cap(owners: &mut Vec<Owner>) {
    let is_update = |owner: &Owner| owner.operation == Operation::Update;
    let mut count = owners.iter().filter(|owner| is_update(owner)).count();
    if count <= MAX_UPDATERS {
        return;
    }
    owners.sort_by(|a, b| {
        let rank = |owner: &Owner| (!is_update(owner), owner.time.clone());
        rank(a)
            .cmp(&rank(b))
            .then_with(|| a.identity().cmp(&b.identity()))
    });
    let (updates, mut rest): (Vec<Owner>, Vec<Owner>) =
        std::mem::take(owners).into_iter().partition(is_update);
    // Of each version the first one stays as it is until a second one is united with it. A client can write many versions.
    let mut kept: Vec<Owner> = Vec::with_capacity(updates.len());
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    for owner in updates {
        let next = kept.len();
        let place = *first_of.entry(owner.api_version.clone()).or_insert(next);
        match kept.get_mut(place) {
            Some(first) if count > MAX_UPDATERS => {
                ANCIENT_CHANGES.clone_into(&mut first.manager);
                first.subresource.clear();
                first.time = owner.time;
                first.fields.add(owner.fields);
                count -= 1;
            }
            Some(_) | None => kept.push(owner),
        }
    }
    kept.append(&mut rest);
    *owners = kept;
}

/// Writes entries into an object, the oldest first, without empty ones.
pub(super) fn write(object: &mut Value, mut owners: Vec<Owner>) {
    owners.retain(|owner| !owner.fields.is_empty());
    owners.sort_by(|a, b| {
        fn rank(owner: &Owner) -> (Operation, Option<&str>, &str, &str, &str) {
            let Owner {
                manager,
                operation,
                api_version,
                subresource,
                time,
                ..
            } = owner;
            (*operation, time.as_deref(), manager, api_version, subresource)
        }
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
    if !entries.is_empty()
        && let Some(metadata) = field_mut(object, "metadata")
    {
        metadata[FIELD] = entries.into();
    }
}
