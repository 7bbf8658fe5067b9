//! JSON Patch as real servers apply it, which is not in all RFC 6902.
//!
//! Source: `evanphx/json-patch` v4, which kube-apiserver applies patches with.

use json_patch::{PatchOperation, patch};
use serde_json::Value;

/// Applies the operations one after the other. An operation that fails leaves the object half changed.
///
/// # Errors
/// The operation that fails, as text.
pub(super) fn apply(object: &mut Value, operations: &[PatchOperation]) -> Result<(), String> {
    for operation in operations {
        if tests_absence(object, operation) || replaces_nothing(object, operation) {
            continue;
        }
        patch(object, std::slice::from_ref(operation)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What an object does not have equals null. Controllers ask in this way whether they are the first, for instance to
/// write a finalizer (kube-runtime's `finalizer`).
fn tests_absence(object: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else {
        return false;
    };
    let holder = test.path.parent().and_then(|holder| holder.resolve(object).ok());
    let missing = holder.is_some_and(Value::is_object) && test.path.resolve(object).is_err();
    missing && test.value.is_null()
}

/// Puts what is to replace something where an object has nothing yet, as if it were added.
fn replaces_nothing(object: &mut Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Replace(replace) = operation else {
        return false;
    };
    let (Some(holder), Some(key)) = (replace.path.parent(), replace.path.back()) else {
        return false;
    };
    let Ok(Value::Object(holder)) = holder.resolve_mut(object) else {
        return false;
    };
    let key = key.decoded().into_owned();
    let absent = !holder.contains_key(&key);
    if absent {
        holder.insert(key, replace.value.clone());
    }
    absent
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::apply;

    #[rstest]
    #[case::absent_is_null(json!([{"op": "test", "path": "/metadata/finalizers", "value": null}]), true)]
    #[case::absent_is_nothing_else(json!([{"op": "test", "path": "/metadata/finalizers", "value": []}]), false)]
    #[case::what_is_there_is_not_null(json!([{"op": "test", "path": "/metadata/name", "value": null}]), false)]
    #[case::below_nothing_there_is_nothing(json!([{"op": "test", "path": "/spec/replicas", "value": null}]), false)]
    #[case::past_the_end_of_a_list(json!([{"op": "test", "path": "/items/1", "value": null}]), false)]
    #[case::what_an_operation_before_added(json!([
        {"op": "add", "path": "/metadata/finalizers", "value": ["a"]},
        {"op": "test", "path": "/metadata/finalizers", "value": null},
    ]), false)]
    #[case::what_a_replacement_put_there(json!([
        {"op": "replace", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/uid", "value": "u"},
    ]), true)]
    #[case::a_replacement_below_nothing(json!([{"op": "replace", "path": "/spec/replicas", "value": 1}]), false)]
    #[case::a_replacement_past_the_end_of_a_list(json!([{"op": "replace", "path": "/items/1", "value": 1}]), false)]
    fn what_is_not_there(#[case] operations: Value, #[case] passes: bool) {
        let mut object = json!({"metadata": {"name": "a"}, "items": [1]});
        let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
        assert_eq!(apply(&mut object, &operations).is_ok(), passes);
    }
}
