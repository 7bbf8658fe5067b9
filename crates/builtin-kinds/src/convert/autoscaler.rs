//! Conversion of HorizontalPodAutoscalers between autoscaling/v1 and v2. v1 keeps fields it does not have in annotations, in
//! separate formats.
//!
//! Source: kubernetes `pkg/apis/autoscaling/v1/conversion.go`, `pkg/apis/autoscaling/annotations.go`.

use apimachinery::encode::encode_json;
use serde_json::{Map, Value, json};

/// Percent of the requested CPU, where v1 names no metric.
const DEFAULT_UTILIZATION: u32 = 80;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Fields of a metric source: the field in v1, its path in v2, and its default in v1.
type Fields = &'static [(&'static str, &'static [&'static str], Option<&'static str>)];

const NAME: &[&str] = &["metric", "name"];
const SELECTOR: &[&str] = &["metric", "selector"];

/// Fields of metric targets.
const TARGETS: [(&str, Fields); 5] = {
    const UTILIZATION: &[&str] = &["target", "averageUtilization"];
    const AVERAGE: &[&str] = &["target", "averageValue"];
    const VALUE: &[&str] = &["target", "value"];
    [
        (
            "resource",
            &[
                ("name", &["name"], None),
                ("targetAverageUtilization", UTILIZATION, None),
                ("targetAverageValue", AVERAGE, None),
            ],
        ),
        (
            "pods",
            &[
                ("metricName", NAME, None),
                ("targetAverageValue", AVERAGE, Some("0")),
                ("selector", SELECTOR, None),
            ],
        ),
        (
            "object",
            &[
                ("target", &["describedObject"], None),
                ("metricName", NAME, None),
                ("targetValue", VALUE, Some("0")),
                ("selector", SELECTOR, None),
                ("averageValue", AVERAGE, None),
            ],
        ),
        (
            "external",
            &[
                ("metricName", NAME, None),
                ("metricSelector", SELECTOR, None),
                ("targetValue", VALUE, None),
                ("targetAverageValue", AVERAGE, None),
            ],
        ),
        (
            "containerResource",
            &[
                ("name", &["name"], None),
                ("targetAverageUtilization", UTILIZATION, None),
                ("targetAverageValue", AVERAGE, None),
                ("container", &["container"], None),
            ],
        ),
    ]
};

/// Fields of current metrics.
const CURRENTS: [(&str, Fields); 5] = {
    const UTILIZATION: &[&str] = &["current", "averageUtilization"];
    const AVERAGE: &[&str] = &["current", "averageValue"];
    const VALUE: &[&str] = &["current", "value"];
    [
        (
            "resource",
            &[
                ("name", &["name"], None),
                ("currentAverageUtilization", UTILIZATION, None),
                ("currentAverageValue", AVERAGE, Some("0")),
            ],
        ),
        (
            "pods",
            &[
                ("metricName", NAME, None),
                ("currentAverageValue", AVERAGE, Some("0")),
                ("selector", SELECTOR, None),
            ],
        ),
        (
            "object",
            &[
                ("target", &["describedObject"], None),
                ("metricName", NAME, None),
                ("currentValue", VALUE, Some("0")),
                ("selector", SELECTOR, None),
                ("averageValue", AVERAGE, None),
            ],
        ),
        (
            "external",
            &[
                ("metricName", NAME, None),
                ("metricSelector", SELECTOR, None),
                ("currentValue", VALUE, Some("0")),
                ("currentAverageValue", AVERAGE, None),
            ],
        ),
        (
            "containerResource",
            &[
                ("name", &["name"], None),
                ("currentAverageUtilization", UTILIZATION, None),
                ("currentAverageValue", AVERAGE, Some("0")),
                ("container", &["container"], None),
            ],
        ),
    ]
};

/// Converts to autoscaling/v1.
pub(super) fn to_v1(mut object: Value) -> Value {
    let mut annotations = Map::new();
    let metrics = remove_field(&mut object, "spec", "metrics");
    let metrics = metrics.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(wanted) = cpu_utilization(metrics, "target") {
        object["spec"]["targetCPUUtilizationPercentage"] = wanted.clone();
    }
    let others = metrics
        .iter()
        .filter(|metric| !(is_cpu(metric) && has_utilization(metric)));
    insert_annotation(
        &mut annotations,
        METRICS,
        others.map(|metric| to_v1_metric(metric, &TARGETS)).collect(),
    );
    let behavior = remove_field(&mut object, "spec", "behavior");
    if behavior.is_object() {
        annotations.insert(BEHAVIOR.to_owned(), text(&internal_behavior(&behavior)).into());
    }
    let current = remove_field(&mut object, "status", "currentMetrics");
    let current = current.as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(is) = cpu_utilization(current, "current") {
        object["status"]["currentCPUUtilizationPercentage"] = is.clone();
    }
    insert_annotation(
        &mut annotations,
        CURRENT,
        current
            .iter()
            .map(|metric| to_v1_metric(metric, &CURRENTS))
            .collect(),
    );
    let conditions = remove_field(&mut object, "status", "conditions");
    insert_annotation(
        &mut annotations,
        CONDITIONS,
        conditions.as_array().cloned().unwrap_or_default(),
    );
    if !annotations.is_empty() {
        let all = &mut object["metadata"]["annotations"];
        if let Some(known) = all.as_object_mut() {
            known.append(&mut annotations);
        } else {
            *all = Value::Object(annotations);
        }
    }
    object
}

/// Converts to autoscaling/v2. An annotation that cannot be decoded is ignored.
pub(super) fn to_v2(mut object: Value) -> Value {
    let mut said = |name: &str| -> Option<Value> {
        let annotations = object["metadata"]["annotations"].as_object_mut()?;
        serde_json::from_str(annotations.shift_remove(name)?.as_str()?).ok()
    };
    let metrics = said(METRICS);
    let behavior = said(BEHAVIOR);
    let current = said(CURRENT);
    let conditions = said(CONDITIONS);
    let list = |said: Option<Value>, fields: &[(&str, Fields)]| -> Vec<Value> {
        let metrics = said.as_ref().and_then(Value::as_array);
        metrics
            .into_iter()
            .flatten()
            .map(|metric| to_v2_metric(metric, fields))
            .collect()
    };
    let mut metrics = list(metrics, &TARGETS);
    let wanted = remove_field(&mut object, "spec", "targetCPUUtilizationPercentage");
    if !wanted.is_null() {
        let target = json!({ "type": "Utilization", "averageUtilization": wanted });
        metrics.push(json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } }));
    }
    if metrics.is_empty() {
        // v1 had this default implicitly.
        let target = json!({ "type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION });
        metrics.push(json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } }));
    }
    // An object without a spec, from which fields were removed, is a struct with one.
    if object["spec"].is_object() || object["spec"].is_null() {
        object["spec"]["metrics"] = metrics.into();
    }
    if let Some(behavior) = behavior {
        object["spec"]["behavior"] = external_behavior(&behavior);
    }
    let is = remove_field(&mut object, "status", "currentCPUUtilizationPercentage");
    let mut current = list(current, &CURRENTS);
    if current.is_empty() && !is.is_null() {
        let resource = json!({ "name": "cpu", "current": { "averageUtilization": is } });
        current.push(json!({ "type": "Resource", "resource": resource }));
    }
    if !current.is_empty() {
        object["status"]["currentMetrics"] = current.into();
    }
    if let Some(conditions) = conditions {
        object["status"]["conditions"] = conditions;
    }
    object
}

/// Converts a metric to v1.
fn to_v1_metric(metric: &Value, sources: &[(&str, Fields)]) -> Value {
    let mut shown = json!({ "type": metric["type"] });
    for (source, fields) in sources.iter().filter(|(source, _)| metric[*source].is_object()) {
        for (field, path, otherwise) in *fields {
            let value = path.iter().fold(&metric[*source], |value, key| &value[*key]);
            match otherwise {
                _ if !value.is_null() => shown[*source][*field] = value.clone(),
                Some(otherwise) => shown[*source][*field] = (*otherwise).into(),
                None => {}
            }
        }
    }
    shown
}

/// Converts a metric to v2.
fn to_v2_metric(metric: &Value, sources: &[(&str, Fields)]) -> Value {
    let mut shown = json!({ "type": metric["type"] });
    for (source, fields) in sources.iter().filter(|(source, _)| metric[*source].is_object()) {
        for (field, path, _) in *fields {
            let value = &metric[*source][*field];
            if !value.is_null() {
                *path
                    .iter()
                    .fold(&mut shown[*source], |place, key| &mut place[*key]) = value.clone();
            }
        }
        if let Some(target) = shown[*source].get_mut("target") {
            let is_set = |field: &str| !target[field].is_null();
            let kind = if is_set("averageUtilization") {
                "Utilization"
            } else if is_set("averageValue") {
                "AverageValue"
            } else {
                "Value"
            };
            target["type"] = kind.into();
        }
    }
    shown
}

/// Converts the behavior to the field names of the internal structs, with all fields present.
fn internal_behavior(behavior: &Value) -> Value {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return Value::Null;
        }
        let policies = rules["policies"].as_array().map(|policies| {
            let policies = policies.iter().map(|policy| {
                json!({ "Type": policy["type"], "Value": policy["value"], "PeriodSeconds": policy["periodSeconds"] })
            });
            policies.collect::<Vec<_>>()
        });
        json!({
            "StabilizationWindowSeconds": rules["stabilizationWindowSeconds"],
            "SelectPolicy": rules["selectPolicy"],
            "Policies": policies,
            "Tolerance": rules["tolerance"],
        })
    };
    json!({ "ScaleUp": rules(&behavior["scaleUp"]), "ScaleDown": rules(&behavior["scaleDown"]) })
}

/// Converts the behavior to the field names of the API, without empty fields.
fn external_behavior(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let said = fields.iter().filter(|(_, value)| !value.is_null());
            let named = said.map(|(name, value)| {
                let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
                (
                    format!("{}{rest}", first.to_lowercase()),
                    external_behavior(value),
                )
            });
            Value::Object(named.collect())
        }
        Value::Array(items) => items.iter().map(external_behavior).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the utilization of the first CPU metric, if it has one.
fn cpu_utilization<'a>(metrics: &'a [Value], what: &str) -> Option<&'a Value> {
    let cpu = metrics.iter().find(|metric| is_cpu(metric))?;
    Some(&cpu["resource"][what]["averageUtilization"]).filter(|value| !value.is_null())
}

fn is_cpu(metric: &Value) -> bool {
    metric["type"] == "Resource" && metric["resource"]["name"] == "cpu"
}

fn has_utilization(metric: &Value) -> bool {
    !metric["resource"]["target"]["averageUtilization"].is_null()
}

fn insert_annotation(annotations: &mut Map<String, Value>, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        annotations.insert(name.to_owned(), text(&list.into()).into());
    }
}

fn text(value: &Value) -> String {
    String::from_utf8(encode_json(value)).expect("JSON is UTF-8")
}

/// Removes and returns a field of a part of the object; null if there is none.
fn remove_field(object: &mut Value, part: &str, field: &str) -> Value {
    let fields = object.get_mut(part).and_then(Value::as_object_mut);
    fields
        .and_then(|fields| fields.shift_remove(field))
        .unwrap_or_default()
}
