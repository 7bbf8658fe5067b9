//! A definition as a server stores it: with defaults, and fields in the order of the Go structs.
//!
//! Source: apiextensions `apis/apiextensions/v1/{types,types_jsonschema,defaults}.go`.

use serde_json::{Map, Value, json};

/// Returns a definition that is created, or replaces `old`, with defaults.
pub fn prepared(mut definition: Value, old: Option<&Value>) -> Value {
    let spec = &mut definition["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    default_names(spec);
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({ "strategy": "None" });
    }
    let service = spec.pointer_mut("/conversion/webhook/clientConfig/service");
    if let Some(service) = service.filter(|service| service.is_object() && service["port"].is_null()) {
        service["port"] = 443.into();
    }
    // Always false, which is omitted.
    if spec["preserveUnknownFields"] == false {
        shift_remove(spec, "preserveUnknownFields");
    }
    let stored = stored_version(spec);
    *spec = ordered(spec.take(), SPEC);
    spec["names"] = names(&spec["names"]);
    if let Some(versions) = spec["versions"].as_array_mut() {
        versions.iter_mut().for_each(version);
    }
    let status = match old {
        Some(old) => old["status"].clone(),
        None => json!({
            "conditions": null,
            "acceptedNames": { "plural": "", "kind": "" },
            "storedVersions": null,
        }),
    };
    definition["status"] = status;
    if let Some(stored) = stored {
        let versions = &mut definition["status"]["storedVersions"];
        match versions.as_array_mut() {
            Some(versions) if versions.iter().any(|version| *version == stored) => {}
            Some(versions) => versions.push(stored.into()),
            None => *versions = json!([stored]),
        }
    }
    definition
}

/// Returns the names of a definition in the order of the struct.
pub(super) fn names(json: &Value) -> Value {
    ordered(json.clone(), NAMES)
}

fn default_names(spec: &mut Value) {
    let names = &mut spec["names"];
    if !names.is_object() {
        *names = json!({});
    }
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    if kind.is_empty() {
        return;
    }
    let is_missing = |value: &Value| value.as_str().unwrap_or_default().is_empty();
    if is_missing(&names["singular"]) {
        names["singular"] = kind.to_lowercase().into();
    }
    if is_missing(&names["listKind"]) {
        names["listKind"] = format!("{kind}List").into();
    }
}

/// Returns the name of the storage version.
fn stored_version(spec: &Value) -> Option<String> {
    let versions = spec["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    stored["name"].as_str().map(str::to_owned)
}

const SPEC: &[&str] = &[
    "group",
    "names",
    "scope",
    "versions",
    "conversion",
    "preserveUnknownFields",
];

const NAMES: &[&str] = &[
    "plural",
    "singular",
    "shortNames",
    "kind",
    "listKind",
    "categories",
];

const VERSION: &[&str] = &[
    "name",
    "served",
    "storage",
    "deprecated",
    "deprecationWarning",
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

const COLUMN: &[&str] = &["name", "type", "format", "description", "priority", "jsonPath"];

const SCALE: &[&str] = &["specReplicasPath", "statusReplicasPath", "labelSelectorPath"];

const SCHEMA: &[&str] = &[
    "id",
    "$schema",
    "$ref",
    "description",
    "type",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "items",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "properties",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "externalDocs",
    "example",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

fn version(json: &mut Value) {
    *json = ordered(json.take(), VERSION);
    for flag in ["served", "storage"] {
        if json[flag].is_null() {
            json[flag] = false.into();
            *json = ordered(json.take(), VERSION);
        }
    }
    if json["schema"]["openAPIV3Schema"].is_object() {
        schema(&mut json["schema"]["openAPIV3Schema"]);
    }
    if let Some(columns) = json
        .get_mut("additionalPrinterColumns")
        .and_then(Value::as_array_mut)
    {
        columns
            .iter_mut()
            .for_each(|column| *column = ordered(column.take(), COLUMN));
    }
    if let Some(scale) = json.pointer_mut("/subresources/scale") {
        *scale = ordered(scale.take(), SCALE);
    }
}

fn schema(json: &mut Value) {
    *json = ordered(json.take(), SCHEMA);
    let Some(fields) = json.as_object_mut() else {
        return;
    };
    fields.retain(|name, value| !is_left_out(name, value));
    for (name, value) in fields.iter_mut() {
        match name.as_str() {
            "properties" | "patternProperties" | "definitions" => {
                if let Some(named) = value.as_object_mut() {
                    named.sort_keys();
                    named.values_mut().for_each(schema);
                }
            }
            "items" | "not" | "additionalProperties" | "additionalItems" if value.is_object() => {
                schema(value)
            }
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array_mut().into_iter().flatten().for_each(schema);
            }
            _ => {}
        }
    }
}

/// Fields of a schema that are omitted only if they are absent: pointers in Go.
const POINTERS: [&str; 9] = [
    "$ref",
    "default",
    "example",
    "items",
    "not",
    "additionalProperties",
    "additionalItems",
    "x-kubernetes-preserve-unknown-fields",
    "externalDocs",
];

/// Whether a field of a schema is omitted as the zero value of its type.
fn is_left_out(name: &str, value: &Value) -> bool {
    let is_zero = match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::String(text) => text.is_empty() && !name.ends_with("-type"),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) => false,
    };
    is_zero && !POINTERS.contains(&name)
}

/// Returns the present fields of `order`, in that order.
fn ordered(mut json: Value, order: &[&str]) -> Value {
    let Some(fields) = json.as_object_mut() else {
        return json;
    };
    let known = order.iter().filter_map(|name| {
        let value = fields.shift_remove(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value))
    });
    Value::Object(known.collect::<Map<_, _>>())
}

fn shift_remove(json: &mut Value, field: &str) {
    if let Some(fields) = json.as_object_mut() {
        fields.shift_remove(field);
    }
}
