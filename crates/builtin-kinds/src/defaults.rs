//! Defaulting. Nearly all defaults are data (`data/defaults.yaml`); the functions are for computed ones.
//!
//! It must not know users or the store.
//!
//! Source: Kubernetes `pkg/apis/*/v1/defaults.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::types::{self, Struct, Type};

mod aliases;

/// Sets the defaults of an object in the form of its struct ([`types::conform`]); the order of its fields can change. Returns
/// whether anything changed.
pub fn fill(kind: &ApiResource, object: &mut Value, version: Version) -> bool {
    types::of(kind)
        .zip(object.as_object_mut())
        .is_some_and(|(known, object)| fill_struct(known, object, version))
}

fn fill_struct(known: &'static Struct, object: &mut Map<String, Value>, version: Version) -> bool {
    let mut filled = false;
    if !has_defaults(known) {
        return filled;
    }
    let minor = u64::from(version.minor());
    for rule in rules().get(known.name).into_iter().flatten() {
        if rule
            .get("since")
            .and_then(Value::as_u64)
            .is_some_and(|since| minor < since)
        {
            continue;
        }
        let inner = rule.get("at").and_then(Value::as_str);
        let about = match inner {
            None => Some(&mut *object),
            Some(field) => object.get_mut(field).and_then(Value::as_object_mut),
        };
        let values = rule.get("then").unwrap_or(rule);
        if let Some(about) = about
            && rule.get("when").is_none_or(|when| holds(about, when))
        {
            filled |= fill_absent(about, values);
        }
    }
    for field in &known.fields {
        if let Some(default) = field.default
            && is_absent(object.get(field.name))
        {
            object.insert(field.name.to_owned(), default.into());
            filled = true;
        }
    }
    filled |= compute(known.name, object);
    for field in &known.fields {
        if let Some(value) = object.get_mut(field.name) {
            filled |= fill_below(&field.holds, value, version);
        }
    }
    filled
}

fn fill_below(of: &Type, value: &mut Value, version: Version) -> bool {
    let mut filled = false;
    match value {
        Value::Object(object) => {
            if let Some(known) = of.as_struct() {
                filled = fill_struct(known, object, version);
            } else if let Some(values) = of.values() {
                for value in object.values_mut() {
                    filled |= fill_below(values, value, version);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = of.items() {
                for item in items {
                    filled |= fill_below(of, item, version);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    filled
}

/// Returns whether the struct or one below it has defaults.
fn has_defaults(known: &'static Struct) -> bool {
    let reaches = || reaches_defaults(known, &mut BTreeSet::new());
    *known.has_defaults.get_or_init(reaches)
}

fn reaches_defaults(known: &'static Struct, seen: &mut BTreeSet<&'static str>) -> bool {
    // A struct that is being visited was counted at its first visit.
    seen.insert(known.name)
        && (rules().contains_key(known.name)
            || compute(known.name, &mut Map::new())
            || known.fields.iter().any(|field| {
                field.default.is_some()
                    || field
                        .holds
                        .holder()
                        .is_some_and(|below| reaches_defaults(below, seen))
            }))
}

fn rules() -> &'static BTreeMap<String, Vec<Value>> {
    static RULES: OnceLock<BTreeMap<String, Vec<Value>>> = OnceLock::new();
    RULES.get_or_init(|| {
        serde_saphyr::from_str(include_str!("../data/defaults.yaml"))
            .expect("the table of defaults is YAML, as a test sees")
    })
}

/// Returns whether the fields fulfil the condition.
fn holds(object: &Map<String, Value>, when: &Value) -> bool {
    when.as_object().into_iter().flatten().all(|(name, wanted)| {
        let value = object.get(name);
        match wanted {
            Value::Null => is_absent(value),
            Value::Array(choices) => value.is_some_and(|value| choices.contains(value)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => value == Some(wanted),
        }
    })
}

fn fill_absent(object: &mut Map<String, Value>, values: &Value) -> bool {
    let mut filled = false;
    for (name, value) in values.as_object().into_iter().flatten() {
        match object.get_mut(name) {
            Some(Value::Object(below)) if value.is_object() => filled |= fill_absent(below, value),
            current if is_absent(current.as_deref()) => {
                object.insert(name.clone(), value.clone());
                filled = true;
            }
            Some(_) | None => {}
        }
    }
    filled
}

fn is_absent(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
    }
}

/// Sets defaults that depend on other fields. Returns false if the struct has none.
fn compute(name: &str, object: &mut Map<String, Value>) -> bool {
    match name {
        "core/v1.Container" | "core/v1.EphemeralContainer" => pull_policy(object, "image", "imagePullPolicy"),
        "core/v1.ImageVolumeSource" => pull_policy(object, "reference", "pullPolicy"),
        "core/v1.Volume" if object.keys().all(|key| key == "name") => {
            object.insert("emptyDir".to_owned(), json!({}));
        }
        "core/v1.ServicePort" => {
            let target = object.get("targetPort");
            if is_absent(target) || target == Some(&json!(0)) {
                let port = object.get("port").cloned().unwrap_or_default();
                object.insert("targetPort".to_owned(), port);
            }
        }
        "core/v1.PodSpec" | "core/v1.PodStatus" | "core/v1.NodeSpec" => aliases::settle(name, object),
        "core/v1.LimitRangeItem" => limits(object),
        "apps/v1.StatefulSetSpec" => claims(object),
        "core/v1.Pod" => {
            if let Some(spec) = object.get_mut("spec") {
                requests_from_limits(spec);
                host_ports(spec);
            }
        }
        "core/v1.Service" => virtual_addresses(object),
        "core/v1.ServiceSpec" => {
            let reached = |field: &str| object.get(field).is_some_and(|value| !is_absent(Some(value)));
            if object.get("type") == Some(&json!("ClusterIP")) && reached("externalIPs") {
                fill_absent(object, &json!({ "externalTrafficPolicy": "Cluster" }));
            }
            if object.get("sessionAffinity") == Some(&json!("None")) {
                object.shift_remove("sessionAffinityConfig");
            }
        }
        "flowcontrol/v1.FlowSchemaSpec" => fill_zero(object, &[("matchingPrecedence", 1000)]),
        "flowcontrol/v1.QueuingConfiguration" => {
            fill_zero(
                object,
                &[("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)],
            );
        }
        "core/v1.Secret" => string_data(object),
        "core/v1.Namespace" => {
            if let Some(metadata) = object.get_mut("metadata")
                && let Some(name) = metadata.get("name").cloned()
            {
                metadata["labels"]["kubernetes.io/metadata.name"] = name;
            }
        }
        "core/v1.NodeStatus" => {
            if let (true, Some(capacity)) = (
                is_absent(object.get("allocatable")),
                object.get("capacity").cloned(),
            ) {
                object.insert("allocatable".to_owned(), capacity);
            }
        }
        "core/v1.ReplicationController" => {
            let labels = object
                .get("spec")
                .and_then(|spec| spec.pointer("/template/metadata/labels"));
            if let Some(labels) = labels.cloned() {
                if object["spec"].get("selector").is_none_or(Value::is_null) {
                    object["spec"]["selector"] = labels.clone();
                }
                own_labels(object, labels);
            }
        }
        "batch/v1.Job" => {
            let labels = object
                .get("spec")
                .and_then(|spec| spec.pointer("/template/metadata/labels"));
            if let Some(labels) = labels.cloned() {
                own_labels(object, labels);
            }
        }
        "networking/v1.NetworkPolicySpec" if is_absent(object.get("policyTypes")) => {
            let types = if is_absent(object.get("egress")) {
                json!(["Ingress"])
            } else {
                json!(["Ingress", "Egress"])
            };
            object.insert("policyTypes".to_owned(), types);
        }
        _ => return false,
    }
    true
}

fn pull_policy(object: &mut Map<String, Value>, image: &str, policy: &str) {
    if !is_absent(object.get(policy)) {
        return;
    }
    let image = object.get(image).and_then(Value::as_str).unwrap_or_default();
    let value = if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    object.insert(policy.to_owned(), value.into());
}

/// Returns whether the tag of an image is `latest`, explicitly or by default. An image with a digest has no tag.
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    match last
        .split_once('@')
        .map_or(last, |(name, _)| name)
        .split_once(':')
    {
        Some((_, tag)) => tag == "latest",
        None => !last.contains('@') && !image.is_empty(),
    }
}

/// Sets the defaults of a LimitRange item, which follow from its other fields.
fn limits(item: &mut Map<String, Value>) {
    if item.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let value = item.get(from).filter(|value| value.is_object()).cloned();
        fill_absent(item, &json!({ to: value.unwrap_or_else(|| json!({})) }));
    }
}

/// Sets kind and version of claim templates.
fn claims(spec: &mut Map<String, Value>) {
    let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    }
}

fn requests_from_limits(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let Some(limits) = container
                .pointer("/resources/limits")
                .and_then(Value::as_object)
                .cloned()
            else {
                continue;
            };
            for (name, limit) in limits {
                let requests = &mut container["resources"]["requests"];
                if requests.get(&name).is_none() {
                    requests[&name] = limit;
                }
            }
        }
    }
}

fn host_ports(spec: &mut Value) {
    if spec.get("hostNetwork") != Some(&true.into()) {
        return;
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for port in containers
            .into_iter()
            .flatten()
            .filter_map(|container| container.get_mut("ports"))
            .filter_map(Value::as_array_mut)
            .flatten()
        {
            if port.get("hostPort").is_none() {
                port["hostPort"] = port["containerPort"].clone();
            }
        }
    }
}

/// Sets `ipMode` of load balancer addresses.
fn virtual_addresses(service: &mut Map<String, Value>) {
    if service
        .get("spec")
        .is_none_or(|spec| spec["type"] != "LoadBalancer")
    {
        return;
    }
    let status = service.get_mut("status");
    let ingress = status.and_then(|status| status.pointer_mut("/loadBalancer/ingress"));
    let ingress = ingress.and_then(Value::as_array_mut);
    for address in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !is_absent(address.get("ip")) {
            fill_absent(address, &json!({ "ipMode": "VIP" }));
        }
    }
}

/// Sets numbers that are encoded even if 0, and must not be 0.
fn fill_zero(object: &mut Map<String, Value>, numbers: &[(&str, i64)]) {
    for (field, number) in numbers {
        if object.get(*field).is_none_or(|value| value == 0) {
            object.insert((*field).to_owned(), (*number).into());
        }
    }
}

/// Moves the write-only `stringData` to `data`.
fn string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.shift_remove("stringData") else {
        return;
    };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    for (key, text) in texts {
        data[key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

fn own_labels(object: &mut Map<String, Value>, labels: Value) {
    if let Some(metadata) = object
        .get_mut("metadata")
        .filter(|metadata| metadata.get("labels").is_none())
    {
        metadata["labels"] = labels;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn every_default_names_an_existing_field() {
        for (name, rules) in rules() {
            let known = types::named(name).unwrap_or_else(|| panic!("{name} is no struct"));
            for rule in rules {
                let about = match rule.get("at").and_then(Value::as_str) {
                    Some(field) => known.field(field).unwrap().holds.as_struct().unwrap(),
                    None => known,
                };
                let parts = match rule.get("then") {
                    Some(then) => vec![rule.get("when"), Some(then)],
                    None => vec![Some(rule)],
                };
                let parts = parts.into_iter().flatten();
                for field in parts.flat_map(|part| part.as_object().unwrap().keys()) {
                    assert!(about.field(field).is_some(), "{name} has no {field}");
                }
            }
        }
    }

    #[rstest]
    #[case("nginx", true)]
    #[case("nginx:latest", true)]
    #[case("nginx:1.27", false)]
    #[case("registry:5000/nginx", true)]
    #[case("registry:5000/nginx:1", false)]
    #[case("nginx@sha256:0123", false)]
    fn images_without_tag_are_latest(#[case] image: &str, #[case] latest: bool) {
        assert_eq!(is_latest(image), latest);
    }
}
