//! Validation of workload controllers: selectors and pod templates.

use apimachinery::Version;
use serde_json::{Value, json};

use super::context::FieldContext;
use super::formats::{annotations, label_value, labels, percent, qualified_name};
use super::indexes::Indexes;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types;

/// Validates a requirement of a label selector.
pub(super) fn requirement(context: &FieldContext<'_>, errors: &mut ErrorList) {
    operator_and_key(context, errors);
    label_values(context, errors);
}

/// Validates the values of a requirement.
pub(super) fn label_values(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for (nth, value) in context.list("values").iter().enumerate() {
        for why in label_value(value.as_str().unwrap_or_default(), context.version) {
            errors.invalid(&context.at(&format!("values[{nth}]")), value, &why);
        }
    }
}

/// Validates operator and key, in the same way for labels and nodes.
pub(super) fn operator_and_key(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if !fits_operator(context, errors) {
        errors.invalid(
            &context.at("operator"),
            &context.text("operator").into(),
            "not a valid selector operator",
        );
    }
    key(context, errors);
}

/// Validates that the number of values fits the operator. Returns false for an unknown operator.
pub(super) fn fits_operator(context: &FieldContext<'_>, errors: &mut ErrorList) -> bool {
    let values = context.list("values");
    match context.text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                errors.required(
                    &context.at("values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                );
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                errors.forbidden(
                    &context.at("values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
        }
        _ => return false,
    }
    true
}

/// Validates the key of a requirement.
pub(super) fn key(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for why in qualified_name(context.text("key"), context.version) {
        errors.invalid(&context.at("key"), &context.text("key").into(), &why);
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
        let context = FieldContext {
            path: &path,
            ..FieldContext::of(value, "", version, &indexes)
        };
        requirement(&context, &mut faults);
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
pub(super) fn selected_template(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (name, shown, unreadable) = match context.kind {
        "apps/v1.StatefulSet" => ("statefulset", "StatefulSet", ""),
        "apps/v1.DaemonSet" => ("daemonset", "DaemonSet", ""),
        // kube-apiserver reports `deployment` for ReplicaSets too.
        _ => ("deployment", "ReplicaSet", "invalid label selector"),
    };
    let selector = &context.value["selector"];
    let at = context.at("selector");
    let daemons = name == "daemonset";
    if selector.is_null() && !daemons {
        errors.required(&at, "");
    }
    let empty = !selector.is_null() && is_empty_selector(selector);
    if !selector.is_null() {
        selector_errors(selector, &at, context, errors);
        if empty && !daemons {
            errors.invalid(&at, selector, &format!("empty selector is invalid for {name}"));
        }
    }
    let readable = is_readable(selector, context.version);
    let labels = &context.value["template"]["metadata"]["labels"];
    if readable && !empty && !selects(selector, labels) {
        errors.invalid(&context.at("template.metadata.labels"), labels, UNSELECTED);
    }
    if daemons && empty {
        errors.invalid(&at, selector, "empty selector is invalid for daemonset");
    }
    if name == "statefulset" && context.version < Version::V1_34 {
        // Before 1.34 the pod spec in the template of a StatefulSet was not validated.
        template_metadata(context, errors);
    } else if readable || daemons {
        template(context, errors);
    } else {
        errors.invalid(&at, selector, unreadable);
        if name == "deployment" {
            return;
        }
    }
    let spec = &context.value["template"]["spec"];
    let policy = &spec["restartPolicy"];
    if policy != "Always" {
        errors.unsupported(&context.at("template.spec.restartPolicy"), policy, &["Always"]);
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        errors.forbidden(
            &context.at("template.spec.activeDeadlineSeconds"),
            &format!("activeDeadlineSeconds in {shown} is not Supported"),
        );
    }
}

fn selector_errors(selector: &Value, at: &str, context: &FieldContext<'_>, errors: &mut ErrorList) {
    let known = types::named("meta/v1.LabelSelector").expect("the table has what selects by labels");
    let selector = FieldContext {
        value: selector,
        path: at,
        list: &[],
        nth: 0,
        ..*context
    };
    selector.check(known, errors);
}

fn template(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let known = types::named("core/v1.PodTemplateSpec").expect("the table has the template of pods");
    let path = context.at("template");
    let template = FieldContext {
        value: &context.value["template"],
        path: &path,
        list: &[],
        nth: 0,
        ..*context
    };
    template.check(known, errors);
}

fn template_metadata(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let metadata = &context.value["template"]["metadata"];
    let at = |field: &str| context.at(&format!("template.{field}"));
    labels(
        metadata["labels"].as_object(),
        &at("labels"),
        context.version,
        errors,
    );
    annotations(
        metadata["annotations"].as_object(),
        &at("annotations"),
        context.version,
        errors,
    );
}

pub(super) fn deployment_strategy(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let strategy = &context.value["strategy"];
    let rolling = &strategy["rollingUpdate"];
    let at = context.at("strategy");
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if !rolling.is_null() => errors.forbidden(
            &format!("{at}.rollingUpdate"),
            "may not be specified when strategy `type` is 'Recreate'",
        ),
        "Recreate" => {}
        "RollingUpdate" => rolling_update(rolling, &format!("{at}.rollingUpdate"), errors),
        _ => {
            let shown = json!({ "Type": strategy["type"], "RollingUpdate": rolling });
            errors.unsupported(&at, &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn rolling_update(rolling: &Value, at: &str, errors: &mut ErrorList) {
    let (surge, missing) = (&rolling["maxSurge"], &rolling["maxUnavailable"]);
    let at = |field: &str| format!("{at}.{field}");
    for (field, value) in [("maxUnavailable", missing), ("maxSurge", surge)] {
        if let Some(why) = count_error(value) {
            errors.invalid(&at(field), value, why);
        }
    }
    let is_zero = |value: &Value| match value.as_str() {
        Some(text) => percent(text).unwrap_or_default() == 0,
        None => value == 0,
    };
    if is_zero(surge) && is_zero(missing) {
        errors.invalid(
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
        errors.invalid(&at("maxUnavailable"), missing, "must not be greater than 100%");
    }
}

fn count_error(value: &Value) -> Option<&'static str> {
    match value.as_str() {
        Some(text) if percent(text).is_none() => Some(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
             for validation is '[0-9]+%')",
        ),
        None if value.as_i64().is_some_and(|number| number < 0) => Some("must be greater than or equal to 0"),
        Some(_) | None => None,
    }
}

pub(super) fn progress_deadline(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let deadline = &context.value["progressDeadlineSeconds"];
    let ready = context.value["minReadySeconds"].as_i64().unwrap_or_default();
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        errors.invalid(
            &context.at("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
}

pub(super) fn set_policies(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let policy = context.text("podManagementPolicy");
    if !matches!(policy, "" | "OrderedReady" | "Parallel") {
        errors.invalid(
            &context.at("podManagementPolicy"),
            &policy.into(),
            "must be 'OrderedReady' or 'Parallel'",
        );
    }
    let strategy = &context.value["updateStrategy"];
    let at = context.at("updateStrategy");
    match strategy["type"].as_str().unwrap_or_default() {
        "RollingUpdate" => {
            let partition = &strategy["rollingUpdate"]["partition"];
            if partition.as_i64().is_some_and(|number| number < 0) {
                errors.invalid(
                    &format!("{at}.rollingUpdate.partition"),
                    partition,
                    "must be greater than or equal to 0",
                );
            }
        }
        "OnDelete" => {}
        _ => {
            let shown = json!({ "Type": strategy["type"], "RollingUpdate": strategy["rollingUpdate"] });
            errors.invalid(&at, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(super) fn daemon_strategy(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let strategy = &context.value["updateStrategy"];
    if !matches!(strategy["type"].as_str(), Some("RollingUpdate" | "OnDelete")) {
        let shown = json!({ "Type": strategy["type"], "RollingUpdate": strategy["rollingUpdate"] });
        errors.unsupported(
            &context.at("updateStrategy"),
            &shown,
            &["RollingUpdate", "OnDelete"],
        );
    }
}

/// Validates the selector of a job, which contains its uid unless `manualSelector` is set.
pub(super) fn job_selector(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let spec = &context.value["spec"];
    let selector = &spec["selector"];
    let labels = &spec["template"]["metadata"]["labels"];
    let mut generated = json!({});
    if let Some(uid) = context.root["metadata"]["uid"].as_str() {
        generated["matchLabels"] = json!({ "batch.kubernetes.io/controller-uid": uid });
    }
    let known_uid = generated["matchLabels"].is_object();
    if spec["manualSelector"] != true && known_uid && *selector != generated {
        errors.invalid("spec.selector", selector, "`selector` not auto-generated");
    }
    if selector.is_null() {
        errors.required("spec.selector", "");
    } else {
        selector_errors(selector, "spec.selector", context, errors);
    }
    if is_readable(selector, context.version) && !selects(selector, labels) {
        errors.invalid("spec.template.metadata.labels", labels, UNSELECTED);
    }
}

pub(super) fn job_indexes(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.text("completionMode") == "Indexed" {
        if context.value["completions"].is_null() {
            errors.required(&context.at("completions"), "when completion mode is Indexed");
        }
        return;
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if !context.value[field].is_null() {
            errors.invalid(
                &context.at(field),
                &context.value[field],
                "requires indexed completion mode",
            );
        }
    }
}

pub(super) fn job_restarts(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let policy = &context.value["template"]["spec"]["restartPolicy"];
    let at = context.at("template.spec.restartPolicy");
    match policy.as_str().unwrap_or_default() {
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.required(&at, "valid values: \"OnFailure\", \"Never\""),
        _ => errors.unsupported(&at, policy, &["OnFailure", "Never"]),
    }
}

pub(super) fn budget(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (least, most) = (&context.value["minAvailable"], &context.value["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let shown = json!({
            "MinAvailable": least,
            "Selector": context.value["selector"],
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": context.value["unhealthyPodEvictionPolicy"],
        });
        errors.invalid(
            context.path,
            &shown,
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
}

pub(super) fn replica_range(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (least, most) = (&context.value["minReplicas"], &context.value["maxReplicas"]);
    let at = context.at("maxReplicas");
    if least.as_i64().is_some_and(|number| number < 1) {
        errors.invalid(
            &context.at("minReplicas"),
            least,
            "must be greater than or equal to 1",
        );
    }
    let most = most.as_i64().unwrap_or_default();
    if most < 1 {
        if context.version >= Version::V1_36 {
            errors.required(&at, "must be set and greater than 0");
        } else {
            errors.invalid(&at, &most.into(), "must be greater than 0");
        }
    }
    if least.as_i64().is_some_and(|least| most < least) {
        errors.invalid(
            &at,
            &most.into(),
            "must be greater than or equal to `minReplicas`",
        );
    }
}
