//! Cells of workloads: deployments, jobs, autoscalers and others.
//!
//! Source: kubernetes `pkg/printers/internalversion/printers.go`.

use apimachinery::Version;
use serde_json::Value;

use super::{Row, first_of, joined, selectors, text};
use crate::age;

const CONTAINERS: &str = "/spec/template/spec/containers";

pub(super) fn container_names(row: &Row<'_>) -> Value {
    names(row, CONTAINERS)
}

pub(super) fn container_images(row: &Row<'_>) -> Value {
    images(row, CONTAINERS)
}

pub(super) fn names(row: &Row<'_>, containers: &str) -> Value {
    joined(row.list(containers), "/name", ",").into()
}

pub(super) fn images(row: &Row<'_>, containers: &str) -> Value {
    joined(row.list(containers), "/image", ",").into()
}

pub(super) fn selector(row: &Row<'_>) -> Value {
    selectors::shown(row.object.pointer("/spec/selector")).into()
}

/// Returns the selector of a deployment; empty if it selects nothing.
pub(super) fn bare_selector(row: &Row<'_>) -> Value {
    let selector = selectors::bare(row.object.pointer("/spec/selector"));
    selector.unwrap_or_else(|| "<invalid>".to_owned()).into()
}

pub(super) fn ready(row: &Row<'_>) -> Value {
    format!(
        "{}/{}",
        row.number("/status/readyReplicas"),
        row.number("/spec/replicas")
    )
    .into()
}

pub(super) fn node_selector(row: &Row<'_>) -> Value {
    selectors::labels(row.object.pointer("/spec/template/spec/nodeSelector")).into()
}

/// Returns the owner of a revision: `daemonset.apps/name`.
pub(super) fn controller(row: &Row<'_>) -> Value {
    let owners = row.list("/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".into();
    };
    let kind = text(owner, "/kind").to_lowercase();
    let group = text(owner, "/apiVersion")
        .split_once('/')
        .map(|(group, _)| group.to_lowercase());
    let kind = group.map_or(kind.clone(), |group| format!("{kind}.{group}"));
    format!("{kind}/{}", text(owner, "/name")).into()
}

pub(super) fn suspended(row: &Row<'_>) -> Value {
    match row.object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True".into(),
        Some(false) => "False".into(),
        None => "<unset>".into(),
    }
}

pub(super) fn last_schedule(row: &Row<'_>) -> Value {
    match row.text("/status/lastScheduleTime") {
        "" => "<none>".into(),
        time => age::since(Some(time), row.now).into(),
    }
}

pub(super) fn job_status(row: &Row<'_>) -> Value {
    let has = |kind: &str| {
        row.condition(kind)
            .is_some_and(|condition| condition["status"] == "True")
    };
    let success_met = row.version >= Version::V1_34 && has("SuccessCriteriaMet");
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if row.is_deleted() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if success_met {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    status.into()
}

pub(super) fn completions(row: &Row<'_>) -> Value {
    let succeeded = row.number("/status/succeeded");
    let wanted = row.object.pointer("/spec/completions").and_then(Value::as_i64);
    match (wanted, row.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}").into(),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}").into(),
        (None, _) => format!("{succeeded}/1").into(),
    }
}

pub(super) fn job_duration(row: &Row<'_>) -> Value {
    let end = Some(row.text("/status/completionTime")).filter(|end| !end.is_empty());
    match row.text("/status/startTime") {
        "" => "".into(),
        start => age::between(start, end, row.now).into(),
    }
}

pub(super) fn min_available(row: &Row<'_>) -> Value {
    number_or_share(row, "/spec/minAvailable")
}

pub(super) fn max_unavailable(row: &Row<'_>) -> Value {
    number_or_share(row, "/spec/maxUnavailable")
}

fn number_or_share(row: &Row<'_>, pointer: &str) -> Value {
    match row.object.pointer(pointer) {
        Some(Value::String(share)) => share.as_str().into(),
        Some(Value::Number(number)) => number.to_string().into(),
        Some(_) | None => "N/A".into(),
    }
}

/// Returns the scale target.
pub(super) fn autoscaled(row: &Row<'_>) -> Value {
    let kind = row.text("/spec/scaleTargetRef/kind");
    format!("{kind}/{}", row.text("/spec/scaleTargetRef/name")).into()
}

pub(super) fn autoscaler_minimum(row: &Row<'_>) -> Value {
    let minimum = row.object.pointer("/spec/minReplicas").and_then(Value::as_i64);
    minimum.map_or("<unset>".into(), |minimum| minimum.to_string().into())
}

/// Returns current and target value of each metric.
pub(super) fn autoscaler_targets(row: &Row<'_>) -> Value {
    let mut targets: Vec<String> = Vec::new();
    // autoscaling/v1 has a single metric.
    if let Some(target) = row.object.pointer("/spec/targetCPUUtilizationPercentage") {
        let current = row.object.pointer("/status/currentCPUUtilizationPercentage");
        let current = current.map_or("<unknown>".to_owned(), |current| format!("{current}%"));
        targets.push(format!("cpu: {current}/{target}%"));
    }
    let statuses = row.list("/status/currentMetrics");
    for (index, metric) in row.list("/spec/metrics").iter().enumerate() {
        targets.push(target_of(metric, statuses.get(index)));
    }
    if targets.is_empty() {
        return "<none>".into();
    }
    first_of(&targets, 2, ", ").into()
}

fn target_of(metric: &Value, status: Option<&Value>) -> String {
    let source = match text(metric, "/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |field: &str| {
        let value = metric[source]["target"]
            .get(field)
            .filter(|value| !value.is_null());
        value.map(quantity)
    };
    let current = |field: &str| {
        let value = status.and_then(|status| status[source]["current"].get(field));
        value.filter(|value| !value.is_null()).map(quantity)
    };
    let unknown = || "<unknown>".to_owned();
    let average = wanted("averageValue");
    match source {
        "resource" | "containerResource" => {
            let name = text(&metric[source], "/name");
            let (current, wanted) = match average {
                Some(average) => (current("averageValue").unwrap_or_else(unknown), average),
                None => {
                    let share = |value: Option<String>| value.map(|value| format!("{value}%"));
                    (
                        share(current("averageUtilization")).unwrap_or_else(unknown),
                        share(wanted("averageUtilization")).unwrap_or_else(|| "<auto>".to_owned()),
                    )
                }
            };
            format!("{name}: {current}/{wanted}")
        }
        "pods" => {
            let current = current("averageValue").unwrap_or_else(unknown);
            format!("{current}/{}", average.unwrap_or_else(|| "0".to_owned()))
        }
        _ => match average {
            Some(average) => format!(
                "{}/{average} (avg)",
                current("averageValue").unwrap_or_else(unknown)
            ),
            None => {
                let current = current("value").unwrap_or_else(unknown);
                format!("{current}/{}", wanted("value").unwrap_or_else(|| "0".to_owned()))
            }
        },
    }
}

/// Formats a quantity, which can be a number.
pub(super) fn quantity(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => "0".to_owned(),
    }
}

/// Returns a quantity; 0 if there is none.
pub(super) fn quantity_at(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).map_or("0".to_owned(), quantity)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::utilization(json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }), json!({ "resource": { "current": { "averageUtilization": 12 } } }), "cpu: 12%/80%")]
    #[case::unknown(json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }), Value::Null, "cpu: <unknown>/80%")]
    #[case::average(json!({ "type": "External", "external": { "target": { "averageValue": "5" } } }), json!({ "external": { "current": { "averageValue": "2" } } }), "2/5 (avg)")]
    #[case::value(json!({ "type": "Object", "object": { "target": { "value": "5" } } }), json!({ "object": { "current": { "value": "7" } } }), "7/5")]
    #[case::pods(json!({ "type": "Pods", "pods": { "target": { "averageValue": "1k" } } }), Value::Null, "<unknown>/1k")]
    fn metrics_show_current_and_target_values(
        #[case] metric: Value,
        #[case] status: Value,
        #[case] expected: &str,
    ) {
        let object = json!({ "spec": { "metrics": [metric] }, "status": { "currentMetrics": [status] } });
        let row = Row {
            object: &object,
            now: Duration::ZERO,
            version: Version::NEWEST,
        };
        assert_eq!(autoscaler_targets(&row), expected);
    }
}
