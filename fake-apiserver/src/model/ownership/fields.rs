//! Sets of fields, and what is done by them: which an object has, which two objects differ in, and how objects are merged
//! and pruned. Lists are taken apart where the schema says how (`x-kubernetes-list-type`).
//!
//! A path is written as in FieldsV1: `f:name`, `k:{"name":"c"}` for an item by its keys, `v:"x"` for an item by itself.
//!
//! Source: structured-merge-diff `fieldpath` and `typed`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::model::schema::{Schema, Shape};

/// From the top of the object.
pub(super) type Path = Vec<String>;

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeSet<Path>);

/// What two objects differ in.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// What is new or has another value.
    pub(super) written: Fields,
    pub(super) removed: Fields,
}

impl FromIterator<Path> for Fields {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        Self(paths.into_iter().collect())
    }
}

impl Fields {
    /// From FieldsV1.
    pub(super) fn read(written: &Value) -> Self {
        let mut fields = Self::default();
        fields.read_below(written, &mut Vec::new());
        fields
    }

    fn read_below(&mut self, written: &Value, path: &mut Path) {
        let below = written.as_object().cloned().unwrap_or_default();
        if !path.is_empty() && (below.is_empty() || below.contains_key(".")) {
            self.0.insert(path.clone());
        }
        for (element, below) in below.iter().filter(|(element, _)| *element != ".") {
            path.push(element.clone());
            self.read_below(below, path);
            path.pop();
        }
    }

    /// As FieldsV1.
    pub(super) fn written(&self) -> Value {
        let paths: Vec<&[String]> = self.0.iter().map(Vec::as_slice).collect();
        written(&paths)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }

    pub(super) fn add(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(super) fn keep(&mut self, counts: impl FnMut(&Path) -> bool) {
        self.0.retain(counts);
    }

    pub(super) fn take_away(&mut self, others: &Self) {
        self.0.retain(|path| !others.0.contains(path));
    }

    pub(super) fn common(&self, others: &Self) -> Self {
        self.0.intersection(&others.0).cloned().collect()
    }

    /// Is the path in it, or anything below it?
    pub(super) fn has_below(&self, path: &Path) -> bool {
        self.0
            .range(path.clone()..)
            .next()
            .is_some_and(|next| next.starts_with(path))
    }
}

/// Sorted paths as a tree.
fn written(paths: &[&[String]]) -> Value {
    let mut tree = Map::new();
    let mut rest = paths;
    while let Some(first) = rest.first() {
        let Some(element) = first.first() else {
            rest = &rest[1..];
            continue;
        };
        let count = rest
            .iter()
            .take_while(|path| path.first() == Some(element))
            .count();
        let (of_element, others) = rest.split_at(count);
        let below: Vec<&[String]> = of_element
            .iter()
            .map(|path| &path[1..])
            .filter(|path| !path.is_empty())
            .collect();
        let mut value = written(&below);
        if let (true, false, Some(fields)) = (below.len() < count, below.is_empty(), value.as_object_mut()) {
            fields.shift_insert(0, ".".to_owned(), Value::Object(Map::new()));
        }
        tree.insert(element.clone(), value);
        rest = others;
    }
    Value::Object(tree)
}

/// A path as messages show it: `.spec.containers[name="c"].image`.
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

/// `{"name":"c"}` as `[name="c"]`.
pub(super) fn shown_keys(keys: &str) -> String {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let keys: Vec<String> = keys
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("[{}]", keys.join(","))
}

/// What a place holds, as owners see it.
pub(super) enum Parts<'v> {
    /// It is owned as a whole.
    Leaf,
    /// By name, and whether the schema names it.
    Entries(&'v Map<String, Value>),
    /// By element.
    Items(Vec<(String, &'v Value)>),
}

/// Takes a value apart.
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

/// `k:{"name":"c"}`; a key that is not said has its default.
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

fn below<'s>(schema: Option<&'s Schema>, element: &str) -> Option<&'s Schema> {
    match element.split_once(':') {
        Some(("f", name)) => schema.and_then(|schema| schema.field(name)),
        Some(_) | None => schema.and_then(Schema::items),
    }
}

/// The fields an object says.
pub(super) fn of(schema: Option<&Schema>, object: &Value) -> Fields {
    let mut fields = Fields::default();
    collect(schema, object, &mut Vec::new(), &mut fields);
    fields
}

fn collect(schema: Option<&Schema>, value: &Value, path: &mut Path, fields: &mut Fields) {
    match parts(schema, value) {
        Parts::Leaf => drop(fields.0.insert(path.clone())),
        Parts::Entries(entries) => {
            // Only the entries of a map are there by themselves; a struct's fields always are.
            let is_struct = schema.is_some_and(|schema| schema.shape() == Shape::Object);
            for (name, value) in entries {
                path.push(["f:", name].concat());
                let below = schema.and_then(|schema| schema.field(name));
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if empty || !(is_struct && below.is_some()) {
                    fields.0.insert(path.clone());
                }
                collect(below, value, path, fields);
                path.pop();
            }
        }
        Parts::Items(items) => {
            let below = schema.and_then(Schema::items);
            if items.is_empty() {
                fields.0.insert(path.clone());
            }
            for (element, item) in items {
                let by_itself = element.starts_with("v:");
                path.push(element);
                fields.0.insert(path.clone());
                if !by_itself {
                    collect(below, item, path, fields);
                }
                path.pop();
            }
        }
    }
}

/// What is different in `new`.
pub(super) fn compare(schema: Option<&Schema>, old: &Value, new: &Value) -> Changes {
    let mut changes = Changes::default();
    differ(schema, Some(old), Some(new), &mut Vec::new(), &mut changes);
    changes
}

fn differ<'v>(
    schema: Option<&Schema>,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    path: &mut Path,
    changes: &mut Changes,
) {
    match (old, new) {
        (None, None) => return,
        (None, Some(_)) if !path.is_empty() => drop(changes.written.0.insert(path.clone())),
        (Some(_), None) if !path.is_empty() => drop(changes.removed.0.insert(path.clone())),
        (Some(old), Some(new)) if old == new => return,
        (_, _) => {}
    }
    let of_old = named_parts(schema, old);
    let of_new = named_parts(schema, new);
    if let (None, None) = (&of_old, &of_new) {
        if old.is_some() && new.is_some() {
            changes.written.0.insert(path.clone());
        }
        return;
    }
    let (of_old, of_new) = (of_old.unwrap_or_default(), of_new.unwrap_or_default());
    let find = |parts: &[(String, &'v Value)], name: &String| {
        let found = parts.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| *value)
    };
    let gone = of_old.iter().filter(|(name, _)| find(&of_new, name).is_none());
    let gone = gone.map(|(name, old)| (name, Some(*old), None));
    let there = of_new
        .iter()
        .map(|(name, new)| (name, find(&of_old, name), Some(*new)));
    for (name, old, new) in gone.chain(there) {
        path.push(name.clone());
        differ(below(schema, name), old, new, path, changes);
        path.pop();
    }
}

/// The parts by element; `None` for what is owned as a whole. Nothing at all has no parts.
fn named_parts<'v>(schema: Option<&Schema>, value: Option<&'v Value>) -> Option<Vec<(String, &'v Value)>> {
    match parts(schema, value?) {
        Parts::Leaf => None,
        Parts::Entries(entries) => Some(
            entries
                .iter()
                .map(|(name, value)| (["f:", name].concat(), value))
                .collect(),
        ),
        Parts::Items(items) => Some(items),
    }
}

/// `live` with what `config` says.
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

/// In the order of `config`; what only `live` has keeps its place before what follows it there.
fn merge_items(
    schema: Option<&Schema>,
    live: &[(String, &Value)],
    config: &[(String, &Value)],
) -> Vec<Value> {
    let mut merged = Vec::new();
    let mut rest = live.iter().peekable();
    let is_shared = |element: &String| config.iter().any(|(other, _)| other == element);
    for (element, value) in config {
        while let Some((_, own)) = rest.next_if(|(element, _)| !is_shared(element)) {
            merged.push(Value::clone(own));
        }
        let there = live.iter().find(|(other, _)| other == element);
        if rest.peek().is_some_and(|(next, _)| next == element) {
            rest.next();
        }
        merged.push(merge(schema, there.map(|(_, value)| *value), value));
    }
    for (element, own) in rest {
        if !is_shared(element) {
            merged.push(Value::clone(own));
        }
    }
    merged
}

/// Takes fields out of an object, with all below them.
pub(super) fn remove(schema: Option<&Schema>, object: &mut Value, fields: &Fields) {
    for path in fields.iter() {
        remove_at(schema, object, path);
    }
}

fn remove_at(schema: Option<&Schema>, value: &mut Value, path: &[String]) {
    let Some((element, rest)) = path.split_first() else {
        return;
    };
    let schema_below = below(schema, element);
    let place = match parts(schema, value) {
        Parts::Items(items) => items.iter().position(|(other, _)| other == element),
        Parts::Leaf | Parts::Entries(_) => None,
    };
    match (value, place, element.strip_prefix("f:")) {
        (Value::Object(fields), _, Some(name)) => {
            if rest.is_empty() {
                fields.shift_remove(name);
            } else if let Some(value) = fields.get_mut(name) {
                remove_at(schema_below, value, rest);
            }
        }
        (Value::Array(items), Some(place), _) => {
            if rest.is_empty() {
                items.remove(place);
            } else {
                remove_at(schema_below, &mut items[place], rest);
            }
        }
        (_, _, _) => {}
    }
}
