//! Validation of HorizontalPodAutoscalers: metrics and scaling behaviour.
//!
//! Source: kubernetes `pkg/apis/autoscaling/validation/validation.go`.

use apimachinery::Version;
use serde_json::Value;

use super::context::FieldContext;
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
pub(super) fn target_version(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let target = &context.value["scaleTargetRef"];
    let version = target["apiVersion"].as_str().unwrap_or_default();
    let of_core = target["kind"] == "ReplicationController";
    if context.version >= Version::V1_34 && !version.contains('/') && !of_core {
        let at = context.at("scaleTargetRef.apiVersion");
        errors.invalid(&at, &version.into(), "apiVersion must specify API group");
    }
}

/// Validates that a metric has exactly the field of its type.
pub(super) fn metric(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let kind = context.text("type");
    let types = SOURCES.map(|(kind, _)| kind);
    if kind.is_empty() {
        errors.required(&context.at("type"), "must specify a metric source type");
    }
    if !types.contains(&kind) {
        errors.unsupported(&context.at("type"), &kind.into(), &types);
    }
    let is_set = |field: &str| !context.value[field].is_null();
    // kube-apiserver reports the first of them in this order.
    let order = ["object", "external", "pods", "resource", "containerResource"];
    if let Some(first) = order.into_iter().find(|field| is_set(field)) {
        source(first, &context.value[first], &context.at(first), errors);
    }
    for (of, field) in SOURCES {
        if kind == of && !is_set(field) {
            errors.required(
                &context.at(field),
                "must populate information for the given metric source",
            );
        } else if kind != of && is_set(field) {
            errors.forbidden(&context.at(field), "must populate the given metric source only");
        }
    }
}

fn source(field: &str, source: &Value, path: &str, errors: &mut ErrorList) {
    let target = &source["target"];
    let at = |field: &str| format!("{path}.target.{field}");
    match field {
        "resource" | "containerResource" if is_empty(&source["name"]) => {
            errors.required(&format!("{path}.name"), "must specify a resource name");
        }
        "object" | "external" | "pods" if is_empty(&source["metric"]["name"]) => {
            errors.required(&format!("{path}.metric.name"), "must specify a metric name");
        }
        _ => {}
    }
    if is_empty(&target["type"]) {
        errors.required(&at("type"), "must specify a metric target type");
    }
    if !matches!(
        target["type"].as_str(),
        Some("Utilization" | "Value" | "AverageValue")
    ) {
        let shown = target["type"].as_str().unwrap_or_default();
        let why = "must be either Utilization, Value, or AverageValue";
        errors.invalid(&at("type"), &shown.into(), why);
    }
    for field in ["value", "averageValue"] {
        let amount = &target[field];
        if amount.as_str().is_some_and(|amount| types::amount(amount) <= 0) {
            errors.invalid(&at(field), amount, "must be positive");
        }
    }
    let utilization = &target["averageUtilization"];
    if utilization.as_i64().is_some_and(|percent| percent < 1) {
        errors.invalid(&at("averageUtilization"), utilization, "must be greater than 0");
    }
    let is_set = |field: &str| !target[field].is_null();
    match field {
        "resource" | "containerResource" => match (is_set("averageUtilization"), is_set("averageValue")) {
            (false, false) => errors.required(
                &at("averageUtilization"),
                "must set either a target raw value or a target utilization",
            ),
            (true, true) => errors.forbidden(
                &at("averageValue"),
                "may not set both a target raw value and a target utilization",
            ),
            (_, _) => {}
        },
        "pods" if !is_set("averageValue") => {
            errors.required(&at("averageValue"), "must specify a positive target averageValue");
        }
        "object" if !is_set("value") && !is_set("averageValue") => {
            errors.required(
                &at("averageValue"),
                "must set either a target value or averageValue",
            );
        }
        "external" => match (is_set("value"), is_set("averageValue")) {
            (false, false) => errors.required(
                &at("averageValue"),
                "must set either a target value for metric or a per-pod target",
            ),
            (true, true) => errors.forbidden(
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
pub(super) fn pace(context: &FieldContext<'_>, errors: &mut ErrorList) {
    within(
        context,
        "stabilizationWindowSeconds",
        (0, "must be greater than or equal to zero"),
        3600,
        errors,
    );
}

/// Validates a scaling policy.
pub(super) fn step(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let positive = (1, "must be greater than zero");
    within(context, "value", positive, i64::MAX, errors);
    within(context, "periodSeconds", positive, 1800, errors);
}

fn within(
    context: &FieldContext<'_>,
    field: &str,
    (least, why): (i64, &str),
    most: i64,
    errors: &mut ErrorList,
) {
    let value = &context.value[field];
    match value.as_i64() {
        Some(number) if number < least => errors.invalid(&context.at(field), value, why),
        Some(number) if number > most => {
            errors.invalid(
                &context.at(field),
                value,
                &format!("must be less than or equal to {most}"),
            );
        }
        Some(_) | None => {}
    }
}
