//! Validation of pods and pod templates.

use std::collections::HashSet;

use apimachinery::Version;
use serde_json::Value;

use super::formats::{is_port, qualified_name};
use super::place::Place;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::subdomain;
use crate::types;
use crate::types::Struct;

/// Validates what is forbidden only in a new pod.
pub(super) fn created(known: &Struct, object: &Value, found: &mut ErrorList) {
    if known.name != "core/v1.Pod" {
        return;
    }
    let spec = &object["spec"];
    if !list(spec, "ephemeralContainers").is_empty() {
        found.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    let placed = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if placed && !list(spec, "schedulingGates").is_empty() {
        found.forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        );
    }
}

/// Spaces around an image are allowed in templates, not in pods.
pub(super) fn images(place: &Place<'_>, found: &mut ErrorList) {
    for field in ["containers", "initContainers"] {
        for (nth, container) in list(&place.value["spec"], field).iter().enumerate() {
            let image = container["image"].as_str().unwrap_or_default();
            if image.trim() != image {
                found.invalid(
                    &format!("spec.{field}[{nth}].image"),
                    &container["image"],
                    "must not have leading or trailing whitespace",
                );
            }
        }
    }
}

fn ports(spec: &Value) -> impl Iterator<Item = (String, &Value)> {
    let containers = list(spec, "containers").iter().enumerate();
    containers.flat_map(|(nth, container)| {
        let ports = list(container, "ports").iter().enumerate();
        ports.map(move |(port_nth, port)| (format!("containers[{nth}].ports[{port_nth}]"), port))
    })
}

/// Validates that host ports are unique.
pub(super) fn host_ports(place: &Place<'_>, found: &mut ErrorList) {
    let mut taken = HashSet::new();
    for (at, port) in ports(place.value) {
        let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else {
            continue;
        };
        let text = |field: &str| port[field].as_str().unwrap_or_default();
        let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
        if !taken.insert(key.clone()) {
            found.duplicate(&place.at(&format!("{at}.hostPort")), &key.into(), "");
        }
    }
}

pub(super) fn host_network(place: &Place<'_>, found: &mut ErrorList) {
    if place.value["hostNetwork"] != true {
        return;
    }
    for (at, port) in ports(place.value) {
        // A template can omit it: it is defaulted in the pod.
        let said = port["hostPort"].as_i64().is_some_and(|number| number != 0);
        if said && port["hostPort"] != port["containerPort"] {
            found.invalid(
                &place.at(&format!("{at}.hostPort")),
                &port["hostPort"],
                "must match `containerPort` when `hostNetwork` is true",
            );
        }
    }
}

pub(super) fn shared_processes(place: &Place<'_>, found: &mut ErrorList) {
    let is = |field: &str| place.value[field] == true;
    if is("shareProcessNamespace") && is("hostPID") {
        found.invalid(
            &place.at("securityContext.shareProcessNamespace"),
            &true.into(),
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
}

pub(super) fn dns_config(place: &Place<'_>, found: &mut ErrorList) {
    if place.text("dnsPolicy") == "None" && place.value["dnsConfig"].is_null() {
        found.required(
            &place.at("dnsConfig"),
            "must provide `dnsConfig` when `dnsPolicy` is None",
        );
    }
}

pub(super) fn resources(place: &Place<'_>, found: &mut ErrorList) {
    let resources = &place.value["resources"];
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (field, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in amounts.as_object().into_iter().flatten() {
            let at = place.at(&format!("resources.{field}[{name}]"));
            resource_name(name, &at, place.version, found);
            let text = amount.as_str().unwrap_or_default();
            if text.starts_with('-') {
                found.invalid(&at, amount, "must be greater than or equal to 0");
            }
            let limit = limits[name].as_str().filter(|_| field == "requests");
            if let Some(limit) = limit.filter(|limit| types::amount(text) > types::amount(limit)) {
                found.invalid(
                    &place.at("resources.requests"),
                    amount,
                    &format!("must be less than or equal to {name} limit of {limit}"),
                );
            }
        }
    }
}

pub(super) fn resource_name(name: &str, at: &str, version: Version, found: &mut ErrorList) {
    let mut why = qualified_name(name, version);
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !known {
        if why.is_empty() {
            why.push("must be a standard resource type or fully qualified".to_owned());
        }
        why.push("must be a standard resource for containers".to_owned());
    }
    for why in why {
        found.invalid(at, &name.into(), &why);
    }
}

pub(super) fn liveness(place: &Place<'_>, found: &mut ErrorList) {
    for probe in ["livenessProbe", "startupProbe"] {
        let threshold = &place.value[probe]["successThreshold"];
        if threshold.as_i64().is_some_and(|number| number > 1) {
            found.invalid(
                &place.at(&format!("{probe}.successThreshold")),
                threshold,
                "must be 1",
            );
        }
    }
}

/// Validates that a readiness probe has no grace period.
pub(super) fn readiness(place: &Place<'_>, found: &mut ErrorList) {
    let seconds = &place.value["readinessProbe"]["terminationGracePeriodSeconds"];
    if !seconds.is_null() {
        let at = place.at("readinessProbe.terminationGracePeriodSeconds");
        found.invalid(&at, seconds, "must not be set for readinessProbes");
    }
}

/// Validates the resource of a `resourceFieldRef`.
pub(super) fn resource_field(place: &Place<'_>, found: &mut ErrorList) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let (at, resource) = (place.at("resource"), place.text("resource"));
    let huge = ["limits.hugepages-", "requests.hugepages-"];
    if resource.is_empty() {
        found.required(&at, "");
    } else if !KNOWN.contains(&resource) && !huge.iter().any(|prefix| resource.starts_with(prefix)) {
        found.unsupported(&at, &resource.into(), &KNOWN);
    }
}

pub(super) fn init_container(place: &Place<'_>, found: &mut ErrorList) {
    let name = place.text("name");
    let regular = list(place.pod, "containers");
    let is_regular = place.has(regular, "name", &place.value["name"]);
    if !name.is_empty() && (is_regular || place.repeats(&["name"])) {
        found.duplicate(&place.at("name"), &name.into(), "");
    }
    if place.text("restartPolicy") == "Always" {
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if !place.value[field].is_null() {
            found.forbidden(
                &place.at(field),
                "may not be set for init containers without restartPolicy=Always",
            );
        }
    }
}

/// Validates an ephemeral container, for which many fields are forbidden.
pub(super) fn ephemeral_container(place: &Place<'_>, found: &mut ErrorList) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    const FIELDS: [&str; 9] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let lasting = |name: &Value| {
        place.has(list(place.pod, "containers"), "name", name)
            || place.has(list(place.pod, "initContainers"), "name", name)
    };
    let name = &place.value["name"];
    if !place.text("name").is_empty() && (lasting(name) || place.repeats(&["name"])) {
        found.duplicate(&place.at("name"), name, "");
    }
    let target = &place.value["targetContainerName"];
    if !place.text("targetContainerName").is_empty() && !lasting(target) {
        found.not_found(&place.at("targetContainerName"), target);
    }
    for field in FIELDS {
        let value = &place.value[field];
        let fields = value.as_object();
        let says = fields.map_or(!value.is_null(), |fields| !fields.is_empty());
        if says {
            found.forbidden(&place.at(field), WHY);
        }
    }
    for (nth, mount) in place.list("volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if mount[field].as_str().is_some_and(|path| !path.is_empty()) {
                found.forbidden(&place.at(&format!("volumeMounts[{nth}].{field}")), WHY);
            }
        }
    }
}

/// Validates `hostnameOverride` of a pod.
pub(super) fn host_name(place: &Place<'_>, found: &mut ErrorList) {
    let name = &place.value["hostnameOverride"];
    let Some(text) = name.as_str() else { return };
    let at = place.at("hostnameOverride");
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if place.value[field] == true {
            found.forbidden(&at, &format!("may not be specified when {field} is true"));
        }
    }
    if text.len() > 64 {
        found.too_long(&at, 64);
        return;
    }
    for why in subdomain(text) {
        found.invalid(&at, name, &why);
    }
}

/// Validates sysctls: valid names, no duplicates, none that need the host's namespaces.
pub(super) fn sysctls(place: &Place<'_>, found: &mut ErrorList) {
    const LONGEST: usize = 253;
    const SHARED: [&str; 6] = [
        "kernel.sem",
        "kernel.shm",
        "kernel.shm_rmid_forced",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
    ];
    let mut seen = HashSet::new();
    for (nth, sysctl) in place.list("sysctls").iter().enumerate() {
        let at = place.at(&format!("sysctls[{nth}].name"));
        let name = sysctl["name"].as_str().unwrap_or_default();
        let again = !seen.insert(name);
        if name.is_empty() {
            found.required(&at, "");
        } else if name.len() > LONGEST || !is_sysctl(name) {
            let why = format!(
                "must have at most {LONGEST} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            found.invalid(&at, &name.into(), &why);
        } else if again {
            found.duplicate(&at, &name.into(), "");
        }
        let dotted = with_dots(name);
        let of = |prefix: &str| {
            dotted
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let field = if place.pod["hostNetwork"] == true && of("net") {
            "hostNetwork"
        } else if place.pod["hostIPC"] == true && (of("fs.mqueue") || SHARED.contains(&dotted.as_str())) {
            "hostIPC"
        } else {
            continue;
        };
        let why = format!("may not be specified when '{field}' is true");
        found.invalid(&at, &name.into(), &why);
    }
}

/// Returns whether `name` consists of lower-case segments separated by dots or slashes.
fn is_sysctl(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split(['.', '/']).all(|part| {
        let ends = [part.bytes().next(), part.bytes().last()];
        ends.iter().all(|end| end.is_some_and(plain))
            && part
                .bytes()
                .all(|byte| plain(byte) || matches!(byte, b'-' | b'_'))
    })
}

/// Swaps slashes and dots if the first separator is a slash.
fn with_dots(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => {
            let swapped = name.chars().map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            });
            swapped.collect()
        }
        Some(_) | None => name.to_owned(),
    }
}

pub(super) fn host_port(place: &Place<'_>, found: &mut ErrorList) {
    let port = &place.value["hostPort"];
    if port.as_i64().is_some_and(|number| number != 0) && !is_port(port) {
        found.invalid(
            &place.at("hostPort"),
            port,
            "must be between 1 and 65535, inclusive",
        );
    }
}

pub(super) fn value_source(place: &Place<'_>, found: &mut ErrorList) {
    let source = &place.value["valueFrom"];
    let Some(sources) = source.as_object() else { return };
    let at = place.at("valueFrom");
    let nothing = Value::from("");
    if sources.is_empty() {
        let last = if place.version >= Version::V1_35 {
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        } else {
            "`configMapKeyRef` or `secretKeyRef`"
        };
        let why = format!("must specify one of: `fieldRef`, `resourceFieldRef`, {last}");
        found.invalid(&at, &nothing, &why);
    } else if !place.text("value").is_empty() {
        found.invalid(&at, &nothing, "may not be specified when `value` is not empty");
    } else if sources.len() > 1 {
        found.invalid(
            &at,
            &nothing,
            "may not have more than one field specified at a time",
        );
    }
}

pub(super) fn field_path(place: &Place<'_>, found: &mut ErrorList) {
    const FIELDS: [&str; 10] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.annotations",
        "metadata.labels",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
    ];
    let at = place.at("fieldPath");
    match place.text("fieldPath") {
        "" => found.required(&at, ""),
        path if FIELDS.contains(&path) || path == "status.podIPs" || path.contains('[') => {}
        path => {
            let why = format!("error converting fieldPath: field label not supported: {path}");
            found.invalid(&at, &path.into(), &why);
        }
    }
}

pub(super) fn variables_source(place: &Place<'_>, found: &mut ErrorList) {
    let sources = ["configMapRef", "secretRef"];
    let sources: Vec<&str> = sources
        .into_iter()
        .filter(|field| !place.value[*field].is_null())
        .collect();
    for source in &sources {
        if place.value[*source]["name"].as_str().is_none_or(str::is_empty) {
            found.required(&place.at(&format!("{source}.name")), "");
        }
    }
    // The error has the path of the list.
    let at = place.path.rsplit_once('[').map_or(place.path, |(list, _)| list);
    match sources.len() {
        0 => found.invalid(
            at,
            &"".into(),
            "must specify one of: `configMapRef` or `secretRef`",
        ),
        1 => {}
        _ => found.invalid(
            at,
            &"".into(),
            "may not have more than one field specified at a time",
        ),
    }
}

pub(super) fn mount(place: &Place<'_>, found: &mut ErrorList) {
    let (name, path) = (place.text("name"), place.text("mountPath"));
    if name.is_empty() {
        found.required(&place.at("name"), "");
    }
    let volumes = list(place.pod, "volumes");
    // A StatefulSet adds the volumes of its claim templates.
    let claims = list(&place.root["spec"], "volumeClaimTemplates");
    let said = &place.value["name"];
    let known = place.has(volumes, "name", said) || place.has(claims, "metadata.name", said);
    if name.is_empty() || !known {
        found.not_found(&place.at("name"), &name.into());
    }
    if path.is_empty() {
        found.required(&place.at("mountPath"), "");
    }
    if !path.is_empty() && place.repeats(&["mountPath"]) {
        found.invalid(&place.at("mountPath"), &path.into(), "must be unique");
    }
    for field in ["subPath", "subPathExpr"] {
        let sub = place.text(field);
        // The error has the path of the list.
        let list = place.path.rsplit_once('[').map_or(place.path, |(list, _)| list);
        let at = format!("{list}.{field}");
        if sub.starts_with('/') {
            found.invalid(&at, &sub.into(), "must be a relative path");
        }
        if sub.split('/').any(|part| part == "..") {
            found.invalid(&at, &sub.into(), "must not contain '..'");
        }
    }
    let propagation = &place.value["mountPropagation"];
    let known = ["Bidirectional", "HostToContainer", "None"];
    if propagation.as_str().is_some_and(|word| !known.contains(&word)) {
        // The error has the path of the list.
        let list = place.path.rsplit_once('[').map_or(place.path, |(list, _)| list);
        found.unsupported(&format!("{list}.mountPropagation"), propagation, &known);
    }
}

/// Validates that a probe or lifecycle hook has exactly one action.
pub(super) fn handler(place: &Place<'_>, found: &mut ErrorList) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut done = kinds.into_iter().filter(|kind| !place.value[*kind].is_null());
    let Some(first) = done.next() else {
        return found.required(place.path, "must specify a handler type");
    };
    for second in done {
        found.forbidden(&place.at(second), "may not specify more than 1 handler type");
    }
    let action = &place.value[first];
    let at = |field: &str| place.at(&format!("{first}.{field}"));
    match first {
        "exec" if list(action, "command").is_empty() => found.required(&at("command"), ""),
        "httpGet" => {
            if action["path"].as_str().is_none_or(str::is_empty) {
                found.required(&at("path"), "");
            }
            port_of(action, &at("port"), place.version, found);
            let scheme = &action["scheme"];
            if !matches!(scheme.as_str(), None | Some("HTTP" | "HTTPS")) {
                found.unsupported(&at("scheme"), scheme, &["HTTP", "HTTPS"]);
            }
        }
        "tcpSocket" | "grpc" => port_of(action, &at("port"), place.version, found),
        _ => {}
    }
}

fn port_of(action: &Value, path: &str, version: Version, found: &mut ErrorList) {
    super::formats::check(
        super::formats::Format::Port,
        &action["port"],
        path,
        version,
        found,
    );
}
