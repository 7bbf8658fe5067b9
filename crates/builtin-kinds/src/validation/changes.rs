//! What of an object must not change once it is there.
//!
//! Source: the `Validate…Update` functions of kubernetes `pkg/apis/*/validation`.

use apimachinery::go_text;
use serde_json::{Map, Value, json};

use super::metadata::IMMUTABLE;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types;
use crate::types::Struct;

/// Checks `object`, which is to replace `old`; both are complete.
pub(super) fn check(known: &Struct, object: &Value, old: &Value, found: &mut ErrorList) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    match known.name {
        "core/v1.Pod" => pod(spec, old_spec, found),
        "core/v1.ConfigMap" => sealed(object, old, &["data", "binaryData"], found),
        "core/v1.Secret" => {
            immutable("type", &object["type"], &old["type"], found);
            sealed(object, old, &["data"], found);
        }
        "core/v1.PersistentVolumeClaim" => claim(object, old, found),
        "core/v1.Service" => addresses(spec, old_spec, found),
        "apps/v1.Deployment" | "apps/v1.ReplicaSet" | "apps/v1.DaemonSet" => {
            immutable("spec.selector", &spec["selector"], &old_spec["selector"], found);
        }
        "apps/v1.StatefulSet" => stateful_set(spec, old_spec, found),
        "batch/v1.Job" => job(spec, old_spec, found),
        "rbac/v1.RoleBinding" | "rbac/v1.ClusterRoleBinding" => {
            let role = &object["roleRef"];
            if role != &old["roleRef"] {
                let shown = json!({
                    "APIGroup": role["apiGroup"],
                    "Kind": role["kind"],
                    "Name": role["name"],
                });
                found.invalid("roleRef", &shown, "cannot change roleRef");
            }
        }
        "storage/v1.StorageClass" => {
            for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                if object[field] != old[field] {
                    found.forbidden(field, "updates to provisioner are forbidden.");
                }
            }
        }
        _ => {}
    }
}

fn immutable(path: &str, value: &Value, old: &Value, found: &mut ErrorList) {
    if value != old {
        found.invalid(path, value, IMMUTABLE);
    }
}

/// What calls itself immutable stays so, and as it is.
fn sealed(object: &Value, old: &Value, fields: &[&str], found: &mut ErrorList) {
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        found.forbidden("immutable", why);
    }
    for field in fields.iter().filter(|field| object[**field] != old[**field]) {
        found.forbidden(field, why);
    }
}

fn pod(spec: &Value, old: &Value, found: &mut ErrorList) {
    for field in ["containers", "initContainers"] {
        if list(spec, field).len() != list(old, field).len() {
            found.forbidden(
                &format!("spec.{field}"),
                "pod updates may not add or remove containers",
            );
            return;
        }
    }
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    let at = "spec.activeDeadlineSeconds";
    match (deadline(spec), deadline(old)) {
        (Some(new), Some(old)) if new > old => {
            found.invalid(at, &new.into(), "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => found.invalid(
            at,
            &Value::Null,
            "must not update from a positive integer to nil value",
        ),
        (_, _) => {}
    }
    // A real server shows the difference behind it, in structs of its own.
    if fixed(spec, old) != fixed(old, old) {
        found.forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
}

/// A container that came later stays as it came.
pub(super) fn ephemeral_containers(object: &Value, old: &Value, found: &mut ErrorList) {
    let containers = list(&object["spec"], "ephemeralContainers");
    for before in list(&old["spec"], "ephemeralContainers") {
        let name = before["name"].as_str().unwrap_or_default();
        let what = format!("existing ephemeral containers {}", go_text::quote(name));
        match containers
            .iter()
            .find(|container| container["name"] == before["name"])
        {
            None => found.forbidden(
                "spec.ephemeralContainers",
                &format!("{what} may not be removed\n"),
            ),
            // A real server shows the difference behind it, in structs of its own.
            Some(now) if now != before => found.forbidden(
                "spec.ephemeralContainers",
                &format!("{what} may not be changed\n"),
            ),
            Some(_) => {}
        }
    }
}

/// The spec without what may change.
fn fixed(spec: &Value, old: &Value) -> Map<String, Value> {
    let mut fixed = spec.as_object().cloned().unwrap_or_default();
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    let shortened = grace(old).is_some_and(|seconds| seconds < 0) && grace(spec) == Some(1);
    let gated = !list(old, "schedulingGates").is_empty();
    fixed.retain(|field, _| match field.as_str() {
        "activeDeadlineSeconds" | "tolerations" | "schedulingGates" => false,
        "terminationGracePeriodSeconds" => !shortened && grace(old).is_none_or(|seconds| seconds >= 0),
        // Where it shall run may be said more exactly as long as nobody looks for a place.
        "nodeSelector" | "affinity" => !gated,
        _ => true,
    });
    for field in ["containers", "initContainers"] {
        let containers = fixed.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            container["image"] = Value::Null;
        }
    }
    fixed
}

/// A claim is what it is from its creation on, but for the volume it gets, and for what a bound one may ask for more.
fn claim(object: &Value, old: &Value, found: &mut ErrorList) {
    let (spec, was) = (&object["spec"], &old["spec"]);
    let bound = object["status"]["phase"] == "Bound";
    let fixed = |spec: &Value| {
        let mut fixed = spec.as_object().cloned().unwrap_or_default();
        fixed.retain(|field, _| match field.as_str() {
            "volumeName" => !was["volumeName"].is_null(),
            "volumeAttributesClassName" => !bound,
            _ => true,
        });
        if bound && let Some(resources) = fixed.get_mut("resources").and_then(Value::as_object_mut) {
            resources.remove("requests");
        }
        fixed
    };
    // A real server shows the difference behind it, in structs of its own.
    if fixed(spec) != fixed(was) {
        found.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        );
    }
    let amount = |at: &Value| types::amount(at["storage"].as_str().unwrap_or_default());
    let (wanted, wanted_before) = (
        amount(&spec["resources"]["requests"]),
        amount(&was["resources"]["requests"]),
    );
    if bound && wanted < wanted_before && wanted < amount(&old["status"]["capacity"]) {
        found.forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        );
    }
    immutable("volumeMode", &spec["volumeMode"], &was["volumeMode"], found);
}

/// A service keeps its first address as long as it has one of its own.
fn addresses(spec: &Value, old: &Value, found: &mut ErrorList) {
    let named = |spec: &Value| spec["type"] == "ExternalName";
    let first = |spec: &Value| spec["clusterIPs"][0].as_str().unwrap_or_default().to_owned();
    if named(spec) || named(old) || first(old).is_empty() {
        return;
    }
    if first(spec) != first(old) {
        found.invalid(
            "spec.clusterIPs[0]",
            &spec["clusterIPs"],
            "may not change once set",
        );
    }
}

fn stateful_set(spec: &Value, old: &Value, found: &mut ErrorList) {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |spec: &Value| {
        let fields = spec.as_object().into_iter().flatten();
        let fixed = fields.filter(|(field, _)| !MUTABLE.contains(&field.as_str()));
        fixed
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect::<Map<_, _>>()
    };
    if fixed(spec) != fixed(old) {
        found.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn job(spec: &Value, old: &Value, found: &mut ErrorList) {
    // An indexed job may grow and shrink along with its parallelism.
    let elastic = spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    if !elastic {
        immutable(
            "spec.completions",
            &spec["completions"],
            &old["completions"],
            found,
        );
    }
    immutable("spec.selector", &spec["selector"], &old["selector"], found);
    // Where the pods of a suspended job go may be said before they are there.
    if old["suspend"] != true {
        immutable("spec.template", &spec["template"], &old["template"], found);
    }
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
    ] {
        immutable(&format!("spec.{field}"), &spec[field], &old[field], found);
    }
}
