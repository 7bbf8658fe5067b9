//! Warnings about valid objects that are probably a mistake. It must not know how they are sent.
//!
//! Of pods and their templates: ports, variables, names, selectors, pull secrets, host aliases, and what is deprecated. Fractional
//! bytes, overlapping paths of volumes, annotations for AppArmor and the form of addresses are left out.
//!
//! Source: kubernetes `pkg/api/{pod,service}/warnings.go`, and `WarningsOnCreate` and `WarningsOnUpdate` of the strategies;
//! apiextensions `registry/customresource/strategy.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::Version;
use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use serde_json::Value;

use crate::fields::{below, list};
use crate::{naming, types};

mod deprecated;

/// Returns the warnings about a new object.
pub fn of_new(kind: &ApiResource, object: &Value, version: Version) -> Vec<String> {
    if kind.custom {
        return of_finalizers(object, None);
    }
    let Some(workload) = workload(kind) else {
        return of_others(kind, object, version);
    };
    let mut warnings = of_name(workload, object);
    warnings.extend(of_template(workload, object, version));
    warnings.extend(of_history(workload, object));
    warnings
}

/// Returns the warnings about an object that replaces `old`.
pub fn of_changed(kind: &ApiResource, object: &Value, old: &Value, version: Version) -> Vec<String> {
    if kind.custom {
        return of_finalizers(object, Some(old));
    }
    let mut warnings = Vec::new();
    let Some(workload) = workload(kind) else {
        return of_others(kind, object, version);
    };
    // People do not update pods, and controllers do not read warnings. The generation of a daemon set's template is not set.
    let is_read = !matches!(workload, Workload::Pod | Workload::DaemonSet);
    if is_read && object["spec"] != old["spec"] {
        warnings.extend(of_template(workload, object, version));
    }
    warnings.extend(of_history(workload, object));
    if workload == Workload::CronJob && text(&object["spec"]["schedule"]).contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .to_owned(),
        );
    }
    warnings
}

/// Returns the warnings about an object that is not a workload.
fn of_others(kind: &ApiResource, object: &Value, version: Version) -> Vec<String> {
    match types::of(kind).map(|known| known.name) {
        Some("core/v1.Service") => of_service(object, version),
        Some("core/v1.Node") if !text(&object["spec"]["externalID"]).is_empty() => {
            vec!["spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned()]
        }
        Some(_) | None => Vec::new(),
    }
}

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

fn of_service(service: &Value, version: Version) -> Vec<String> {
    let spec = &service["spec"];
    let (kind, is_external) = (text(&spec["type"]), spec["type"] == "ExternalName");
    let is_headless = kind == "ClusterIP" && spec["clusterIP"] == "None";
    let has_addresses = !list(spec, "externalIPs").is_empty();
    let mut warnings = Vec::new();
    if !service["metadata"]["annotations"][TOPOLOGY_HINTS].is_null() {
        warnings.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let mut add = |applies: bool, text: &str| {
        if applies {
            warnings.push(text.to_owned());
        }
    };
    let balanced = !text(&spec["loadBalancerIP"]).is_empty();
    add(
        is_headless && balanced,
        "spec.loadBalancerIP is ignored for headless services",
    );
    add(
        is_headless && has_addresses,
        "spec.externalIPs is ignored for headless services",
    );
    add(
        is_headless && spec["sessionAffinity"] != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    add(
        version >= Version::V1_36 && has_addresses && !is_headless && !is_external,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    add(
        is_external && has_addresses,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    add(
        !is_external && !text(&spec["externalName"]).is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    add(
        spec["trafficDistribution"] == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    Pod,
    /// A ReplicaSet, Deployment, ReplicationController or Job, whose name is in those of its pods.
    Named,
    CronJob,
    DaemonSet,
    StatefulSet,
}

fn workload(kind: &ApiResource) -> Option<Workload> {
    Some(match types::of(kind)?.name {
        "core/v1.Pod" => Workload::Pod,
        "apps/v1.Deployment" | "apps/v1.ReplicaSet" | "core/v1.ReplicationController" | "batch/v1.Job" => {
            Workload::Named
        }
        "batch/v1.CronJob" => Workload::CronJob,
        "apps/v1.DaemonSet" => Workload::DaemonSet,
        "apps/v1.StatefulSet" => Workload::StatefulSet,
        _ => return None,
    })
}

fn of_name(workload: Workload, object: &Value) -> Vec<String> {
    let used = match workload {
        Workload::Pod => "the Pod's hostname",
        Workload::Named | Workload::CronJob => "Pod names and hostnames",
        Workload::DaemonSet | Workload::StatefulSet => return Vec::new(),
    };
    let problems = naming::label(text(&object["metadata"]["name"]));
    if problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
        problems.join(" ")
    )]
}

fn of_history(workload: Workload, object: &Value) -> Option<String> {
    let limit = object["spec"]["revisionHistoryLimit"].as_i64();
    (workload == Workload::StatefulSet && limit.is_some_and(|limit| limit < 0)).then(|| {
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
            .to_owned()
    })
}

fn of_template(workload: Workload, object: &Value, version: Version) -> Vec<String> {
    let (at, at_metadata) = match workload {
        Workload::Pod => ("spec", "metadata"),
        Workload::Named | Workload::DaemonSet | Workload::StatefulSet => {
            ("spec.template.spec", "spec.template.metadata")
        }
        Workload::CronJob => (
            "spec.jobTemplate.spec.template.spec",
            "spec.jobTemplate.spec.template.metadata",
        ),
    };
    let (spec, metadata) = (below(object, at), below(object, at_metadata));
    let mut warnings = Vec::new();
    deprecated::node_selectors(&mut warnings, spec, at, version);
    for (nth, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = format!("{at}.topologySpreadConstraints[{nth}]");
        warnings.extend(deprecated::topology_key(constraint, &at));
        no_selector(&mut warnings, constraint, &at);
    }
    deprecated::annotations(&mut warnings, metadata, at_metadata);
    deprecated::volumes(&mut warnings, spec, at);
    repeated(&mut warnings, (spec, "hostAliases", "ip"), at);
    repeated(&mut warnings, (spec, "imagePullSecrets", "name"), at);
    for (nth, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(&secret["name"]).is_empty() {
            warnings.push(format!(
                "{at}.imagePullSecrets[{nth}].name: invalid empty name \"\""
            ));
        }
    }
    let containers = || {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |field| {
                let containers = list(spec, field).iter().enumerate();
                containers.map(move |(nth, container)| (format!("{at}.{field}[{nth}]"), container))
            })
    };
    let described = (metadata, at_metadata);
    let context = &spec["securityContext"];
    deprecated::seccomp(
        &mut warnings,
        described,
        context,
        "seccomp.security.alpha.kubernetes.io/pod",
    );
    for (at, container) in containers() {
        let annotation = format!(
            "container.seccomp.security.alpha.kubernetes.io/{}",
            text(&container["name"])
        );
        deprecated::seccomp(
            &mut warnings,
            described,
            &container["securityContext"],
            &annotation,
        );
        variables(&mut warnings, container, &at);
    }
    let ports: Vec<(String, &Value)> = { containers() }
        .flat_map(|(at, container)| {
            let ports = list(container, "ports").iter().enumerate();
            ports.map(move |(nth, port)| (format!("{at}.ports[{nth}]"), port))
        })
        .collect();
    of_ports(&mut warnings, &ports);
    if spec["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds < 0)
    {
        warnings.push(format!(
            "{at}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let affinity = &spec["affinity"][field];
        for (terms, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            (
                "preferredDuringSchedulingIgnoredDuringExecution",
                "podAffinityTerm",
            ),
        ] {
            for (nth, term) in list(affinity, terms).iter().enumerate() {
                let at = format!("{at}.affinity.{field}.{terms}[{nth}]");
                match inner {
                    "" => no_selector(&mut warnings, term, &at),
                    inner => no_selector(&mut warnings, &term[inner], &format!("{at}.{inner}")),
                }
            }
        }
    }
    warnings
}

fn no_selector(warnings: &mut Vec<String>, term: &Value, at: &str) {
    if term["labelSelector"].is_null() {
        warnings.push(format!(
            "{at}.labelSelector: a null labelSelector results in matching no pod"
        ));
    }
}

fn repeated(warnings: &mut Vec<String>, (spec, field, key): (&Value, &str, &str), at: &str) {
    let mut known = BTreeSet::new();
    for (nth, item) in list(spec, field).iter().enumerate() {
        if !known.insert(text(&item[key])) {
            let value = go_text::quote(text(&item[key]));
            warnings.push(format!("{at}.{field}[{nth}].{key}: duplicate {key} {value}"));
        }
    }
}

fn variables(warnings: &mut Vec<String>, container: &Value, at: &str) {
    let mut known = BTreeSet::new();
    for (nth, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(&variable["name"]), text(&variable["value"]));
        if known.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        // A value that extends the previous one is intended.
        let extends = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if !extends {
            let name = go_text::quote(name);
            warnings.push(format!(
                "{at}.env[{nth}]: hides previous definition of {name}, which may be dropped when using apply"
            ));
        }
    }
}

fn of_ports(warnings: &mut Vec<String>, ports: &[(String, &Value)]) {
    let host = |port: &Value| {
        let number = port["hostPort"].as_i64().unwrap_or(0);
        (text(&port["hostIP"]).to_owned(), number)
    };
    let mut known: BTreeMap<(i64, &str), Vec<&(String, &Value)>> = BTreeMap::new();
    for place in ports {
        let (at, port) = place;
        let key = (
            port["containerPort"].as_i64().unwrap_or(0),
            text(&port["protocol"]),
        );
        let others = known.entry(key).or_default();
        for (other_at, other) in others.iter().copied() {
            let ((ip, number), (other_ip, other_number)) = (host(port), host(other));
            let what = if ip == other_ip && number == other_number {
                "duplicate"
            } else if number == 0 || other_number == 0 {
                "overlapping"
            } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{at}: {what} port definition with {other_at}"));
        }
        others.push(place);
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (at, port) in ports {
        let name = text(&port["name"]);
        if name.is_empty() {
            continue;
        }
        match names.get(name) {
            Some(other) => warnings.push(format!(
                "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                go_text::quote(name)
            )),
            None => drop(names.insert(name, at)),
        }
    }
}

/// Returns a warning for each new finalizer without a domain.
fn of_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let named = |object: &Value| -> BTreeSet<String> {
        let names = list(&object["metadata"], "finalizers").iter();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = old.map(named).unwrap_or_default();
    let fresh = named(object).into_iter().filter(|name| !known.contains(name));
    let without_domain = fresh.filter(|name| !name.contains('/'));
    without_domain
        .map(|name| {
            format!(
                "metadata.finalizers: {}: prefer a domain-qualified finalizer name to avoid accidental \
                 conflicts with other finalizer writers",
                go_text::quote(&name)
            )
        })
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
