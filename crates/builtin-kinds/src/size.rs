//! Limits of the size of a stored object, and of the defaults added to one. The limit is etcd's and does not apply to a dry
//! run.
//!
//! It must not know the entry points.
//!
//! Sources: etcd `server/embed/config.go` (`DefaultMaxRequestBytes`) and `client/v3/options.go`
//! (`defaultMaxCallSendMsgSize`), which kube-apiserver does not change.

use apimachinery::kind::ApiResource;
use serde_json::Value;

/// Maximum size of a request to etcd in bytes.
pub(crate) const SIZE_MAX: usize = 1536 * 1024;

/// Maximum size of a message of the etcd client in bytes.
const MESSAGE_MAX: usize = 2 * 1024 * 1024;

/// Maximum bytes of defaults in one object: an object of that size cannot be stored.
pub(crate) const DEFAULT_BYTES_MAX: usize = 2 * MESSAGE_MAX;

/// Returns the error for an object too large to be stored, with the text of kube-apiserver. Built-in kinds are stored in
/// protobuf, which takes at least about three quarters of their JSON, so the estimate is rejected only above that.
pub fn refusal(kind: &ApiResource, object: &Value) -> Option<String> {
    let json = json_bytes(object);
    let bytes = if kind.custom { json } else { json / 4 * 3 };
    if bytes > MESSAGE_MAX {
        return Some(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({bytes} vs. {MESSAGE_MAX})"
        ));
    }
    (bytes > SIZE_MAX).then(|| "etcdserver: request is too large".to_owned())
}

/// Returns the bytes of a value as JSON, not counting escapes.
pub fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(value) => 5 - usize::from(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.checked_ilog10().map_or(1, |digits| digits as usize + 1),
            None => number.to_string().len(),
        },
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(json_bytes).sum::<usize>(),
        Value::Object(fields) => {
            let bytes = fields
                .iter()
                .map(|(name, value)| name.len() + 3 + json_bytes(value));
            1 + fields.len().max(1) + bytes.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn size_equals_the_length_of_the_json() {
        for value in [
            json!(null),
            json!([true, false, 0, 7, 10, 4_294_967_296_i64, 1.5]),
            json!({}),
            json!([]),
            json!({ "a": { "b": ["c", {}], "d": "" }, "e": [[]] }),
        ] {
            assert_eq!(json_bytes(&value), value.to_string().len(), "{value}");
        }
    }
}
