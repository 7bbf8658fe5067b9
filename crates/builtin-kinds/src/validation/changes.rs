//! Validation of updates: immutable fields.
//!
//! Source: the `Validate…Update` functions of kubernetes `pkg/apis/*/validation`.

use apimachinery::Version;
use apimachinery::go_text;
use serde_json::{Map, Value, json};

use super::metadata::IMMUTABLE;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types;
use crate::types::Struct;

/// Validates the update from `old` to `object`; both are complete.
pub(super) fn check(known: &Struct, object: &Value, old: &Value, version: Version, errors: &mut ErrorList) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    match known.name {
        "core/v1.Pod" => pod(spec, old_spec, errors),
        "core/v1.ConfigMap" => sealed(object, old, &["data", "binaryData"], errors),
        "core/v1.Secret" => {
            immutable("type", &object["type"], &old["type"], errors);
            sealed(object, old, &["data"], errors);
        }
        "core/v1.PersistentVolumeClaim" => claim(object, old, errors),
        "core/v1.Service" => addresses(spec, old_spec, errors),
        "apps/v1.Deployment" | "apps/v1.ReplicaSet" | "apps/v1.DaemonSet" => {
            immutable("spec.selector", &spec["selector"], &old_spec["selector"], errors);
        }
        "apps/v1.StatefulSet" => stateful_set(spec, old_spec, version, errors),
        "batch/v1.Job" => job(spec, old_spec, errors),
        "rbac/v1.RoleBinding" | "rbac/v1.ClusterRoleBinding" => {
            let role = &object["roleRef"];
            if role != &old["roleRef"] {
                let shown = json!({
                    "APIGroup": role["apiGroup"],
                    "Kind": role["kind"],
                    "Name": role["name"],
                });
                let why = match version >= Version::V1_37 {
                    true => "field is immutable",
                    false => "cannot change roleRef",
                };
                errors.invalid("roleRef", &shown, why);
            }
        }
        "storage/v1.StorageClass" => {
            for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                if object[field] != old[field] {
                    errors.forbidden(field, "updates to provisioner are forbidden.");
                }
            }
        }
        _ => {}
    }
}

fn immutable(path: &str, value: &Value, old: &Value, errors: &mut ErrorList) {
    if value != old {
        errors.invalid(path, value, IMMUTABLE);
    }
}

/// Validates that an object with `immutable` set keeps it, and the fields `fields`.
fn sealed(object: &Value, old: &Value, fields: &[&str], errors: &mut ErrorList) {
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        errors.forbidden("immutable", why);
    }
    for field in fields.iter().filter(|field| object[**field] != old[**field]) {
        errors.forbidden(field, why);
    }
}

fn pod(spec: &Value, old: &Value, errors: &mut ErrorList) {
    for field in ["containers", "initContainers"] {
        if list(spec, field).len() != list(old, field).len() {
            errors.forbidden(
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
            errors.invalid(at, &new.into(), "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => errors.invalid(
            at,
            &Value::Null,
            "must not update from a positive integer to nil value",
        ),
        (_, _) => {}
    }
    // kube-apiserver appends a diff of its internal structs.
    if fixed(spec, old) != fixed(old, old) {
        errors.forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
}

/// Validates an update of ephemeral containers: existing ones must not change.
pub(super) fn ephemeral_containers(object: &Value, old: &Value, errors: &mut ErrorList) {
    let containers = list(&object["spec"], "ephemeralContainers");
    for before in list(&old["spec"], "ephemeralContainers") {
        let name = before["name"].as_str().unwrap_or_default();
        let what = format!("existing ephemeral containers {}", go_text::quote(name));
        match containers
            .iter()
            .find(|container| container["name"] == before["name"])
        {
            None => errors.forbidden(
                "spec.ephemeralContainers",
                &format!("{what} may not be removed\n"),
            ),
            // kube-apiserver appends a diff of its internal structs.
            Some(now) if now != before => errors.forbidden(
                "spec.ephemeralContainers",
                &format!("{what} may not be changed\n"),
            ),
            Some(_) => {}
        }
    }
}

/// Returns the spec without its mutable fields.
fn fixed(spec: &Value, old: &Value) -> Map<String, Value> {
    let mut fixed = spec.as_object().cloned().unwrap_or_default();
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    let shortened = grace(old).is_some_and(|seconds| seconds < 0) && grace(spec) == Some(1);
    let gated = !list(old, "schedulingGates").is_empty();
    fixed.retain(|field, _| match field.as_str() {
        "activeDeadlineSeconds" | "tolerations" | "schedulingGates" => false,
        "terminationGracePeriodSeconds" => !shortened && grace(old).is_none_or(|seconds| seconds >= 0),
        // Node selection can be narrowed while the pod has scheduling gates.
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

/// Validates an update of a claim: immutable, except for its volume and, once bound, a larger request and its attributes
/// class.
fn claim(object: &Value, old: &Value, errors: &mut ErrorList) {
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
    // kube-apiserver appends a diff of its internal structs.
    if fixed(spec) != fixed(was) {
        errors.forbidden(
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
        errors.forbidden(
            "spec.resources.requests.storage",
            "field can not be less than status.capacity",
        );
    }
    immutable("volumeMode", &spec["volumeMode"], &was["volumeMode"], errors);
}

/// Validates that a service keeps its primary cluster IP.
fn addresses(spec: &Value, old: &Value, errors: &mut ErrorList) {
    let named = |spec: &Value| spec["type"] == "ExternalName";
    let first = |spec: &Value| spec["clusterIPs"][0].as_str().unwrap_or_default().to_owned();
    if named(spec) || named(old) || first(old).is_empty() {
        return;
    }
    if first(spec) != first(old) {
        errors.invalid(
            "spec.clusterIPs[0]",
            &spec["clusterIPs"],
            "may not change once set",
        );
    }
}

fn stateful_set(spec: &Value, old: &Value, version: Version, errors: &mut ErrorList) {
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
    let before = errors.len();
    if version >= Version::V1_37 {
        for field in ["serviceName", "podManagementPolicy", "selector"] {
            immutable(&format!("spec.{field}"), &spec[field], &old[field], errors);
        }
    }
    if errors.len() == before && fixed(spec) != fixed(old) {
        errors.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
             'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

fn job(spec: &Value, old: &Value, errors: &mut ErrorList) {
    // An indexed job can be scaled by changing completions and parallelism together.
    let elastic = spec["completionMode"] == "Indexed" && spec["completions"] == spec["parallelism"];
    if !elastic {
        immutable(
            "spec.completions",
            &spec["completions"],
            &old["completions"],
            errors,
        );
    }
    immutable("spec.selector", &spec["selector"], &old["selector"], errors);
    // The scheduling fields of a suspended job's template are mutable.
    if old["suspend"] != true {
        immutable("spec.template", &spec["template"], &old["template"], errors);
    }
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
    ] {
        immutable(&format!("spec.{field}"), &spec[field], &old[field], errors);
    }
}
