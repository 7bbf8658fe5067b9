//! Access to fields and lists of JSON values by name.

use apimachinery::object;
use serde_json::Value;

/// Returns the field of this name, or the nested field at `a.b`; null if there is none.
pub fn below<'a>(value: &'a Value, field: &str) -> &'a Value {
    field
        .split('.')
        .fold(value, |value, name| object::field(value, name))
}

/// Returns the list of this name; empty if there is none.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    object::field(value, field)
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}
