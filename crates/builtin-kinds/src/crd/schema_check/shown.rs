//! A schema as errors show it: the internal struct of a server, whose fields have the names of Go.
//!
//! Source: apiextensions `apis/apiextensions/types_jsonschema.go`.

use serde_json::{Map, Value, json};

use super::super::rule;

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Text,
    Flag,
    /// Absent, or any value.
    Any,
    Schema,
    Schemas,
    /// Schemas by name.
    Named,
    /// A schema or a boolean.
    SchemaOrFlag,
    /// A schema or a list of schemas.
    SchemaOrSchemas,
    /// Schemas or lists of names, by name.
    Dependencies,
    Rules,
    Docs,
}

/// Fields of the wire, their names in Go, and what they hold, in the order of the struct.
pub(super) const FIELDS: [(&str, &str, Of); 44] = [
    ("id", "ID", Of::Text),
    ("$schema", "Schema", Of::Text),
    ("$ref", "Ref", Of::Any),
    ("description", "Description", Of::Text),
    ("type", "Type", Of::Text),
    ("nullable", "Nullable", Of::Flag),
    ("format", "Format", Of::Text),
    ("title", "Title", Of::Text),
    ("default", "Default", Of::Any),
    ("maximum", "Maximum", Of::Any),
    ("exclusiveMaximum", "ExclusiveMaximum", Of::Flag),
    ("minimum", "Minimum", Of::Any),
    ("exclusiveMinimum", "ExclusiveMinimum", Of::Flag),
    ("maxLength", "MaxLength", Of::Any),
    ("minLength", "MinLength", Of::Any),
    ("pattern", "Pattern", Of::Text),
    ("maxItems", "MaxItems", Of::Any),
    ("minItems", "MinItems", Of::Any),
    ("uniqueItems", "UniqueItems", Of::Flag),
    ("multipleOf", "MultipleOf", Of::Any),
    ("enum", "Enum", Of::Any),
    ("maxProperties", "MaxProperties", Of::Any),
    ("minProperties", "MinProperties", Of::Any),
    ("required", "Required", Of::Any),
    ("items", "Items", Of::SchemaOrSchemas),
    ("allOf", "AllOf", Of::Schemas),
    ("oneOf", "OneOf", Of::Schemas),
    ("anyOf", "AnyOf", Of::Schemas),
    ("not", "Not", Of::Schema),
    ("properties", "Properties", Of::Named),
    ("additionalProperties", "AdditionalProperties", Of::SchemaOrFlag),
    ("patternProperties", "PatternProperties", Of::Named),
    ("dependencies", "Dependencies", Of::Dependencies),
    ("additionalItems", "AdditionalItems", Of::SchemaOrFlag),
    ("definitions", "Definitions", Of::Named),
    ("externalDocs", "ExternalDocs", Of::Docs),
    ("example", "Example", Of::Any),
    (
        "x-kubernetes-preserve-unknown-fields",
        "XPreserveUnknownFields",
        Of::Any,
    ),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Of::Flag),
    ("x-kubernetes-int-or-string", "XIntOrString", Of::Flag),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Of::Any),
    ("x-kubernetes-list-type", "XListType", Of::Any),
    ("x-kubernetes-map-type", "XMapType", Of::Any),
    ("x-kubernetes-validations", "XValidations", Of::Rules),
];

/// Returns the name in Go of a field of the wire.
pub(super) fn name_of(field: &str) -> &'static str {
    let known = FIELDS.iter().find(|(wire, _, _)| *wire == field);
    known.map_or("", |(_, name, _)| name)
}

/// Whether a field differs from the zero value of its type.
pub(super) fn is_set(schema: &Value, field: &str) -> bool {
    let of = FIELDS.iter().find(|(wire, _, _)| *wire == field);
    match (&schema[field], of.map(|(_, _, of)| *of)) {
        (Value::Null, _) => false,
        (value, Some(Of::Text)) => value.as_str() != Some(""),
        (value, Some(Of::Flag)) => *value == true,
        (_, _) => true,
    }
}

/// Returns a schema in the form of the internal struct.
pub(super) fn shown(schema: &Value) -> Value {
    let fields = FIELDS.iter().map(|(wire, name, of)| {
        let value = &schema[*wire];
        let shown = match (value, of) {
            (Value::Null, Of::Text) => "".into(),
            (Value::Null, Of::Flag) => false.into(),
            (Value::Null, _) => Value::Null,
            (value, Of::Text | Of::Flag | Of::Any) => value.clone(),
            (value, Of::Schema) => shown(value),
            (value, Of::Schemas) => value.as_array().into_iter().flatten().map(shown).collect(),
            (value, Of::Named) => {
                let named = value.as_object().into_iter().flatten();
                let named = named.map(|(name, schema)| (name.clone(), shown(schema)));
                Value::Object(named.collect::<Map<_, _>>())
            }
            (Value::Bool(allows), Of::SchemaOrFlag) => json!({"Allows": allows, "Schema": null}),
            (value, Of::SchemaOrFlag) => json!({"Allows": true, "Schema": shown(value)}),
            (Value::Array(schemas), Of::SchemaOrSchemas) => {
                json!({"Schema": null, "JSONSchemas": schemas.iter().map(shown).collect::<Vec<_>>()})
            }
            (value, Of::SchemaOrSchemas) => json!({"Schema": shown(value), "JSONSchemas": null}),
            (value, Of::Dependencies) => {
                let named = value.as_object().into_iter().flatten();
                let named = named.map(|(name, of)| {
                    let shown = match of.is_array() {
                        true => json!({"Schema": null, "Property": of}),
                        false => json!({"Schema": shown(of), "Property": null}),
                    };
                    (name.clone(), shown)
                });
                Value::Object(named.collect::<Map<_, _>>())
            }
            (value, Of::Rules) => value.as_array().into_iter().flatten().map(rule::shown).collect(),
            (value, Of::Docs) => json!({
                "Description": value["description"].as_str().unwrap_or_default(),
                "URL": value["url"].as_str().unwrap_or_default(),
            }),
        };
        ((*name).to_owned(), shown)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}
