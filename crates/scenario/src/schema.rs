//! JSON Schema of the scenario language, generated from [`raw`](super::raw): used by the parser for structural
//! checks, and by editors for completion.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::raw;
use super::read::WordOr;

/// Returns the schema of scenario files.
pub(crate) fn schema() -> Value {
    schema_of::<raw::File>()
}

/// Returns the schema of rules.
pub(crate) fn rule() -> Value {
    schema_of::<WordOr<raw::Rule>>()
}

/// Returns the schema of waits.
pub(crate) fn wait() -> Value {
    schema_of::<raw::WaitKeys>()
}

/// Returns the schemas of a rule and of a wait, in this order.
pub fn control_schemas() -> (Value, Value) {
    (rule(), wait())
}

/// Returns the keys of actions by section of the manual, in the order declared.
pub fn action_sections() -> &'static [(&'static str, &'static [&'static str])] {
    raw::ActionKeys::SECTIONS
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.definitions_path = "/$defs".into();
    });
    let schema = settings
        .with_transform(NothingIsNotAValue)
        .into_generator()
        .into_root_schema_for::<T>();
    schema.to_value()
}

/// Returns the checked-in schema, with a final newline.
pub fn json_schema() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a JSON value is always written");
    text.push('\n');
    text
}

/// Optional keys may be omitted but not empty: removes the `null` that schemars generates for an `Option`. Keys that
/// may be empty use `oneOf` (see `read::OrNothing`) or have no other type. An absent key has no default value either.
#[derive(Debug, Clone)]
struct NothingIsNotAValue;

impl Transform for NothingIsNotAValue {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
        let null = serde_json::json!({ "type": "null" });
        let Some(Value::Array(branches)) = object.get_mut("anyOf") else {
            return;
        };
        let optional = branches.last() == Some(&null);
        branches.retain(|branch| *branch != null);
        if let ([only], true) = (branches.as_slice(), optional) {
            let only = only.clone();
            // Draft 7 ignores a description beside a `$ref`, so the reference moves one level down.
            if only.get("$ref").is_some() && object.contains_key("description") {
                object.remove("anyOf");
                object.insert("allOf".into(), Value::Array(vec![only]));
            } else if let Value::Object(only) = only {
                object.remove("anyOf");
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_schema_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/scenario.v1.json");
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == json_schema(),
            "schema/scenario.v1.json is stale: run `cargo xtask schema` and commit it"
        );
    }

    #[test]
    fn every_key_has_a_description() {
        fn walk(value: &Value, path: &str, bare: &mut Vec<String>) {
            if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                for (key, property) in properties {
                    if property.get("description").is_none() && !path.ends_with("/metadata") {
                        bare.push(format!("{path}/{key}"));
                    }
                    walk(property, &format!("{path}/{key}"), bare);
                }
            }
            for (name, definition) in value
                .get("$defs")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                walk(definition, name, bare);
            }
        }
        let mut bare = Vec::new();
        walk(&schema(), "", &mut bare);
        assert_eq!(bare, Vec::<String>::new());
    }
}
