//! Fields and lists of JSON by name.

use serde_json::Value;

/// The field of this name, or what is below it at `a.b`; null where there is none.
pub fn below<'a>(value: &'a Value, field: &str) -> &'a Value {
    field.split('.').fold(value, |value, name| &value[name])
}

/// The list of this name; empty where there is none.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}
