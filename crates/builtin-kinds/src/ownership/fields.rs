//! Field sets of objects: the set of an object, the differences of two, merging and pruning. Lists are split into items
//! according to the schema (`x-kubernetes-list-type`).
//!
//! Source: structured-merge-diff `typed`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::set::{Fields, Path};
use crate::schema::{Schema, Shape};

/// Differences between two objects.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Added and changed fields.
    pub(super) written: Fields,
    pub(super) removed: Fields,
}

/// Formats a path as in messages: `.spec.containers[name="c"].image`.
pub(super) fn shown(path: &Path) -> String {
    path.iter()
        .map(|element| match element.split_once(':') {
            Some(("f", name)) => format!(".{name}"),
            Some(("k", keys)) => shown_keys(keys),
            Some(("v", value)) => format!("[={value}]"),
            Some(_) | None => element.clone(),
        })
        .collect()
}

/// Formats `{"name":"c"}` as `[name="c"]`.
pub(super) fn shown_keys(keys: &str) -> String {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let keys: Vec<String> = keys
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("[{}]", keys.join(","))
}

/// Parts of a value that have managers.
pub(super) enum Parts<'v> {
    /// None: the value is atomic.
    Leaf,
    /// Entries by name.
    Entries(&'v Map<String, Value>),
    /// Items by path element.
    Items(Vec<(String, &'v Value)>),
}

/// Identity of a part.
#[derive(Clone, Copy)]
enum Name<'a> {
    /// Name of an entry.
    Entry(&'a str),
    /// Path element of an item.
    Item(&'a str),
}

impl<'v> Parts<'v> {
    fn named(&self) -> Vec<(Name<'_>, &'v Value)> {
        match self {
            Self::Leaf => Vec::new(),
            Self::Entries(entries) => entries
                .iter()
                .map(|(name, value)| (Name::Entry(name), value))
                .collect(),
            Self::Items(items) => items
                .iter()
                .map(|(element, value)| (Name::Item(element), *value))
                .collect(),
        }
    }

    /// Returns an index of the parts.
    fn by_name(&self) -> ByName<'_, 'v> {
        match self {
            Self::Leaf => ByName::Nothing,
            Self::Entries(entries) => ByName::Entries(entries),
            Self::Items(items) => ByName::Items(first_by_element(items)),
        }
    }
}

/// Index of parts.
enum ByName<'i, 'v> {
    Nothing,
    Entries(&'v Map<String, Value>),
    Items(BTreeMap<&'i str, &'v Value>),
}

impl<'v> ByName<'_, 'v> {
    fn get(&self, name: Name<'_>) -> Option<&'v Value> {
        match (self, name) {
            (Self::Entries(entries), Name::Entry(name)) => entries.get(name),
            (Self::Items(items), Name::Item(element)) => items.get(element).copied(),
            (Self::Nothing | Self::Entries(_) | Self::Items(_), _) => None,
        }
    }
}

impl Name<'_> {
    fn element(self) -> String {
        match self {
            Self::Entry(name) => {
                let mut element = String::with_capacity(2 + name.len());
                element.push_str("f:");
                element.push_str(name);
                element
            }
            Self::Item(element) => element.to_owned(),
        }
    }

    fn schema(self, above: Option<&Schema>) -> Option<&Schema> {
        match self {
            Self::Entry(name) => above?.field(name),
            Self::Item(_) => above?.items(),
        }
    }
}

/// Splits a value into parts.
pub(super) fn parts<'v>(schema: Option<&Schema>, value: &'v Value) -> Parts<'v> {
    let atomic = schema.is_some_and(Schema::is_atomic);
    match value {
        Value::Object(entries) if !atomic => Parts::Entries(entries),
        Value::Array(items) => match schema.filter(|_| !atomic).and_then(Schema::list_type) {
            Some("map") => Parts::Items(
                items
                    .iter()
                    .map(|item| (key_element(schema, item), item))
                    .collect(),
            ),
            Some("set") => Parts::Items(items.iter().map(|item| (format!("v:{item}"), item)).collect()),
            Some(_) | None => Parts::Leaf,
        },
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Parts::Leaf,
    }
}

/// Returns the paths of the parts of a value that can only be replaced as a whole: `.spec.selector`.
pub(super) fn atomic(schema: Option<&Schema>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_atomic(schema, value, "", &mut found);
    found
}

fn collect_atomic(schema: Option<&Schema>, value: &Value, path: &str, found: &mut Vec<String>) {
    if !path.is_empty() && matches!(value, Value::Object(_) | Value::Array(_)) {
        let whole = matches!(parts(schema, value), Parts::Leaf);
        // What has no schema has no parts that are known to be atomic.
        if whole && schema.is_some_and(|schema| schema.shape() != Shape::Anything) {
            found.push(path.to_owned());
        }
    }
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let below = schema.and_then(|schema| schema.field(name));
                if below.is_some() {
                    collect_atomic(below, value, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            let below = schema.and_then(Schema::items);
            for (nth, item) in items.iter().enumerate() {
                collect_atomic(below, item, &format!("{path}[{nth}]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the path element of an item by its keys, `k:{"name":"c"}`; an absent key has its default.
fn key_element(schema: Option<&Schema>, item: &Value) -> String {
    let mut keys = Map::new();
    let of_item = schema.and_then(Schema::items);
    for name in schema.map(Schema::list_map_keys).unwrap_or_default() {
        let default = || {
            of_item
                .and_then(|schema| schema.field(name))
                .and_then(Schema::default_value)
        };
        if let Some(value) = item.get(name).or_else(default) {
            keys.insert(name.clone(), value.clone());
        }
    }
    keys.sort_keys();
    format!("k:{}", Value::Object(keys))
}

/// Returns the field set of an object.
pub(super) fn of(schema: Option<&Schema>, value: &Value) -> Fields {
    let mut fields = Fields::default();
    let parts = parts(schema, value);
    if let Parts::Leaf = parts {
        return Fields::root();
    }
    // Entries of a map are in the set themselves even if empty; fields of a struct always.
    let is_struct = schema.is_some_and(|schema| schema.shape() == Shape::Object);
    for (name, value) in parts.named() {
        let below = name.schema(schema);
        let of_part = match name {
            Name::Entry(_) => {
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let mut of_part = of(below, value);
                if empty || !(is_struct && below.is_some()) {
                    of_part.insert_root();
                }
                of_part
            }
            Name::Item(element) if element.starts_with("v:") => Fields::root(),
            Name::Item(_) => {
                let mut of_part = of(below, value);
                of_part.insert_root();
                of_part
            }
        };
        fields.insert(name.element(), of_part);
    }
    fields
}

/// Returns the differences of `new` from `old`.
pub(super) fn compare(schema: Option<&Schema>, old: &Value, new: &Value) -> Changes {
    differ(schema, Some(old), Some(new))
}

fn differ(schema: Option<&Schema>, old: Option<&Value>, new: Option<&Value>) -> Changes {
    let mut changes = Changes::default();
    match (old, new) {
        (Some(old), Some(new)) if old == new => return changes,
        (None, Some(_)) => changes.written.insert_root(),
        (Some(_), None) => changes.removed.insert_root(),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let of_old = old.map_or(Parts::Leaf, |old| parts(schema, old));
    let of_new = new.map_or(Parts::Leaf, |new| parts(schema, new));
    if let (Parts::Leaf, Parts::Leaf, Some(_), Some(_)) = (&of_old, &of_new, old, new) {
        changes.written.insert_root();
    }
    let mut note = |name: Name<'_>, old: Option<&Value>, new: Option<&Value>| {
        let below = differ(name.schema(schema), old, new);
        if !below.written.is_empty() {
            changes.written.insert(name.element(), below.written);
        }
        if !below.removed.is_empty() {
            changes.removed.insert(name.element(), below.removed);
        }
    };
    let (old_by_name, new_by_name) = (of_old.by_name(), of_new.by_name());
    for (name, old) in of_old.named() {
        if new_by_name.get(name).is_none() {
            note(name, Some(old), None);
        }
    }
    for (name, new) in of_new.named() {
        note(name, old_by_name.get(name), Some(new));
    }
    changes
}

/// Merges `config` into `live`.
pub(super) fn merge(schema: Option<&Schema>, live: Option<&Value>, config: &Value) -> Value {
    let Some(live) = live else { return config.clone() };
    match (parts(schema, live), parts(schema, config)) {
        (Parts::Entries(live), Parts::Entries(config)) => {
            let mut merged = live.clone();
            for (name, value) in config {
                let below = schema.and_then(|schema| schema.field(name));
                let value = merge(below, live.get(name), value);
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Parts::Items(live), Parts::Items(config)) => {
            let below = schema.and_then(Schema::items);
            Value::Array(merge_items(below, &live, &config))
        }
        (_, _) => config.clone(),
    }
}

/// Merges items in the order of `config`; an item only in `live` precedes the item that follows it there.
fn merge_items(
    schema: Option<&Schema>,
    live: &[(String, &Value)],
    config: &[(String, &Value)],
) -> Vec<Value> {
    let mut merged = Vec::new();
    let mut rest = live.iter().peekable();
    let configured: BTreeSet<&str> = config.iter().map(|(element, _)| element.as_str()).collect();
    let is_shared = |element: &String| configured.contains(element.as_str());
    let by_element = first_by_element(live);
    for (element, value) in config {
        while let Some((_, own)) = rest.next_if(|(element, _)| !is_shared(element)) {
            merged.push(Value::clone(own));
        }
        let there = by_element.get(element.as_str()).copied();
        if rest.peek().is_some_and(|(next, _)| next == element) {
            rest.next();
        }
        merged.push(merge(schema, there, value));
    }
    for (element, own) in rest {
        if !is_shared(element) {
            merged.push(Value::clone(own));
        }
    }
    merged
}

/// Returns the items by their elements; the first, if two have the same.
fn first_by_element<'i, 'v>(items: &'i [(String, &'v Value)]) -> BTreeMap<&'i str, &'v Value> {
    let backwards = items.iter().rev();
    backwards
        .map(|(element, value)| (element.as_str(), *value))
        .collect()
}

/// Removes fields from an object, with everything below them.
pub(super) fn remove(schema: Option<&Schema>, object: &mut Value, fields: &Fields) {
    if fields.is_empty() {
        return;
    }
    let elements: Vec<String> = match parts(schema, object) {
        Parts::Items(items) => items.into_iter().map(|(element, _)| element).collect(),
        Parts::Leaf | Parts::Entries(_) => Vec::new(),
    };
    match object {
        Value::Object(entries) => entries.retain(|name, value| {
            let name = Name::Entry(name);
            keeps(fields, &name.element(), name.schema(schema), value)
        }),
        Value::Array(items) => {
            let mut elements = elements.iter();
            items.retain_mut(|item| {
                let element = elements.next();
                element.is_none_or(|element| keeps(fields, element, Name::Item(element).schema(schema), item))
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes fields below a part. Returns whether the part itself is kept.
fn keeps(fields: &Fields, element: &str, schema: Option<&Schema>, value: &mut Value) -> bool {
    let Some(gone) = fields.below(element) else {
        return true;
    };
    if !gone.has_root() {
        remove(schema, value, gone);
    }
    !gone.has_root()
}
