//! Objects of tests: typed, JSON, or YAML text. The server decides which kinds exist.

use fake_apiserver::manifests;
use serde::Serialize;
use serde_json::{Value, json};

/// Returns the objects of `items`; a text is YAML or JSON with any number of them.
///
/// # Errors
/// The mistake, with its item.
pub(crate) fn values(items: impl IntoIterator<Item = impl Serialize>) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let value = serde_json::to_value(item).map_err(|error| format!("object {index}: {error}"))?;
        if let Value::String(text) = &value {
            let read = manifests::read(text).map_err(|error| format!("object {index}: {error}"))?;
            objects.extend(read);
        } else {
            objects.push(value);
        }
    }
    Ok(objects)
}

/// Returns the order of creation: custom resource definitions, namespaces, everything else.
pub(crate) fn rank(object: &Value) -> u8 {
    match object.get("kind").and_then(Value::as_str) {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        Some(_) | None => 2,
    }
}

/// Returns the argument of the action `delete`. `name` is `NAME` or `NAMESPACE/NAME`.
pub(crate) fn deletion(resource: &str, name: &str) -> Value {
    match name.split_once('/') {
        Some((namespace, name)) => json!({ "resource": resource, "namespace": namespace, "name": name }),
        None => json!({ "resource": resource, "name": name }),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn an_object_is_typed_or_json_or_text() {
        let typed = ConfigMap::default();
        let objects = values([
            serde_json::to_value(typed).unwrap(),
            json!("kind: A\n---\nkind: B\n"),
        ])
        .unwrap();
        let kinds: Vec<&Value> = objects.iter().map(|object| &object["kind"]).collect();
        assert_eq!(kinds, ["ConfigMap", "A", "B"]);
        let mistake = values(["kind: A", "kind: ["]).unwrap_err();
        assert!(mistake.starts_with("object 1: "), "{mistake}");
    }
}
