//! Validation of HorizontalPodAutoscalers: metrics and scaling behaviour.
//!
//! Source: kubernetes `pkg/apis/autoscaling/validation/validation.go`.

use apimachinery::Version;
use serde_json::Value;

use super::place::Place;
use crate::error_list::ErrorList;
use crate::types;

/// Types of metrics, and the field of each.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// Validates that the version of the scale target has a group.
pub(super) fn target_version(place: &Place<'_>, found: &mut ErrorList) {
    let target = &place.value["scaleTargetRef"];
    let version = target["apiVersion"].as_str().unwrap_or_default();
    let of_core = target["kind"] == "ReplicationController";
    if place.version >= Version::V1_34 && !version.contains('/') && !of_core {
        let at = place.at("scaleTargetRef.apiVersion");
        found.invalid(&at, &version.into(), "apiVersion must specify API group");
    }
}

/// Validates that a metric has exactly the field of its type.
pub(super) fn metric(place: &Place<'_>, found: &mut ErrorList) {
    let kind = place.text("type");
    let types = SOURCES.map(|(kind, _)| kind);
    if kind.is_empty() {
        found.required(&place.at("type"), "must specify a metric source type");
    }
    if !types.contains(&kind) {
        found.unsupported(&place.at("type"), &kind.into(), &types);
    }
    let said = |field: &str| !place.value[field].is_null();
    // kube-apiserver reports the first of them in this order.
    let order = ["object", "external", "pods", "resource", "containerResource"];
    if let Some(first) = order.into_iter().find(|field| said(field)) {
        source(first, &place.value[first], &place.at(first), found);
    }
    for (of, field) in SOURCES {
        if kind == of && !said(field) {
            found.required(
                &place.at(field),
                "must populate information for the given metric source",
            );
        } else if kind != of && said(field) {
            found.forbidden(&place.at(field), "must populate the given metric source only");
        }
    }
}

fn source(field: &str, source: &Value, path: &str, found: &mut ErrorList) {
    let target = &source["target"];
    let at = |field: &str| format!("{path}.target.{field}");
    match field {
        "resource" | "containerResource" if is_empty(&source["name"]) => {
            found.required(&format!("{path}.name"), "must specify a resource name");
        }
        "object" | "external" | "pods" if is_empty(&source["metric"]["name"]) => {
            found.required(&format!("{path}.metric.name"), "must specify a metric name");
        }
        _ => {}
    }
    if is_empty(&target["type"]) {
        found.required(&at("type"), "must specify a metric target type");
    }
    if !matches!(
        target["type"].as_str(),
        Some("Utilization" | "Value" | "AverageValue")
    ) {
        let shown = target["type"].as_str().unwrap_or_default();
        let why = "must be either Utilization, Value, or AverageValue";
        found.invalid(&at("type"), &shown.into(), why);
    }
    for field in ["value", "averageValue"] {
        let amount = &target[field];
        if amount.as_str().is_some_and(|amount| types::amount(amount) <= 0) {
            found.invalid(&at(field), amount, "must be positive");
        }
    }
    let utilization = &target["averageUtilization"];
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        found.invalid(&at("averageUtilization"), utilization, "must be greater than 0");
    }
    let said = |field: &str| !target[field].is_null();
    match field {
        "resource" | "containerResource" => match (said("averageUtilization"), said("averageValue")) {
            (false, false) => found.required(
                &at("averageUtilization"),
                "must set either a target raw value or a target utilization",
            ),
            (true, true) => found.forbidden(
                &at("averageValue"),
                "may not set both a target raw value and a target utilization",
            ),
            (_, _) => {}
        },
        "pods" if !said("averageValue") => {
            found.required(&at("averageValue"), "must specify a positive target averageValue");
        }
        "object" if !said("value") && !said("averageValue") => {
            found.required(
                &at("averageValue"),
                "must set either a target value or averageValue",
            );
        }
        "external" => match (said("value"), said("averageValue")) {
            (false, false) => found.required(
                &at("averageValue"),
                "must set either a target value for metric or a per-pod target",
            ),
            (true, true) => found.forbidden(
                &at("value"),
                "may not set both a target value for metric and a per-pod target",
            ),
            (_, _) => {}
        },
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_str().is_none_or(str::is_empty)
}

/// Validates the scaling rules of one direction.
pub(super) fn pace(place: &Place<'_>, found: &mut ErrorList) {
    within(
        place,
        "stabilizationWindowSeconds",
        (0, "must be greater than or equal to zero"),
        3600,
        found,
    );
}

/// Validates a scaling policy.
pub(super) fn step(place: &Place<'_>, found: &mut ErrorList) {
    let positive = (1, "must be greater than zero");
    within(place, "value", positive, i64::MAX, found);
    within(place, "periodSeconds", positive, 1800, found);
}

fn within(place: &Place<'_>, field: &str, (least, why): (i64, &str), most: i64, found: &mut ErrorList) {
    let value = &place.value[field];
    match value.as_i64() {
        Some(number) if number < least => found.invalid(&place.at(field), value, why),
        Some(number) if number > most => {
            found.invalid(
                &place.at(field),
                value,
                &format!("must be less than or equal to {most}"),
            );
        }
        Some(_) | None => {}
    }
}
