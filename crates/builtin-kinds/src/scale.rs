//! The `scale` subresource: desired and current replicas of an object of any kind.
//!
//! Source: kubernetes `pkg/registry/apps/deployment/storage/storage.go` (`scaleFromDeployment`), apiextensions
//! `registry/customresource/etcd.go` (`scaleFromCustomResource`), apimachinery `meta/v1/helpers.go`.

use apimachinery::kind::{ApiResource, Scale, ScaleSelector};
use apimachinery::object::Stored;
use apimachinery::status::Status;
use serde_json::{Map, Value, json};

use super::catalog;

/// Returns the Scale of an object.
///
/// # Errors
///
/// 500 for a custom resource without desired replicas; 404 for a kind without `scale`.
pub fn of(object: &Stored) -> Result<Stored, Status> {
    let json = shown(&object.kind, &object.json())?;
    Ok(Stored::as_is(
        &catalog::scale(),
        object.key.clone(),
        object.revision,
        json,
    ))
}

/// Returns the Scale that a write changes. Without desired replicas it has none.
///
/// # Errors
///
/// 404 for a kind without `scale`.
pub fn before_write(object: &Stored) -> Result<Value, Status> {
    let mut json = object.json();
    let scale = object.kind.scale.as_ref().ok_or_else(Status::unknown_path)?;
    if json.pointer(&scale.spec).and_then(Value::as_i64).is_none() && object.kind.custom {
        set(scale, &mut json, 0);
    }
    shown(&object.kind, &json)
}

/// Returns the Scale as JSON, in the order of the wire. Errors as for [`of`].
pub fn shown(kind: &ApiResource, object: &Value) -> Result<Value, Status> {
    let scale = kind.scale.as_ref().ok_or_else(Status::unknown_path)?;
    let wanted = object.pointer(&scale.spec).and_then(Value::as_i64);
    let Some(wanted) = wanted.or((!kind.custom).then_some(1)) else {
        return Err(Status::internal_error(&format!(
            "the spec replicas field \"{}\" does not exist",
            path(&scale.spec)
        )));
    };
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    if wanted != 0 {
        spec.insert("replicas".to_owned(), wanted.into());
    }
    let mut status = Map::new();
    let there = object.pointer(&scale.status).and_then(Value::as_i64);
    status.insert("replicas".to_owned(), there.unwrap_or(0).into());
    let selector = selector(scale, object);
    if !selector.is_empty() {
        status.insert("selector".to_owned(), selector.into());
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

/// Sets the desired replicas of an object.
pub fn set(scale: &Scale, object: &mut Value, replicas: i64) {
    let mut here = object;
    for name in scale.spec.split('/').skip(1) {
        if !here.is_object() {
            *here = json!({});
        }
        here = &mut here[name.replace("~1", "/").replace("~0", "~")];
    }
    *here = replicas.into();
}

/// Converts a JSON pointer to the simple JSON path of a definition.
pub fn path(pointer: &str) -> String {
    pointer.replace('/', ".")
}

fn selector(scale: &Scale, object: &Value) -> String {
    let at = |pointer: &str| object.pointer(pointer).unwrap_or(&Value::Null);
    match &scale.selector {
        ScaleSelector::None => String::new(),
        ScaleSelector::Text(pointer) => at(pointer).as_str().unwrap_or_default().to_owned(),
        ScaleSelector::Map(pointer) => joined(labels(at(pointer))),
        ScaleSelector::Labels(pointer) => label_selector(at(pointer)),
    }
}

/// Formats a `LabelSelector` as text.
pub fn label_selector(selector: &Value) -> String {
    let mut terms = labels(&selector["matchLabels"]);
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    terms.extend(expressions.map(expression));
    joined(terms)
}

/// Terms with the keys they are sorted by.
type Terms = Vec<(String, String)>;

fn joined(mut terms: Terms) -> String {
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    terms.join(",")
}

fn labels(map: &Value) -> Terms {
    let members = map.as_object().into_iter().flatten();
    members
        .map(|(key, value)| {
            (
                key.clone(),
                format!("{key}={}", value.as_str().unwrap_or_default()),
            )
        })
        .collect()
}

fn expression(expression: &Value) -> (String, String) {
    let key = expression["key"].as_str().unwrap_or_default().to_owned();
    let listed = expression["values"].as_array().into_iter().flatten();
    let mut values: Vec<&str> = listed.filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    let term = match expression["operator"].as_str().unwrap_or_default() {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.clone(),
    };
    (key, term)
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use rstest::rstest;

    use super::*;
    use crate::catalog::Catalog;

    #[rstest]
    #[case(json!({}), "")]
    #[case(json!({ "matchLabels": { "b": "2", "a": "1" } }), "a=1,b=2")]
    #[case(json!({ "matchExpressions": [{ "key": "z", "operator": "Exists" }], "matchLabels": { "a": "b" } }), "a=b,z")]
    #[case(json!({ "matchExpressions": [{ "key": "k", "operator": "In", "values": ["y", "x"] }] }), "k in (x,y)")]
    #[case(json!({ "matchExpressions": [{ "key": "k", "operator": "NotIn", "values": ["x"] }] }), "k notin (x)")]
    #[case(json!({ "matchExpressions": [{ "key": "k", "operator": "DoesNotExist" }] }), "!k")]
    fn selectors_are_formatted_as_text(#[case] selector: Value, #[case] text: &str) {
        let kind = Catalog::builtin(Version::NEWEST)
            .find("apps", "deployments")
            .cloned()
            .unwrap();
        let shown = shown(&kind, &json!({ "spec": { "selector": selector, "replicas": 2 } })).unwrap();
        assert_eq!(shown["spec"]["replicas"], 2);
        assert_eq!(shown["status"]["selector"].as_str().unwrap_or_default(), text);
    }
}
