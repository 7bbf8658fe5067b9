//! Contradictions in a schema, and fields that are not supported.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go` (`ValidateCustomResourceDefinitionOpenAPISchema`).

use serde_json::Value;

use super::super::rule;
use super::super::structural::{members, texts};
use super::text;
use crate::error_list::ErrorList;

/// Types of values.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What depends on where a schema is.
#[derive(Clone, Copy, Default)]
struct Context {
    /// Why it must not have a default; empty: it may.
    no_default: &'static str,
    /// Whether it is the metadata, kind or version of an object.
    in_metadata: bool,
}

/// Adds the errors of a root schema.
pub(super) fn check(found: &mut ErrorList, schema: &Value, at: &str) {
    below(found, schema, at, Context::default(), true);
}

fn below(found: &mut ErrorList, schema: &Value, at: &str, context: Context, is_root: bool) {
    unsupported(found, schema, at, context);
    if schema["uniqueItems"] == true {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.forbidden(&format!("{at}.uniqueItems"), why);
    }
    let additional = &schema["additionalProperties"];
    if !additional.is_null() {
        let at = format!("{at}.additionalProperties");
        if members(&schema["properties"]).next().is_some() && *additional != true {
            found.forbidden(&at, "additionalProperties and properties are mutual exclusive");
        }
        if additional.is_object() {
            let context = match context.in_metadata {
                true => Context {
                    no_default: "inside additionalProperties applying to object metadata",
                    ..context
                },
                false => context,
            };
            below(found, additional, &at, context, false);
        }
    }
    for (name, property) in members(&schema["properties"]) {
        let of_server = match name.as_str() {
            "metadata" => Some("in top-level metadata"),
            "kind" => Some("in top-level kind"),
            "apiVersion" => Some("in top-level apiVersion"),
            _ => None,
        };
        let mut context = context;
        if let Some(why) = of_server
            && (is_root || schema["x-kubernetes-embedded-resource"] == true)
        {
            context.in_metadata = true;
            if is_root {
                context.no_default = why;
            }
        }
        below(
            found,
            property,
            &format!("{at}.properties[{name}]"),
            context,
            false,
        );
    }
    if schema["not"].is_object() {
        below(found, &schema["not"], &format!("{at}.not"), context, false);
    }
    for field in ["allOf", "oneOf", "anyOf"] {
        for (nth, nested) in schema[field].as_array().into_iter().flatten().enumerate() {
            below(found, nested, &format!("{at}.{field}[{nth}]"), context, false);
        }
    }
    for (name, nested) in members(&schema["definitions"]) {
        below(
            found,
            nested,
            &format!("{at}.definitions[{name}]"),
            context,
            false,
        );
    }
    match &schema["items"] {
        items @ Value::Object(_) => below(found, items, &format!("{at}.items"), context, false),
        Value::Array(items) => {
            for (nth, nested) in items.iter().enumerate() {
                below(found, nested, &format!("{at}.items[{nth}]"), context, false);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    for (name, nested) in members(&schema["dependencies"]).filter(|(_, nested)| nested.is_object()) {
        below(
            found,
            nested,
            &format!("{at}.dependencies[{name}]"),
            context,
            false,
        );
    }
    extensions(found, schema, at);
    keyed_lists(found, schema, at);
    rule::validate(found, schema, at);
}

/// Adds the errors of fields that OpenAPI has, and a definition must not.
fn unsupported(found: &mut ErrorList, schema: &Value, at: &str, context: Context) {
    let kind = text(schema, "type");
    let at_type = format!("{at}.type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        found.unsupported(&at_type, &kind.into(), &TYPES);
    }
    if !schema["default"].is_null() && !context.no_default.is_empty() {
        let why = format!("must not be set {}", context.no_default);
        found.forbidden(&format!("{at}.default"), &why);
    }
    let is_set = |field: &str| match &schema[field] {
        Value::Null => false,
        Value::String(text) => field == "$ref" || !text.is_empty(),
        Value::Object(named) => matches!(field, "additionalItems" | "dependencies") || !named.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => true,
    };
    for field in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if is_set(field) {
            found.forbidden(&format!("{at}.{field}"), &format!("{field} is not supported"));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        found.forbidden(&at_type, why);
    }
    if schema["items"].as_array().is_some_and(|items| !items.is_empty()) {
        let why = "items must be a schema object and not an array";
        found.forbidden(&format!("{at}.items"), why);
    }
    if context.in_metadata && schema["x-kubernetes-embedded-resource"] == true {
        let why = "must not be used inside of resource meta";
        found.forbidden(&format!("{at}.x-kubernetes-embedded-resource"), why);
    }
}

/// Adds the errors of an extension that needs a type.
fn needs_type(found: &mut ErrorList, schema: &Value, at: &str, (extension, needed): (&str, &str)) {
    let (kind, at) = (text(schema, "type"), format!("{at}.type"));
    let why = format!("must be {needed} if {extension} is specified");
    match kind {
        "" => found.required(&at, &why),
        _ => found.invalid(&at, &kind.into(), &why),
    }
}

fn extensions(found: &mut ErrorList, schema: &Value, at: &str) {
    let kind = text(schema, "type");
    let at_field = |field: &str| format!("{at}.{field}");
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let at = at_field("x-kubernetes-preserve-unknown-fields");
        found.invalid(&at, &false.into(), "must be true or undefined");
    }
    let (map_type, list_type) = (
        &schema["x-kubernetes-map-type"],
        &schema["x-kubernetes-list-type"],
    );
    if !map_type.is_null() && kind != "object" {
        needs_type(found, schema, at, ("x-kubernetes-map-type", "object"));
    }
    if map_type
        .as_str()
        .is_some_and(|of| !["atomic", "granular"].contains(&of))
    {
        let at = at_field("x-kubernetes-map-type");
        found.unsupported(&at, map_type, &["atomic", "granular"]);
    }
    let items = Some(&schema["items"]).filter(|items| items.is_object());
    if !list_type.is_null() && kind != "array" {
        needs_type(found, schema, at, ("x-kubernetes-list-type", "array"));
    } else if let Some(items) = items.filter(|_| list_type == "set") {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let of_items = &items["x-kubernetes-list-type"];
        match text(items, "type") {
            "array" if !of_items.is_null() && of_items != "atomic" => {
                found.invalid(&at_field("items.x-kubernetes-list-type"), of_items, why);
            }
            "object" if items["x-kubernetes-map-type"] != "atomic" => {
                // A server shows the other field.
                found.invalid(&at_field("items.x-kubernetes-map-type"), of_items, why);
            }
            _ => {}
        }
    }
    if list_type
        .as_str()
        .is_some_and(|of| !["atomic", "set", "map"].contains(&of))
    {
        let at = at_field("x-kubernetes-list-type");
        found.unsupported(&at, list_type, &["atomic", "set", "map"]);
    }
    let keys = texts(&schema["x-kubernetes-list-map-keys"]);
    if !keys.is_empty() && list_type != "map" {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        let at = at_field("x-kubernetes-list-type");
        if list_type.is_null() {
            found.required(&at, why);
        } else {
            found.invalid(&at, list_type, why);
        }
    }
}

/// Adds the errors of a list of type `map` or `set` and of its items.
fn keyed_lists(found: &mut ErrorList, schema: &Value, at: &str) {
    let of_keys = &schema["x-kubernetes-list-map-keys"];
    let (of, keys) = (text(schema, "x-kubernetes-list-type"), texts(of_keys));
    let at_keys = format!("{at}.x-kubernetes-list-map-keys");
    let items = Some(&schema["items"]).filter(|items| items.is_object());
    if of == "map" {
        if keys.is_empty() {
            found.required(&at_keys, "must not be empty if x-kubernetes-list-type is map");
        }
        let at_items = format!("{at}.items");
        match items {
            None if schema["items"].is_null() => {
                found.required(&at_items, "must have a schema if x-kubernetes-list-type is map");
            }
            None => {
                let why = "must only have a single schema if x-kubernetes-list-type is map";
                found.invalid(&at_items, &schema["items"], why);
            }
            Some(items) if text(items, "type") != "object" => {
                let why = "must be object if parent array's x-kubernetes-list-type is map";
                found.invalid(&format!("{at_items}.type"), &text(items, "type").into(), why);
            }
            Some(items) => {
                for (nth, key) in keys.iter().enumerate() {
                    match items["properties"].get(key) {
                        Some(of) if matches!(text(of, "type"), "array" | "object") => {
                            let at = format!("{at_items}.properties[{key}].type");
                            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                            // A server shows the type of the item.
                            found.invalid(&at, &items["type"], why);
                        }
                        Some(_) => {}
                        None => {
                            let why = "entries must all be names of item properties";
                            found.invalid(&at_keys, of_keys, why);
                        }
                    }
                    if keys[..nth].contains(key) {
                        found.invalid(&at_keys, of_keys, "must not contain duplicate entries");
                    }
                }
            }
        }
    }
    let Some(items) = items.filter(|_| matches!(of, "set" | "map")) else {
        return;
    };
    if items["nullable"] == true {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {of}");
        found.forbidden(&format!("{at}.items.nullable"), &why);
    }
    let required = texts(&items["required"]);
    for key in keys.iter().filter(|_| of == "map") {
        let Some(of) = items["properties"].get(key) else {
            continue;
        };
        let at = format!("{at}.items.properties[{key}]");
        if !required.contains(key) && of["default"].is_null() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            found.required(&format!("{at}.default"), why);
        }
        if of["nullable"] == true {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            found.forbidden(&format!("{at}.nullable"), why);
        }
    }
}
