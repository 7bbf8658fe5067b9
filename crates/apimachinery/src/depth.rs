//! Limit of the depth of an object. Trees are parsed, copied, compared, encoded and dropped by recursion, here and in
//! clients, so every entry point checks the limit, and no later code has to.
//!
//! It must not know the entry points.
//!
//! Source: kube-apiserver reads 10,000 levels (`encoding/json`); clients in Rust 128 (`serde_json`), some of which the list
//! or table around an object takes.

use serde_json::Value;

/// Maximum nesting of maps and lists in an object.
pub const DEPTH_MAX: usize = 100;

/// Additional levels for `metadata.managedFields`, which repeats the levels of the object below four more.
const OWNERS_DEPTH: usize = 8;

/// Go's message for JSON that is too deep.
pub const TOO_DEEP: &str = "exceeded max depth";

/// Returns whether an object is deeper than [`DEPTH_MAX`], or its managed fields deeper than their limit.
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

/// Returns whether a value has more than `levels` levels. The search stops at that depth.
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
    fn depth_is_counted_up_to_the_limit() {
        assert!(!is_deeper_than(&nested(3), 3) && is_deeper_than(&nested(4), 3));
        assert!(!is_deeper_than(&json!("text"), 0) && is_deeper_than(&json!([]), 0));
        assert!(!is_too_deep(&nested(DEPTH_MAX)) && is_too_deep(&nested(DEPTH_MAX + 1)));
    }

    #[test]
    fn managed_fields_may_be_as_deep_as_their_object() {
        let owners = |levels| json!({ "metadata": { "managedFields": [{ "fieldsV1": nested(levels) }] } });
        assert!(!is_too_deep(&owners(DEPTH_MAX)));
        assert!(is_too_deep(&owners(DEPTH_MAX + OWNERS_DEPTH)));
        let labels = json!({ "metadata": { "labels": nested(DEPTH_MAX) } });
        assert!(is_too_deep(&labels));
    }
}
