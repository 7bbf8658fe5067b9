//! Paths and schemas of a custom resource: those recorded for a sample definition, with the names replaced, and the schema of
//! the definition.
//!
//! Source: apiextensions-apiserver `controller/openapi/builder`.

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use builtin_kinds::crd::Definition;
use builtin_kinds::published;
use builtin_kinds::published::Sample;
use serde_json::{Map, Value, json};

use super::Texts;

/// `apis/example.com/v1`.
pub(super) fn document_of(kind: &ApiResource) -> String {
    format!("apis/{}/{}", kind.group, kind.version)
}

/// Returns its paths.
pub(super) fn paths(kind: &ApiResource, version: Version) -> Texts {
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

/// Returns the schemas of its objects and of its lists.
pub(super) fn schemas(kind: &ApiResource, version: Version) -> Texts {
    let sample = Sample::scoped(kind.namespaced);
    let list = name_of(sample.group, sample.version, sample.list_kind);
    let mut schemas = Texts::new();
    if let Some(text) = published::schemas(version).get(list.as_str()) {
        let text = renamed(text, sample, kind);
        let text = match serde_json::from_str(&text) {
            Ok(Value::Object(mut schema)) if !kind.selectable.is_empty() => {
                name_selectable(&mut schema, kind);
                Value::Object(schema).to_string()
            }
            Ok(_) | Err(_) => text,
        };
        schemas.insert(renamed(&list, sample, kind), text);
    }
    schemas.insert(name(kind), schema(kind, version, Draft::Version3).to_string());
    schemas
}

/// Returns the name of the schema of its objects.
pub(super) fn name(kind: &ApiResource) -> String {
    name_of(&kind.group, &kind.version, &kind.kind)
}

fn name_of(group: &str, version: &str, kind: &str) -> String {
    format!("{}.{version}.{kind}", reversed(group))
}

/// OpenAPI version of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    /// OpenAPI v2, whose clients take the listed properties as complete, and which has no alternatives.
    Version2,
    /// OpenAPI v3.
    Version3,
}

const OPEN: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// Returns the schema of its objects.
pub(super) fn schema(kind: &ApiResource, version: Version, draft: Draft) -> Value {
    let every = every_object(version);
    let own = Definition::of(kind).map(|definition| &definition.schema);
    let object = || ("type".to_owned(), "object".into());
    let mut schema = match own {
        Some(Value::Object(schema)) => schema.clone(),
        Some(_) | None => Map::from_iter([object(), (OPEN.to_owned(), true.into())]),
    };
    if draft == Draft::Version2 && is(&schema, OPEN) {
        schema = Map::from_iter([object()]);
    } else {
        if draft == Draft::Version2 {
            reduce(&mut schema);
        }
        complete(&mut schema, &embedded(&every), draft);
        name_type(&mut schema, &every);
    }
    schema.insert(
        "x-kubernetes-group-version-kind".to_owned(),
        json!([{ "group": kind.group, "kind": kind.kind, "version": kind.version }]),
    );
    name_selectable(&mut schema, kind);
    Value::Object(schema)
}

fn is(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn name_selectable(schema: &mut Map<String, Value>, kind: &ApiResource) {
    if kind.selectable.is_empty() {
        return;
    }
    let fields = kind.selectable.iter();
    let fields: Value = fields.map(|field| json!({ "fieldPath": field.label })).collect();
    schema.insert("x-kubernetes-selectable-fields".to_owned(), fields);
}

/// Removes what OpenAPI v2 cannot express, or what makes its clients reject objects that the server accepts.
///
/// Source: apiextensions-apiserver `controller/openapi/v2/conversion.go`.
fn reduce(schema: &mut Map<String, Value>) {
    let open = is(schema, OPEN);
    let mut drop = vec!["allOf", "oneOf", "anyOf", "not"];
    if is(schema, "nullable") {
        drop.extend(["type", "nullable", "items", "properties"]);
    }
    if open {
        drop.extend(["items", "properties"]);
    }
    schema.retain(|name, _| !drop.contains(&name.as_str()));
    let typed = schema.get("type").and_then(Value::as_str);
    if typed == Some("array") && !schema.contains_key("items") || typed == Some("object") && open {
        schema.remove("type");
    }
    let nullable = |value: &Value| value.as_object().is_some_and(|value| is(value, "nullable"));
    let values = schema.get("additionalProperties").is_some_and(nullable);
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let absent: Vec<String> = properties
        .filter(|(_, property)| nullable(property))
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        let stays = |name: &Value| !absent.iter().any(|absent| name == absent);
        required.retain(|name| stays(name) && !values);
        if required.is_empty() {
            schema.remove("required");
        }
    }
    for below in parts(schema) {
        reduce(below);
    }
}

/// Returns the schemas of properties, items and values.
fn parts(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    schema.iter_mut().flat_map(|(name, value)| {
        let (properties, below) = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => (Some(properties), None),
            ("items" | "additionalProperties", Value::Object(below)) => (None, Some(below)),
            _ => (None, None),
        };
        let properties = properties.into_iter().flat_map(Map::values_mut);
        properties.filter_map(Value::as_object_mut).chain(below)
    })
}

/// Adds what a definition can omit, and sorts properties, as Go encodes a map. `named` has the properties of an embedded
/// object.
fn complete(schema: &mut Map<String, Value>, named: &Map<String, Value>, draft: Draft) {
    let either = is(schema, "x-kubernetes-int-or-string") && draft == Draft::Version3;
    let is_embedded = is(schema, EMBEDDED) && (draft == Draft::Version3 || !is(schema, OPEN));
    if either && !["anyOf", "allOf"].iter().any(|name| schema.contains_key(*name)) {
        let types = json!([{ "type": "integer" }, { "type": "string" }]);
        schema.insert("anyOf".to_owned(), types);
    }
    for below in parts(schema) {
        complete(below, named, draft);
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.sort_keys();
    }
    if is_embedded {
        name_type(schema, named);
        if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
            for name in ["kind", "apiVersion"] {
                if !required.iter().any(|known| known == name) {
                    required.push(name.into());
                }
            }
        }
    }
}

/// Returns the properties of an embedded object: those of every object, with other descriptions.
fn embedded(every: &Map<String, Value>) -> Map<String, Value> {
    const CONVENTIONS: &str =
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    let mut fields = every.clone();
    for (name, says) in [
        (
            "apiVersion",
            format!(
                "apiVersion defines the versioned schema of this representation of an object. More info: {CONVENTIONS}#resources"
            ),
        ),
        (
            "kind",
            format!(
                "kind is a string value representing the type of this object. In CamelCase. More info: \
                 {CONVENTIONS}#types-kinds"
            ),
        ),
    ] {
        if let Some(field) = fields.get_mut(name) {
            field["description"] = says.into();
        }
    }
    fields
}

/// Adds the properties of every object.
fn name_type(schema: &mut Map<String, Value>, every: &Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.extend(every.clone());
        properties.sort_keys();
    }
}

/// Returns the properties of the sample, whose definition is empty: `apiVersion`, `kind`, `metadata`.
fn every_object(version: Version) -> Map<String, Value> {
    let sample = Sample::scoped(true);
    let name = name_of(sample.group, sample.version, sample.kind);
    let text = published::schemas(version).get(name.as_str());
    let schema: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    match schema.and_then(|mut schema| schema.get_mut("properties").map(Value::take)) {
        Some(Value::Object(properties)) => properties,
        Some(_) | None => Map::new(),
    }
}

/// Replaces the names of the sample by those of this kind.
fn renamed(text: &str, sample: &Sample, kind: &ApiResource) -> String {
    let names = [
        (sample.list_kind.to_owned(), kind.list_kind.to_string()),
        (sample.kind.to_owned(), kind.kind.to_string()),
        (sample.plural.to_owned(), kind.plural.to_string()),
        (
            format!("{}.{}.", reversed(sample.group), sample.version),
            format!("{}.{}.", reversed(&kind.group), kind.version),
        ),
        (
            camel(&format!("{}.{}", sample.group, sample.version), true),
            camel(&format!("{}.{}", kind.group, kind.version), true),
        ),
        (
            format!("{}_{}", camel(sample.group, false), sample.version),
            format!("{}_{}", camel(&kind.group, false), kind.version),
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Map, Value, json};

    use super::{Draft, complete, reduce};

    /// Published for such a node in OpenAPI v2 by kube-apiserver 1.36.
    #[rstest]
    #[case::plain(json!({"type": "string", "pattern": "^a", "maxLength": 5}), json!({"type": "string", "pattern": "^a", "maxLength": 5}))]
    #[case::nullable(json!({"type": "object", "nullable": true, "description": "A", "properties": {"x": {"type": "string"}}}), json!({"description": "A"}))]
    #[case::open(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"x": {"type": "string"}}}),
        json!({"x-kubernetes-preserve-unknown-fields": true})
    )]
    #[case::open_list(
        json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "object"}}),
        json!({"x-kubernetes-preserve-unknown-fields": true})
    )]
    #[case::alternatives(json!({"type": "object", "oneOf": [{"required": ["p"]}], "allOf": [{}], "anyOf": [{}], "not": {}}), json!({"type": "object"}))]
    #[case::either(json!({"x-kubernetes-int-or-string": true}), json!({"x-kubernetes-int-or-string": true}))]
    #[case::required_and_nullable(
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
        json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}})
    )]
    #[case::nullable_values(
        json!({"type": "object", "required": ["a"], "additionalProperties": {"type": "string", "nullable": true}}),
        json!({"type": "object", "additionalProperties": {}})
    )]
    #[case::embedded_and_open(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
    )]
    #[case::embedded(
        json!({"type": "object", "x-kubernetes-embedded-resource": true}),
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"kind": {}}, "required": ["kind", "apiVersion"]})
    )]
    fn version_2_of_a_node_has_no_more_than_its_readers_bear(#[case] node: Value, #[case] published: Value) {
        let Value::Object(mut node) = node else {
            unreachable!("nodes are objects")
        };
        reduce(&mut node);
        let named = Map::from_iter([("kind".to_owned(), json!({}))]);
        complete(&mut node, &named, Draft::Version2);
        assert_eq!(Value::Object(node), published);
    }
}
