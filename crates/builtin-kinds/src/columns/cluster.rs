//! Cells of nodes, volumes, quotas, role bindings and events.
//!
//! Source: kubernetes `pkg/printers/internalversion/printers.go`; `pkg/apis/core/v1/helper` for volumes;
//! `pkg/apis/rbac/helpers.go` for subjects.

use std::collections::BTreeSet;

use apimachinery::Version;
use serde_json::Value;

use super::workloads::{quantity, quantity_at};
use super::{Row, text};
use crate::age;

// ---- nodes

pub(super) fn node_status(row: &Row<'_>) -> Value {
    let ready = match row.condition("Ready") {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match row.object.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{ready},SchedulingDisabled").into(),
        Some(_) | None => ready.into(),
    }
}

pub(super) fn node_roles(row: &Row<'_>) -> Value {
    let labels = row.object["metadata"]["labels"].as_object();
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(
            |(name, value)| match name.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if name == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".into();
    }
    roles.into_iter().collect::<Vec<_>>().join(",").into()
}

pub(super) fn node_internal_ip(row: &Row<'_>) -> Value {
    node_address(row, "InternalIP")
}

pub(super) fn node_external_ip(row: &Row<'_>) -> Value {
    node_address(row, "ExternalIP")
}

fn node_address(row: &Row<'_>, kind: &str) -> Value {
    let addresses = row.list("/status/addresses");
    let found = addresses.iter().find(|address| address["type"] == kind);
    found.map_or("<none>", |address| text(address, "/address")).into()
}

pub(super) fn node_kernel(row: &Row<'_>) -> Value {
    let kernel = match row.text("/status/nodeInfo/kernelVersion") {
        "" => "<unknown>",
        kernel => kernel,
    };
    match row.text("/status/nodeInfo/architecture") {
        architecture if !architecture.is_empty() && row.version >= Version::V1_36 => {
            format!("{kernel} ({architecture})").into()
        }
        _ => kernel.into(),
    }
}

pub(super) fn component_status(row: &Row<'_>) -> Value {
    let conditions = row.list("/conditions");
    match conditions.iter().find(|condition| condition["type"] == "Healthy") {
        Some(condition) if condition["status"] == "True" => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
        None => "Unknown".into(),
    }
}

// ---- volumes

pub(super) fn volume_status(row: &Row<'_>) -> Value {
    match row.is_deleted() {
        true => "Terminating".into(),
        false => row.text("/status/phase").into(),
    }
}

pub(super) fn volume_capacity(row: &Row<'_>) -> Value {
    quantity_at(row.object, "/spec/capacity/storage").into()
}

pub(super) fn volume_access_modes(row: &Row<'_>) -> Value {
    access_modes(row.list("/spec/accessModes")).into()
}

pub(super) fn volume_claim(row: &Row<'_>) -> Value {
    let claim = row
        .object
        .pointer("/spec/claimRef")
        .filter(|claim| claim.is_object());
    claim
        .map_or(String::new(), |claim| {
            format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
        })
        .into()
}

/// A claim has a capacity once it is bound to a volume.
pub(super) fn claim_capacity(row: &Row<'_>) -> Value {
    match row.text("/spec/volumeName") {
        "" => "".into(),
        _ => quantity_at(row.object, "/status/capacity/storage").into(),
    }
}

pub(super) fn claim_access_modes(row: &Row<'_>) -> Value {
    match row.text("/spec/volumeName") {
        "" => "".into(),
        _ => access_modes(row.list("/status/accessModes")).into(),
    }
}

pub(super) fn storage_class_of(row: &Row<'_>) -> Value {
    let annotations = &row.object["metadata"]["annotations"];
    match annotations["volume.beta.kubernetes.io/storage-class"].as_str() {
        Some(class) => class.into(),
        None => row.text("/spec/storageClassName").into(),
    }
}

pub(super) fn storage_class_name(row: &Row<'_>) -> Value {
    const DEFAULT: [&str; 2] = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let annotations = &row.object["metadata"]["annotations"];
    let name = row.text("/metadata/name");
    match DEFAULT.iter().any(|annotation| annotations[annotation] == "true") {
        true => format!("{name} (default)").into(),
        false => name.into(),
    }
}

fn access_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let shown = SHORT
        .iter()
        .filter(|(mode, _)| modes.iter().any(|sent| sent == mode));
    shown.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

// ---- quotas

pub(super) fn quota_requests(row: &Row<'_>) -> Value {
    quota(row, false)
}

pub(super) fn quota_limits(row: &Row<'_>) -> Value {
    quota(row, true)
}

fn quota(row: &Row<'_>, limits: bool) -> Value {
    let hard = row.object.pointer("/status/hard").and_then(Value::as_object);
    let mut shown: Vec<(&String, String)> = hard
        .into_iter()
        .flatten()
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = row.object["status"]["used"].get(resource);
            let used = used.map_or("0".to_owned(), quantity);
            (resource, format!("{resource}: {used}/{}", quantity(hard)))
        })
        .collect();
    shown.sort();
    let shown: Vec<String> = shown.into_iter().map(|(_, shown)| shown).collect();
    shown.join(", ").into()
}

// ---- role bindings

pub(super) fn bound_role(row: &Row<'_>) -> Value {
    format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name")).into()
}

pub(super) fn bound_users(row: &Row<'_>) -> Value {
    subjects(row, "User")
}

pub(super) fn bound_groups(row: &Row<'_>) -> Value {
    subjects(row, "Group")
}

pub(super) fn bound_service_accounts(row: &Row<'_>) -> Value {
    subjects(row, "ServiceAccount")
}

fn subjects(row: &Row<'_>, kind: &str) -> Value {
    let subjects = row
        .list("/subjects")
        .iter()
        .filter(|subject| subject["kind"] == kind);
    let shown = subjects.map(|subject| match (kind, text(subject, "/namespace")) {
        ("ServiceAccount", namespace) => format!("{namespace}/{}", text(subject, "/name")),
        (_, _) => text(subject, "/name").to_owned(),
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

// ---- events of both groups: the deprecated fields of one are those of the other

pub(super) fn event_last_seen(row: &Row<'_>) -> Value {
    if row.object["series"].is_object() {
        return row.age("/series/lastObservedTime").into();
    }
    match either(row, "/lastTimestamp", "/deprecatedLastTimestamp") {
        "" => event_first_seen(row),
        time => age::since(Some(time), row.now).into(),
    }
}

pub(super) fn event_first_seen(row: &Row<'_>) -> Value {
    match either(row, "/firstTimestamp", "/deprecatedFirstTimestamp") {
        "" => row.age("/eventTime").into(),
        time => age::since(Some(time), row.now).into(),
    }
}

pub(super) fn event_object(row: &Row<'_>) -> Value {
    let kind = either(row, "/involvedObject/kind", "/regarding/kind").to_lowercase();
    match either(row, "/involvedObject/name", "/regarding/name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

pub(super) fn event_subobject(row: &Row<'_>) -> Value {
    either(row, "/involvedObject/fieldPath", "/regarding/fieldPath").into()
}

pub(super) fn event_source(row: &Row<'_>) -> Value {
    let first = |texts: [&'static str; 4]| {
        let texts = texts.into_iter().map(|pointer| row.text(pointer));
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let component = first([
        "/source/component",
        "/deprecatedSource/component",
        "/reportingComponent",
        "/reportingController",
    ]);
    match first([
        "/source/host",
        "/deprecatedSource/host",
        "/reportingInstance",
        "/reportingInstance",
    ]) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

pub(super) fn event_message(row: &Row<'_>) -> Value {
    either(row, "/message", "/note").trim().into()
}

pub(super) fn event_count(row: &Row<'_>) -> Value {
    if row.object["series"].is_object() {
        return row.number("/series/count").into();
    }
    match row.number("/count") + row.number("/deprecatedCount") {
        // A single event has no count.
        0 => 1.into(),
        count => count.into(),
    }
}

fn either<'a>(row: &Row<'a>, pointer: &str, other: &str) -> &'a str {
    match row.text(pointer) {
        "" => row.text(other),
        text => text,
    }
}
