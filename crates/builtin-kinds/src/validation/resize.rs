//! Validation of updates through the `resize` subresource of a pod.
//!
//! Source: `ValidatePodResize` of kubernetes `pkg/apis/core/validation`.

use apimachinery::Version;
use serde_json::{Value, json};

use crate::error_list::ErrorList;
use crate::fields::list;
use crate::quality;

/// Lists of containers, each with its name in error texts.
const LISTS: [(&str, &str); 2] = [("containers", "containers"), ("initContainers", "initContainers")];

/// Validates the update from `old` to `object`; both are complete.
pub(super) fn check(object: &Value, old: &Value, version: Version, errors: &mut ErrorList) {
    let (spec, before) = (&object["spec"], &old["spec"]);
    let class = old["status"]["qosClass"].as_str();
    if class.unwrap_or_else(|| quality::of(old)) != quality::of(object) {
        let class = object["status"]["qosClass"].as_str().unwrap_or_default();
        errors.invalid(
            "spec",
            &class.into(),
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    if !can_resize(&old["status"]) {
        errors.forbidden("spec", "Pod running on node without support for resize");
    }
    if !same_containers(spec, before, errors) {
        return;
    }
    for field in ["initContainers", "containers"] {
        for (nth, (now, was)) in list(spec, field).iter().zip(list(before, field)).enumerate() {
            if field == "containers" || may_be_resized(was, version) {
                removed(now, was, &format!("spec.{field}[{nth}].resources"), errors);
            }
        }
    }
    for (now, was) in list(spec, "containers").iter().zip(list(before, "containers")) {
        if fixed(now) != fixed(was) {
            errors.forbidden("spec", "only cpu and memory resources are mutable");
        }
    }
    let init = list(spec, "initContainers")
        .iter()
        .zip(list(before, "initContainers"));
    for (nth, (now, was)) in init.enumerate() {
        if !may_be_resized(was, version) {
            if now != was {
                errors.forbidden("spec", "resources for non-sidecar init containers are immutable");
            }
        } else if fixed(now) != fixed(was) {
            let (what, at) = if version >= Version::V1_36 {
                ("init or sidecar", format!("spec.initContainers[{nth}]"))
            } else {
                ("sidecar", "spec".to_owned())
            };
            let why = format!("only cpu and memory resources for {what} containers are mutable");
            errors.forbidden(&at, &why);
        }
    }
}

/// Returns whether the node of the pod supports resizing: if it does, it reports container resources.
fn can_resize(status: &Value) -> bool {
    let mut running = list(status, "containerStatuses")
        .iter()
        .filter(|container| !container["state"]["running"].is_null());
    running
        .next()
        .is_none_or(|container| !container["resources"].is_null())
}

/// Non-restartable init containers can be resized since 1.36.
fn may_be_resized(container: &Value, version: Version) -> bool {
    container["restartPolicy"] == "Always" || version >= Version::V1_36
}

fn same_containers(spec: &Value, before: &Value, errors: &mut ErrorList) -> bool {
    let mut same = true;
    for (field, what) in LISTS {
        let (now, was) = (list(spec, field), list(before, field));
        if now.len() != was.len() {
            same = false;
            let why = format!("{what} may not be added or removed on resize");
            errors.forbidden(&format!("spec.{field}"), &why);
            continue;
        }
        for (nth, (now, was)) in now.iter().zip(was).enumerate() {
            if now["name"] != was["name"] {
                same = false;
                let why = format!("{what} may not be renamed or reordered on resize");
                errors.forbidden(&format!("spec.{field}[{nth}].name"), &why);
            }
        }
    }
    same
}

/// Validates that no request or limit is removed.
fn removed(now: &Value, was: &Value, at: &str, errors: &mut ErrorList) {
    for field in ["requests", "limits"] {
        let of = |container: &Value| {
            container["resources"][field]
                .as_object()
                .cloned()
                .unwrap_or_default()
        };
        let now = of(now);
        if of(was).keys().any(|resource| !now.contains_key(resource)) {
            let why = format!("resource {field} cannot be removed");
            errors.forbidden(&format!("{at}.{field}"), &why);
        }
    }
}

/// Returns the container without its mutable resources.
fn fixed(container: &Value) -> Value {
    let mut fixed = container.clone();
    for field in ["requests", "limits"] {
        let Some(amounts) = fixed["resources"][field].as_object_mut() else {
            fixed["resources"][field] = json!({});
            continue;
        };
        amounts.retain(|resource, _| !matches!(resource.as_str(), "cpu" | "memory"));
    }
    fixed
}
