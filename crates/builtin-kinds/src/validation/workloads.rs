//! Validation of workload controllers: selectors and pod templates.

use apimachinery::Version;
use serde_json::{Value, json};

use super::formats::{annotations, label_value, labels, percent, qualified_name};
use super::indexes::Indexes;
use super::place::Place;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types;

/// Validates a requirement of a label selector.
pub(super) fn requirement(place: &Place<'_>, found: &mut ErrorList) {
    operator_and_key(place, found);
    label_values(place, found);
}

/// Validates the values of a requirement.
pub(super) fn label_values(place: &Place<'_>, found: &mut ErrorList) {
    for (nth, value) in place.list("values").iter().enumerate() {
        for why in label_value(value.as_str().unwrap_or_default(), place.version) {
            found.invalid(&place.at(&format!("values[{nth}]")), value, &why);
        }
    }
}

/// Validates operator and key, in the same way for labels and nodes.
pub(super) fn operator_and_key(place: &Place<'_>, found: &mut ErrorList) {
    if !fits_operator(place, found) {
        found.invalid(
            &place.at("operator"),
            &place.text("operator").into(),
            "not a valid selector operator",
        );
    }
    key(place, found);
}

/// Validates that the number of values fits the operator. Returns false for an unknown operator.
pub(super) fn fits_operator(place: &Place<'_>, found: &mut ErrorList) -> bool {
    let values = place.list("values");
    match place.text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                found.required(
                    &place.at("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                found.forbidden(
                    &place.at("values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
        }
        _ => return false,
    }
    true
}

/// Validates the key of a requirement.
pub(super) fn key(place: &Place<'_>, found: &mut ErrorList) {
    for why in qualified_name(place.text("key"), place.version) {
        found.invalid(&place.at("key"), &place.text("key").into(), &why);
    }
}

/// Returns whether a selector is valid.
fn is_readable(selector: &Value, version: Version) -> bool {
    let requirements = list(selector, "matchExpressions");
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let mut faults = ErrorList::default();
    let indexes = Indexes::default();
    for (nth, value) in requirements.iter().enumerate() {
        let path = format!("[{nth}]");
        let place = Place {
            path: &path,
            ..Place::of(value, "", version, &indexes)
        };
        requirement(&place, &mut faults);
    }
    let labels = wanted.clone().all(|(key, value)| {
        qualified_name(key, version).is_empty()
            && label_value(value.as_str().unwrap_or_default(), version).is_empty()
    });
    labels && faults.into_causes().is_empty()
}

/// Returns whether a selector selects these labels. A null selector selects nothing, an empty one everything.
fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let all = wanted.clone().all(|(key, value)| labels.get(key) == Some(value));
    all && list(selector, "matchExpressions").iter().all(|requirement| {
        let value = requirement["key"].as_str().and_then(|key| labels.get(key));
        let values = list(requirement, "values");
        match requirement["operator"].as_str().unwrap_or_default() {
            "In" => value.is_some_and(|value| values.contains(value)),
            "NotIn" => value.is_none_or(|value| !values.contains(value)),
            "Exists" => value.is_some(),
            _ => value.is_none(),
        }
    })
}

fn is_empty_selector(selector: &Value) -> bool {
    let labels = selector["matchLabels"].as_object();
    labels.is_none_or(serde_json::Map::is_empty) && list(selector, "matchExpressions").is_empty()
}

const UNSELECTED: &str = "`selector` does not match template `labels`";

/// Validates the selector and the template: the selector selects its pods, which always restart.
pub(super) fn selected_template(place: &Place<'_>, found: &mut ErrorList) {
    let (name, shown, unreadable) = match place.kind {
        "apps/v1.StatefulSet" => ("statefulset", "StatefulSet", ""),
        "apps/v1.DaemonSet" => ("daemonset", "DaemonSet", ""),
        // kube-apiserver reports `deployment` for ReplicaSets too.
        _ => ("deployment", "ReplicaSet", "invalid label selector"),
    };
    let selector = &place.value["selector"];
    let at = place.at("selector");
    let daemons = name == "daemonset";
    if selector.is_null() && !daemons {
        found.required(&at, "");
    }
    let empty = !selector.is_null() && is_empty_selector(selector);
    if !selector.is_null() {
        selector_faults(selector, &at, place, found);
        if empty && !daemons {
            found.invalid(&at, selector, &format!("empty selector is invalid for {name}"));
        }
    }
    let readable = is_readable(selector, place.version);
    let labels = &place.value["template"]["metadata"]["labels"];
    if readable && !empty && !selects(selector, labels) {
        found.invalid(&place.at("template.metadata.labels"), labels, UNSELECTED);
    }
    if daemons && empty {
        found.invalid(&at, selector, "empty selector is invalid for daemonset");
    }
    if name == "statefulset" && place.version < Version::V1_34 {
        // Before 1.34 the pod spec in the template of a StatefulSet was not validated.
        template_metadata(place, found);
    } else if readable || daemons {
        template(place, found);
    } else {
        found.invalid(&at, selector, unreadable);
        if name == "deployment" {
            return;
        }
    }
    let spec = &place.value["template"]["spec"];
    let policy = &spec["restartPolicy"];
    if policy != "Always" {
        found.unsupported(&place.at("template.spec.restartPolicy"), policy, &["Always"]);
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        found.forbidden(
            &place.at("template.spec.activeDeadlineSeconds"),
            &format!("activeDeadlineSeconds in {shown} is not Supported"),
        );
    }
}

fn selector_faults(selector: &Value, at: &str, place: &Place<'_>, found: &mut ErrorList) {
    let known = types::named("meta/v1.LabelSelector").expect("the table has what selects by labels");
    let selector = Place {
        value: selector,
        path: at,
        list: &[],
        nth: 0,
        ..*place
    };
    selector.check(known, found);
}

fn template(place: &Place<'_>, found: &mut ErrorList) {
    let known = types::named("core/v1.PodTemplateSpec").expect("the table has the template of pods");
    let path = place.at("template");
    let template = Place {
        value: &place.value["template"],
        path: &path,
        list: &[],
        nth: 0,
        ..*place
    };
    template.check(known, found);
}

fn template_metadata(place: &Place<'_>, found: &mut ErrorList) {
    let metadata = &place.value["template"]["metadata"];
    let at = |field: &str| place.at(&format!("template.{field}"));
    labels(
        metadata["labels"].as_object(),
        &at("labels"),
        place.version,
        found,
    );
    annotations(
        metadata["annotations"].as_object(),
        &at("annotations"),
        place.version,
        found,
    );
}

pub(super) fn deployment_strategy(place: &Place<'_>, found: &mut ErrorList) {
    let strategy = &place.value["strategy"];
    let rolling = &strategy["rollingUpdate"];
    let at = place.at("strategy");
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if !rolling.is_null() => found.forbidden(
            &format!("{at}.rollingUpdate"),
            "may not be specified when strategy `type` is 'Recreate'",
        ),
        "Recreate" => {}
        "RollingUpdate" => rolling_update(rolling, &format!("{at}.rollingUpdate"), found),
        _ => {
            let shown = json!({ "Type": strategy["type"], "RollingUpdate": rolling });
            found.unsupported(&at, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn rolling_update(rolling: &Value, at: &str, found: &mut ErrorList) {
    let (surge, missing) = (&rolling["maxSurge"], &rolling["maxUnavailable"]);
    let at = |field: &str| format!("{at}.{field}");
    for (field, value) in [("maxUnavailable", missing), ("maxSurge", surge)] {
        if let Some(why) = count_fault(value) {
            found.invalid(&at(field), value, why);
        }
    }
    let is_zero = |value: &Value| match value.as_str() {
        Some(text) => percent(text).unwrap_or_default() == 0,
        None => value == 0,
    };
    if is_zero(surge) && is_zero(missing) {
        found.invalid(
            &at("maxUnavailable"),
            missing,
            "may not be 0 when `maxSurge` is 0",
        );
    }
    if missing
        .as_str()
        .and_then(percent)
        .is_some_and(|percent| percent > 100)
    {
        found.invalid(&at("maxUnavailable"), missing, "must not be greater than 100%");
    }
}

fn count_fault(value: &Value) -> Option<&'static str> {
    match value.as_str() {
        Some(text) if percent(text).is_none() => Some(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
             for validation is '[0-9]+%')",
        ),
        None if value.as_i64().is_some_and(|number| number < 0) => Some("must be greater than or equal to 0"),
        Some(_) | None => None,
    }
}

pub(super) fn progress_deadline(place: &Place<'_>, found: &mut ErrorList) {
    let deadline = &place.value["progressDeadlineSeconds"];
    let ready = place.value["minReadySeconds"].as_i64().unwrap_or_default();
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        found.invalid(
            &place.at("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

pub(super) fn set_policies(place: &Place<'_>, found: &mut ErrorList) {
    let policy = place.text("podManagementPolicy");
    if !matches!(policy, "" | "OrderedReady" | "Parallel") {
        found.invalid(
            &place.at("podManagementPolicy"),
            &policy.into(),
            "must be 'OrderedReady' or 'Parallel'",
        );
    }
    let strategy = &place.value["updateStrategy"];
    let at = place.at("updateStrategy");
    match strategy["type"].as_str().unwrap_or_default() {
        "RollingUpdate" => {
            let partition = &strategy["rollingUpdate"]["partition"];
            if partition.as_i64().is_some_and(|number| number < 0) {
                found.invalid(
                    &format!("{at}.rollingUpdate.partition"),
                    partition,
                    "must be greater than or equal to 0",
                );
            }
        }
        "OnDelete" => {}
        _ => {
            let shown = json!({ "Type": strategy["type"], "RollingUpdate": strategy["rollingUpdate"] });
            found.invalid(&at, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(super) fn daemon_strategy(place: &Place<'_>, found: &mut ErrorList) {
    let strategy = &place.value["updateStrategy"];
    if !matches!(strategy["type"].as_str(), Some("RollingUpdate" | "OnDelete")) {
        let shown = json!({ "Type": strategy["type"], "RollingUpdate": strategy["rollingUpdate"] });
        found.unsupported(
            &place.at("updateStrategy"),
            &shown,
            &["RollingUpdate", "OnDelete"],
        );
    }
}

/// Validates the selector of a job, which contains its uid unless `manualSelector` is set.
pub(super) fn job_selector(place: &Place<'_>, found: &mut ErrorList) {
    let spec = &place.value["spec"];
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    let mut generated = json!({});
    if let Some(uid) = place.root["metadata"]["uid"].as_str() {
        generated["matchLabels"] = json!({ "batch.kubernetes.io/controller-uid": uid });
    }
    let known_uid = generated["matchLabels"].is_object();
    if spec["manualSelector"] != true && known_uid && *selector != generated {
        found.invalid("spec.selector", selector, "`selector` not auto-generated");
    }
    if selector.is_null() {
        found.required("spec.selector", "");
    } else {
        selector_faults(selector, "spec.selector", place, found);
    }
    if is_readable(selector, place.version) && !selects(selector, labels) {
        found.invalid("spec.template.metadata.labels", labels, UNSELECTED);
    }
}

pub(super) fn job_indexes(place: &Place<'_>, found: &mut ErrorList) {
    if place.text("completionMode") == "Indexed" {
        if place.value["completions"].is_null() {
            found.required(&place.at("completions"), "when completion mode is Indexed");
        }
        return;
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if !place.value[field].is_null() {
            found.invalid(
                &place.at(field),
                &place.value[field],
                "requires indexed completion mode",
            );
        }
    }
}

pub(super) fn job_restarts(place: &Place<'_>, found: &mut ErrorList) {
    let policy = &place.value["template"]["spec"]["restartPolicy"];
    let at = place.at("template.spec.restartPolicy");
    match policy.as_str().unwrap_or_default() {
        "OnFailure" | "Never" => {}
        "" | "Always" => found.required(&at, "valid values: \"OnFailure\", \"Never\""),
        _ => found.unsupported(&at, policy, &["OnFailure", "Never"]),
    }
}

pub(super) fn budget(place: &Place<'_>, found: &mut ErrorList) {
    let (least, most) = (&place.value["minAvailable"], &place.value["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let shown = json!({
            "MinAvailable": least,
            "Selector": place.value["selector"],
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": place.value["unhealthyPodEvictionPolicy"],
        });
        found.invalid(
            place.path,
            &shown,
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
}

pub(super) fn replica_range(place: &Place<'_>, found: &mut ErrorList) {
    let (least, most) = (&place.value["minReplicas"], &place.value["maxReplicas"]);
    let at = place.at("maxReplicas");
    if least.as_i64().is_some_and(|number| number < 1) {
        found.invalid(
            &place.at("minReplicas"),
            least,
            "must be greater than or equal to 1",
        );
    }
    let most = most.as_i64().unwrap_or_default();
    if most < 1 {
        if place.version >= Version::V1_36 {
            found.required(&at, "must be set and greater than 0");
        } else {
            found.invalid(&at, &most.into(), "must be greater than 0");
        }
    }
    if least.as_i64().is_some_and(|least| most < least) {
        found.invalid(
            &at,
            &most.into(),
            "must be greater than or equal to `minReplicas`",
        );
    }
}
