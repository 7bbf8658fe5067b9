//! Fields that a write to a subresource can change: all others keep their values, whatever the body contains.
//!
//! Source: the `PrepareForUpdate` functions of the strategies in kubernetes `pkg/registry`.

use std::collections::{HashMap, VecDeque};

use apimachinery::kind::{ApiResource, Deletion};
use apimachinery::write::Subresource;
use builtin_kinds::{ownership, types};
use serde_json::{Value, json};

use super::remove;

/// Returns the result of a write of `object` to this subresource of `current`.
pub(super) fn written(
    kind: &ApiResource,
    part: Option<Subresource>,
    current: &Value,
    object: Value,
) -> Value {
    match part {
        None | Some(Subresource::Scale) => main_part(kind, current, object),
        Some(Subresource::Status) => status_part(kind, current, object),
        Some(Subresource::EphemeralContainers) => {
            let mut changed = current.clone();
            take(&mut changed["spec"], &object["spec"], "ephemeralContainers");
            with_version_of(&object, changed)
        }
        Some(Subresource::Resize) => resize_part(current, object),
        Some(Subresource::Finalize) => {
            let mut finalized = current.clone();
            finalized["spec"] = object["spec"].clone();
            if finalized["spec"].is_null() {
                finalized["spec"] = json!({});
            }
            finalized
        }
    }
}

/// Result of an update of the object itself, which keeps the status if that is a subresource.
fn main_part(kind: &ApiResource, current: &Value, mut object: Value) -> Value {
    if kind.status {
        match current.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => remove(&mut object, "status"),
        }
    }
    if kind.deletion == Deletion::WhenEmpty {
        object["spec"] = current["spec"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = current["metadata"]["name"].clone();
    }
    object
}

/// Result of an update of the status; for built-in kinds the metadata changes too.
fn status_part(kind: &ApiResource, current: &Value, mut object: Value) -> Value {
    let mut changed = current.clone();
    match object.get_mut("status").map(Value::take) {
        Some(status) => changed["status"] = status,
        None => remove(&mut changed, "status"),
    }
    if !kind.custom {
        changed["metadata"] = object["metadata"].take();
        for field in ownership::kept_by_status(kind) {
            take(&mut changed["metadata"], &current["metadata"], field);
        }
        if types::of(kind).is_some_and(|known| known.name == "core/v1.Pod") {
            keep_pod_status(&current["status"], &mut changed["status"]);
        }
    }
    changed
}

/// Keeps status fields that an older kubelet omits.
fn keep_pod_status(before: &Value, status: &mut Value) {
    if !status.is_object() {
        *status = json!({});
    }
    for field in ["qosClass", "observedGeneration"] {
        if status.get(field).is_none_or(|value| value == "" || value == 0) {
            take(status, before, field);
        }
    }
    let mut known: HashMap<&Value, VecDeque<&Value>> = HashMap::new();
    for old in before["conditions"].as_array().into_iter().flatten() {
        known.entry(&old["type"]).or_default().push_back(old);
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let old = known.get_mut(&condition["type"]).and_then(VecDeque::pop_front);
        if condition["observedGeneration"].as_i64().unwrap_or(0) == 0 {
            take(condition, old.unwrap_or(&Value::Null), "observedGeneration");
        }
    }
}

/// Result of a resize, which changes the resources of containers. With other containers the object is returned as sent, and
/// validation rejects it.
fn resize_part(current: &Value, object: Value) -> Value {
    let count = |pod: &Value, field: &str| pod["spec"][field].as_array().map_or(0, Vec::len);
    let fields = ["containers", "initContainers"];
    if fields
        .iter()
        .any(|field| count(current, field) != count(&object, field))
    {
        return object;
    }
    let mut changed = current.clone();
    take(&mut changed["spec"], &object["spec"], "resources");
    for field in fields {
        let sent = object["spec"][field].as_array().cloned().unwrap_or_default();
        let there = changed["spec"][field].as_array().cloned().unwrap_or_default();
        let same = sent
            .iter()
            .zip(&there)
            .all(|(sent, there)| sent["name"] == there["name"]);
        if !same {
            changed["spec"][field] = sent.into();
            continue;
        }
        for (nth, sent) in sent.iter().enumerate() {
            for part in ["resources", "resizePolicy"] {
                take(&mut changed["spec"][field][nth], sent, part);
            }
        }
    }
    with_version_of(&object, changed)
}

/// Sets the resourceVersion and uid of the request.
fn with_version_of(object: &Value, mut changed: Value) -> Value {
    for field in ["resourceVersion", "uid"] {
        take(&mut changed["metadata"], &object["metadata"], field);
    }
    changed
}

/// Copies a field from `from` to `to`; removes it if `from` does not have it.
fn take(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => to[field] = value.clone(),
        None => remove(to, field),
    }
}
