//! Cells of custom resources, admission webhooks, certificate signing requests, CSI drivers, flow control and API services.
//!
//! Source: apiextensions-apiserver `tableconvertor.go` (`cellForJSONValue`); kubernetes
//! `pkg/printers/internalversion/printers.go`; kube-aggregator `registry/apiservice/etcd`.

use std::time::Duration;

use apimachinery::encode::encode_json;
use serde_json::Value;

use super::{Row, list, selectors, text};
use crate::age;

/// Returns the cell of a custom resource's value in a column of this type; null if the value has another type.
pub(super) fn printed(value: &Value, column_type: &str, now: Duration) -> Value {
    match (column_type, value) {
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::Null) => "<nil>".into(),
        ("string", Value::Array(_) | Value::Object(_)) => {
            String::from_utf8_lossy(&encode_json(value)).into_owned().into()
        }
        ("string", Value::Bool(_) | Value::Number(_)) => value.to_string().into(),
        ("integer", Value::Number(number)) => {
            #[expect(clippy::cast_possible_truncation, reason = "as Go cuts a number off")]
            let cut = number.as_f64().map(|number| number as i64);
            number.as_i64().or(cut).into()
        }
        ("number", Value::Number(_)) => value.clone(),
        ("date", Value::String(time)) if time.is_empty() => age::UNKNOWN.into(),
        ("date", Value::String(time)) => match age::seconds(time) {
            Some(_) => age::since(Some(time), now).into(),
            None => "<invalid>".into(),
        },
        (_, _) => Value::Null,
    }
}

pub(super) fn api_service(row: &Row<'_>) -> Value {
    match row
        .object
        .pointer("/spec/service")
        .filter(|service| service.is_object())
    {
        None => "Local".into(),
        Some(service) => format!("{}/{}", text(service, "/namespace"), text(service, "/name")).into(),
    }
}

pub(super) fn api_availability(row: &Row<'_>) -> Value {
    match row.condition("Available") {
        None => "Unknown".into(),
        Some(condition) if condition["status"] == "True" => "True".into(),
        Some(condition) => format!("{} ({})", text(condition, "/status"), text(condition, "/reason")).into(),
    }
}

pub(super) fn requested_duration(row: &Row<'_>) -> Value {
    let seconds = row
        .object
        .pointer("/spec/expirationSeconds")
        .and_then(Value::as_f64);
    seconds.map_or("<none>".into(), |seconds| age::human(seconds).into())
}

pub(super) fn signing_state(row: &Row<'_>) -> Value {
    let mut state = match (row.condition("Denied"), row.condition("Approved")) {
        (Some(_), _) => "Denied",
        (None, Some(_)) => "Approved",
        (None, None) => "Pending",
    }
    .to_owned();
    if row.condition("Failed").is_some() {
        state.push_str(",Failed");
    }
    if !row.text("/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    state.into()
}

pub(super) fn token_audiences(row: &Row<'_>) -> Value {
    let requests = row
        .object
        .pointer("/spec/tokenRequests")
        .and_then(Value::as_array);
    requests.map_or("<unset>".into(), |requests| {
        super::joined(requests, "/audience", ",").into()
    })
}

pub(super) fn driver_modes(row: &Row<'_>) -> Value {
    let modes: Vec<&str> = row
        .list("/spec/volumeLifecycleModes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match modes.as_slice() {
        [] => "<none>".into(),
        modes => modes.join(",").into(),
    }
}

pub(super) fn admission_parameter_kind(row: &Row<'_>) -> Value {
    match row
        .object
        .pointer("/spec/paramKind")
        .filter(|kind| kind.is_object())
    {
        None => "<unset>".into(),
        Some(kind) => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")).into(),
    }
}

pub(super) fn admission_parameter(row: &Row<'_>) -> Value {
    let Some(parameter) = row
        .object
        .pointer("/spec/paramRef")
        .filter(|value| value.is_object())
    else {
        return "<unset>".into();
    };
    match (
        text(parameter, "/name"),
        text(parameter, "/namespace"),
        parameter.get("selector"),
    ) {
        ("", _, Some(selector)) => go_selector(selector).into(),
        ("", _, None) => "<unset>".into(),
        (name, "", _) => format!("*/{name}").into(),
        (name, namespace, _) => format!("{namespace}/{name}").into(),
    }
}

/// Formats a selector as Go's protobuf `String` does.
fn go_selector(selector: &Value) -> String {
    let mut labels: Vec<String> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort();
    let expressions = list(selector, "/matchExpressions").iter().map(|expression| {
        let values: Vec<&str> = list(expression, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(expression, "/key"),
            text(expression, "/operator"),
            values.join(" ")
        )
    });
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.collect::<String>()
    )
}

pub(super) fn claim_state(row: &Row<'_>) -> Value {
    let allocated = row
        .object
        .pointer("/status/allocation")
        .is_some_and(Value::is_object);
    let reserved = allocated && !row.list("/status/reservedFor").is_empty();
    let states = [
        (row.is_deleted(), "deleted"),
        (!allocated && !row.is_deleted(), "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    let states = states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state);
    states.collect::<Vec<_>>().join(",").into()
}

/// Returns whether the priority level of a flow schema is missing.
pub(super) fn dangling(row: &Row<'_>) -> Value {
    row.condition("Dangling")
        .map_or("?", |condition| text(condition, "/status"))
        .into()
}

/// Returns a number of a priority level of type Limited.
pub(super) fn limited(row: &Row<'_>, pointer: &str) -> Value {
    row.object
        .pointer(pointer)
        .cloned()
        .unwrap_or_else(|| "<none>".into())
}

/// Returns the last of the conditions that end a request for a pod's certificate.
pub(super) fn certificate_state(row: &Row<'_>) -> Value {
    let ends = row
        .list("/status/conditions")
        .iter()
        .map(|condition| text(condition, "/type"));
    let last = ends
        .rev()
        .find(|name| ["Issued", "Denied", "Failed"].contains(name));
    last.unwrap_or("Pending").into()
}

pub(super) fn unverified_annotations(row: &Row<'_>) -> Value {
    selectors::labels(row.object.pointer("/spec/unverifiedUserAnnotations")).into()
}

/// Returns the group and resource of a storage migration: `resource.group`.
pub(super) fn migrated_resource(row: &Row<'_>) -> Value {
    let of = |field: &str| text(row.object, field);
    match (of("/spec/resource/resource"), of("/spec/resource/group")) {
        (resource, "") => resource.into(),
        (resource, group) => format!("{resource}.{group}").into(),
    }
}

/// Returns the last condition of a storage migration that holds.
pub(super) fn migration_state(row: &Row<'_>) -> Value {
    let conditions = row.list("/status/conditions").iter();
    let holding = conditions.filter(|condition| text(condition, "/status") == "True");
    let names = holding.map(|condition| text(condition, "/type"));
    let last = names
        .rev()
        .find(|name| ["Running", "Failed", "Succeeded"].contains(name));
    last.unwrap_or("Unknown").into()
}

/// Returns the age of a taint.
pub(super) fn tainted_since(row: &Row<'_>) -> Value {
    row.age("/spec/taint/timeAdded").into()
}

/// Returns the served versions of a definition, in order, with the stored one marked (apiextensions `tableconvertor`).
pub(super) fn served_versions(row: &Row<'_>) -> Value {
    let served = row.list("/spec/versions").iter();
    let served = served.filter(|version| version["served"] == true);
    let mut names: Vec<String> = served
        .map(|version| {
            let mark = if version["storage"] == true {
                "(storage)"
            } else {
                ""
            };
            format!("{}{mark}", text(version, "/name"))
        })
        .collect();
    names.sort();
    names.join(",").into()
}

pub(super) fn short_names(row: &Row<'_>) -> Value {
    let names = row.list("/spec/names/shortNames").iter();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    names.join(",").into()
}

pub(super) fn is_established(row: &Row<'_>) -> Value {
    let holds = |condition: &Value| condition["status"] == "True";
    row.condition("Established").is_some_and(holds).into()
}
