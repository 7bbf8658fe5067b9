//! The paths and schemas of a custom resource: those a real server publishes for a definition made up for the purpose,
//! with the names replaced, and the schema of the definition itself.
//!
//! Source: apiextensions-apiserver `controller/openapi/builder`.

use serde_json::{Map, Value, json};

use crate::api::published::{self, Sample};
use crate::model::catalog::Kind;
use crate::scenario::Version;

use super::Texts;

/// `apis/example.com/v1`.
pub(super) fn document_of(kind: &Kind) -> String {
    format!("apis/{}/{}", kind.group, kind.version)
}

/// Its paths.
pub(super) fn paths(kind: &Kind, version: Version) -> Texts {
    let sample = Sample::scoped(kind.namespaced);
    let prefix = format!("/apis/{}/{}/", sample.group, sample.version);
    let parts = kind.subresources();
    published::paths(version)
        .iter()
        .filter(|(path, _)| path.starts_with(&prefix))
        .filter(|(path, _)| {
            let part = path.split_once("{name}/").map(|(_, part)| part);
            part.is_none_or(|part| parts.iter().any(|known| known.name == part))
        })
        .map(|(path, text)| (renamed(path, sample, kind), renamed(text, sample, kind)))
        .collect()
}

/// The schemas only it has: of its objects, and of its lists.
pub(super) fn schemas(kind: &Kind, version: Version) -> Texts {
    let sample = Sample::scoped(kind.namespaced);
    let list = format!(
        "{}.{}.{}",
        reversed(sample.group),
        sample.version,
        sample.list_kind
    );
    let mut schemas = Texts::new();
    if let Some(text) = published::schemas(version).get(list.as_str()) {
        schemas.insert(renamed(&list, sample, kind), renamed(text, sample, kind));
    }
    let name = format!("{}.{}.{}", reversed(kind.group), kind.version, kind.kind);
    schemas.insert(name, schema(kind, version).to_string());
    schemas
}

/// The schema of its objects.
pub(super) fn schema(kind: &Kind, version: Version) -> Value {
    let every = every_object(version);
    let own = kind.definition.map(|definition| &definition.schema);
    let mut schema = match own {
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) | None => Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("x-kubernetes-preserve-unknown-fields".to_owned(), true.into()),
        ]),
    };
    complete(&mut schema, &every);
    name_type(&mut schema, &every);
    schema.insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([{ "group": kind.group, "kind": kind.kind, "version": kind.version }]),
    );
    Value::Object(schema)
}

/// Says what a definition may leave out, and puts properties in order, as Go writes a map.
fn complete(schema: &mut Map<String, Value>, every: &Map<String, Value>) {
    let is = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let either = is("x-kubernetes-int-or-string");
    let embedded = is("x-kubernetes-embedded-resource");
    if either && !["anyOf", "allOf"].iter().any(|name| schema.contains_key(*name)) {
        let types = json!([{ "type": "integer" }, { "type": "string" }]);
        schema.insert("anyOf".to_owned(), types);
    }
    for (name, value) in schema.iter_mut() {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let below = properties.values_mut().filter_map(Value::as_object_mut);
                below.for_each(|property| complete(property, every));
                properties.sort_keys();
            }
            ("items" | "additionalProperties", Value::Object(below)) => complete(below, every),
            _ => {}
        }
    }
    if embedded {
        name_type(schema, every);
        if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|known| known == name) {
                    required.push(name.into());
                }
            }
        }
    }
}

/// Adds the fields every object has.
fn name_type(schema: &mut Map<String, Value>, every: &Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(every.clone());
        properties.sort_keys();
    }
}

/// What the sample has, whose definition says nothing: `apiVersion`, `kind`, `metadata`.
fn every_object(version: Version) -> Map<String, Value> {
    let sample = Sample::scoped(true);
    let name = format!("{}.{}.{}", reversed(sample.group), sample.version, sample.kind);
    let text = published::schemas(version).get(name.as_str());
    let schema: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    match schema.and_then(|mut schema| schema.get_mut("properties").map(Value::take)) {
        Some(Value::Object(properties)) => properties,
        Some(_) | None => Map::new(),
    }
}

/// A text of the sample with this kind's names.
fn renamed(text: &str, sample: &Sample, kind: &Kind) -> String {
    let names = [
        (sample.list_kind.to_owned(), kind.list_kind.to_owned()),
        (sample.kind.to_owned(), kind.kind.to_owned()),
        (sample.plural.to_owned(), kind.plural.to_owned()),
        (
            format!("{}.{}.", reversed(sample.group), sample.version),
            format!("{}.{}.", reversed(kind.group), kind.version),
        ),
        (
            camel(&format!("{}.{}", sample.group, sample.version), true),
            camel(&format!("{}.{}", kind.group, kind.version), true),
        ),
        (
            format!("{}_{}", camel(sample.group, false), sample.version),
            format!("{}_{}", camel(kind.group, false), kind.version),
        ),
        (
            format!("/{}/{}/", sample.group, sample.version),
            format!("/{}/{}/", kind.group, kind.version),
        ),
        (format!("\"{}\"", sample.group), format!("\"{}\"", kind.group)),
        (format!("\"{}\"", sample.version), format!("\"{}\"", kind.version)),
    ];
    names
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// `com.example` of `example.com`.
fn reversed(group: &str) -> String {
    let mut labels: Vec<&str> = group.split('.').collect();
    labels.reverse();
    labels.join(".")
}

/// `ExampleCom` of `example.com`, or `exampleCom`.
fn camel(name: &str, first: bool) -> String {
    let words = name.split(['.', '-']).enumerate();
    words
        .map(|(nth, word)| {
            let mut letters = word.chars();
            match letters.next() {
                Some(letter) if first || nth > 0 => letter.to_uppercase().chain(letters).collect(),
                Some(_) | None => word.to_owned(),
            }
        })
        .collect()
}
