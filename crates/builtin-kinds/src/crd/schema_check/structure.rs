//! Whether a schema is structural: each value has one schema outside of `allOf`, `anyOf`, `oneOf` and `not`, and what is in them
//! only validates.
//!
//! Source: apiextensions `apiserver/schema/{validation,complete,convert}.go`.

use apimachinery::status::Cause;
use serde_json::{Map, Value, json};

use super::super::patterns;
use super::super::structural::members;
use super::text;
use crate::error_list::ErrorList;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns the errors of a root schema, sorted; `None`: it has fields that are not supported, which are other errors.
pub(super) fn errors(schema: &Value, at: &str) -> Option<Vec<Cause>> {
    if !is_supported(schema) {
        return None;
    }
    let mut found = ErrorList::default();
    invariants(&mut found, schema, Level::Root, at);
    complete_validation(&mut found, schema, Some(schema), at, at);
    let mut causes = found.into_causes();
    causes.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    Some(causes)
}

/// Whether it can be read as a structural schema, and so can all below it.
fn is_supported(schema: &Value) -> bool {
    let is_empty = |field: &str| match &schema[field] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(named) => named.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    let unsupported = [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "definitions",
    ];
    let below = |field: &str| members(&schema[field]).all(|(_, schema)| is_supported(schema));
    let each = |field: &str| schema[field].as_array().into_iter().flatten().all(is_supported);
    unsupported.iter().all(|field| is_empty(field))
        && schema["additionalItems"].is_null()
        && !schema["items"].is_array()
        && schema[PRESERVE] != false
        && below("properties")
        && ["items", "not", "additionalProperties"]
            .iter()
            .all(|field| !schema[*field].is_object() || is_supported(&schema[*field]))
        && ["allOf", "anyOf", "oneOf"].iter().all(|field| each(field))
}

fn invariants(found: &mut ErrorList, schema: &Value, level: Level, at: &str) {
    let kind = text(schema, "type");
    let is = |extension: &str| schema[extension] == true;
    let properties = &schema["properties"];
    let items = &schema["items"];
    if kind == "array" && !items.is_object() {
        found.required(&format!("{at}.items"), "must be specified");
    }
    if items.is_object() {
        invariants(found, items, Level::Item, &format!("{at}.items"));
    }
    for (name, property) in members(properties) {
        invariants(found, property, Level::Field, &format!("{at}.properties[{name}]"));
    }
    let additional = &schema["additionalProperties"];
    let at_additional = format!("{at}.additionalProperties");
    if !additional.is_null() {
        if level == Level::Root {
            found.forbidden(&at_additional, "must not be used at the root");
        }
        if additional.is_object() {
            invariants(found, additional, Level::Field, &at_additional);
        }
    }
    if is(INT_OR_STRING) {
        for extension in [PRESERVE, EMBEDDED].into_iter().filter(|extension| is(extension)) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            found.invalid(&format!("{at}.{extension}"), &true.into(), why);
        }
    }
    validations(
        found,
        schema,
        (
            is_int_or_string(&schema["anyOf"]),
            is_int_or_string(&schema["allOf"][0]["anyOf"]),
        ),
        at,
    );
    let at_type = format!("{at}.type");
    if is(EMBEDDED) && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        match kind {
            "" => found.required(&at_type, why),
            _ => found.invalid(&at_type, &kind.into(), why),
        }
    } else if kind.is_empty() && !is(INT_OR_STRING) && !is(PRESERVE) {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        found.required(&at_type, why);
    }
    if is(EMBEDDED) && !additional.is_null() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        found.forbidden(&at_additional, why);
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        found.invalid(&at_type, &kind.into(), "must be object at the root");
    }
    let is_resource = level == Level::Root || is(EMBEDDED);
    for field in ["kind", "apiVersion"] {
        if let Some(of) = properties.get(field).filter(|_| is_resource)
            && text(of, "type") != "string"
        {
            let at = format!("{at}.properties[{field}].type");
            found.invalid(&at, &text(of, "type").into(), "must be string");
        }
    }
    if let Some(of) = properties.get("metadata") {
        let at = format!("{at}.properties[metadata]");
        metadata(found, of, is_resource, level, &at);
    }
    if is(EMBEDDED) && !is(PRESERVE) && members(properties).next().is_none() {
        found.required(
            &format!("{at}.properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        );
    }
}

/// Metadata is specified by the server; only its names can be restricted.
fn metadata(found: &mut ErrorList, schema: &Value, is_resource: bool, level: Level, at: &str) {
    if is_resource && text(schema, "type") != "object" {
        found.invalid(
            &format!("{at}.type"),
            &text(schema, "type").into(),
            "must be object",
        );
    }
    let allowed = |(field, value): (&String, &Value)| match field.as_str() {
        "type" | "default" => true,
        "properties" => members(value).all(|(name, _)| matches!(name.as_str(), "name" | "generateName")),
        "additionalProperties" => value.is_null(),
        _ => match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(_) | Value::Bool(true) | Value::Number(_) => false,
        },
    };
    if level == Level::Root && !schema.as_object().into_iter().flatten().all(allowed) {
        found.forbidden(
            at,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        );
    }
}

/// The one form of `anyOf` in which types are allowed, beside `x-kubernetes-int-or-string`.
fn is_int_or_string(any_of: &Value) -> bool {
    *any_of == json!([{"type": "integer"}, {"type": "string"}])
}

/// Adds the errors of the combinations of a schema; `known`: whether its `anyOf`, and that of its first `allOf`, are the one
/// form in which types are allowed.
fn validations(found: &mut ErrorList, schema: &Value, known: (bool, bool), at: &str) {
    let each = |field: &'static str| schema[field].as_array().into_iter().flatten().enumerate();
    if !known.0 {
        for (nth, nested) in each("anyOf") {
            nested_validation(found, nested, false, &format!("{at}.anyOf[{nth}]"));
        }
    }
    for (nth, nested) in each("allOf") {
        nested_validation(found, nested, known.1 && nth == 0, &format!("{at}.allOf[{nth}]"));
    }
    for (nth, nested) in each("oneOf") {
        nested_validation(found, nested, false, &format!("{at}.oneOf[{nth}]"));
    }
    if schema["not"].is_object() {
        nested_validation(found, &schema["not"], false, &format!("{at}.not"));
    }
    if let Some(Err(error)) = schema["pattern"].as_str().map(patterns::check) {
        found.invalid(
            &format!("{at}.pattern"),
            &schema["pattern"],
            &format!("must be a valid regular expression, but isn't: error parsing regexp: {error}"),
        );
    }
}

fn nested_validation(found: &mut ErrorList, schema: &Value, known_any_of: bool, at: &str) {
    validations(found, schema, (known_any_of, false), at);
    if schema["items"].is_object() {
        nested_validation(found, &schema["items"], false, &format!("{at}.items"));
    }
    for (name, property) in members(&schema["properties"]) {
        nested_validation(found, property, false, &format!("{at}.properties[{name}]"));
    }
    let mut forbid = |field: &str, why: &str| {
        found.forbidden(
            &format!("{at}.{field}"),
            &format!("must be {why} to be structural"),
        );
    };
    let is_text = |field: &str| !text(schema, field).is_empty();
    let is_true = |field: &str| schema[field] == true;
    if is_text("type") {
        forbid("type", "empty");
    }
    if schema["additionalProperties"].is_object() || is_true("additionalProperties") {
        forbid("additionalProperties", "undefined");
    }
    if !schema["default"].is_null() {
        forbid("default", "undefined");
    }
    for field in ["title", "description"]
        .into_iter()
        .filter(|field| is_text(field))
    {
        forbid(field, "empty");
    }
    for field in ["nullable", PRESERVE, EMBEDDED, INT_OR_STRING] {
        if is_true(field) {
            forbid(field, "false");
        }
    }
    let is_listed = |field: &str| schema[field].as_array().is_some_and(|items| !items.is_empty());
    if is_listed("x-kubernetes-list-map-keys") {
        forbid("x-kubernetes-list-map-keys", "empty");
    }
    for field in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if !schema[field].is_null() {
            forbid(field, "undefined");
        }
    }
    if is_listed("x-kubernetes-validations") {
        forbid("x-kubernetes-validations", "empty");
    }
    if schema["properties"].get("metadata").is_some() {
        found.forbidden(
            &format!("{at}.properties[metadata]"),
            "must not be specified in a nested context",
        );
    }
}

/// Adds an error for each value that only combinations specify. `within`: the schema outside of them at `at`; `from`: where the
/// combinations are.
fn complete_validation(found: &mut ErrorList, schema: &Value, within: Option<&Value>, at: &str, from: &str) {
    if schema["not"].is_object() {
        complete_nested(found, &schema["not"], within, at, &format!("{from}.not"));
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        for (nth, nested) in schema[field].as_array().into_iter().flatten().enumerate() {
            complete_nested(found, nested, within, at, &format!("{from}.{field}[{nth}]"));
        }
    }
}

fn complete_nested(found: &mut ErrorList, schema: &Value, within: Option<&Value>, at: &str, from: &str) {
    let Some(within) = within else {
        return found.required(at, &format!("because it is defined in {from}"));
    };
    complete_validation(found, schema, Some(within), at, from);
    if schema["items"].is_object() {
        let items = Some(&within["items"]).filter(|items| items.is_object());
        complete_nested(
            found,
            &schema["items"],
            items,
            &format!("{at}.items"),
            &format!("{from}.items"),
        );
    }
    let none = Map::new();
    let properties = within["properties"].as_object().unwrap_or(&none);
    for (name, property) in members(&schema["properties"]) {
        let [at, from] = [at, from].map(|path| format!("{path}.properties[{name}]"));
        complete_nested(found, property, properties.get(name), &at, &from);
    }
}
