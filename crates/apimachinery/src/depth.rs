//! How deep an object may be. Trees are read, copied, compared, written and dropped by recursion, here and in clients, so
//! the limit is asked for on every way in, and nothing behind it needs to ask again.
//!
//! It must not know what a way in is.
//!
//! Source: a real server reads 10,000 levels (`encoding/json`); clients in Rust 128 (`serde_json`), of which the list or
//! table around an object takes some.

use serde_json::Value;

/// Levels of maps and lists that an object may have.
pub const DEPTH_MAX: usize = 100;

/// What `metadata.managedFields` may have more: it repeats the levels of the object below its own four.
const OWNERS_DEPTH: usize = 8;

/// Go's words for JSON that is too deep.
pub const TOO_DEEP: &str = "exceeded max depth";

/// Is an object deeper than it may be?
pub fn is_too_deep(object: &Value) -> bool {
    let below = |name: &str, value: &Value| match (name, value) {
        ("metadata", Value::Object(metadata)) => metadata.iter().any(|(name, value)| {
            let levels = if name == "managedFields" {
                DEPTH_MAX + OWNERS_DEPTH - 2
            } else {
                DEPTH_MAX - 2
            };
            is_deeper_than(value, levels)
        }),
        (_, value) => is_deeper_than(value, DEPTH_MAX - 1),
    };
    match object {
        Value::Object(fields) => fields.iter().any(|(name, value)| below(name, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            is_deeper_than(object, DEPTH_MAX)
        }
    }
}

/// Has a value more levels than these? It looks no deeper than that.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels == 0 || is_deeper_than(value, levels - 1);
    match value {
        Value::Object(fields) => levels == 0 || fields.values().any(below),
        Value::Array(items) => levels == 0 || items.iter().any(below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |below, _| json!({ "a": below }))
    }

    #[test]
    fn levels_are_counted_to_the_limit_and_no_further() {
        assert!(!is_deeper_than(&nested(3), 3) && is_deeper_than(&nested(4), 3));
        assert!(!is_deeper_than(&json!("text"), 0) && is_deeper_than(&json!([]), 0));
        assert!(!is_too_deep(&nested(DEPTH_MAX)) && is_too_deep(&nested(DEPTH_MAX + 1)));
    }

    #[test]
    fn owners_may_be_as_deep_as_what_they_own() {
        let owners = |levels| json!({ "metadata": { "managedFields": [{ "fieldsV1": nested(levels) }] } });
        assert!(!is_too_deep(&owners(DEPTH_MAX)));
        assert!(is_too_deep(&owners(DEPTH_MAX + OWNERS_DEPTH)));
        let labels = json!({ "metadata": { "labels": nested(DEPTH_MAX) } });
        assert!(is_too_deep(&labels));
    }
}
