//! Validation of pods and pod templates.

use std::collections::HashSet;

use apimachinery::Version;
use serde_json::Value;

use super::context::FieldContext;
use super::formats::{is_port, qualified_name};
use super::volumes::is_sound;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::subdomain;
use crate::types;
use crate::types::Struct;

/// Validates what is forbidden only in a new pod.
pub(super) fn created(known: &Struct, object: &Value, errors: &mut ErrorList) {
    if known.name != "core/v1.Pod" {
        return;
    }
    let spec = &object["spec"];
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    let placed = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if placed && !list(spec, "schedulingGates").is_empty() {
        errors.forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        );
    }
}

/// Spaces around an image are allowed in templates, not in pods.
pub(super) fn images(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for field in ["containers", "initContainers"] {
        for (nth, container) in list(&context.value["spec"], field).iter().enumerate() {
            let image = container["image"].as_str().unwrap_or_default();
            if image.trim() != image {
                errors.invalid(
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
pub(super) fn host_ports(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let mut taken = HashSet::new();
    for (at, port) in ports(context.value) {
        let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else {
            continue;
        };
        let text = |field: &str| port[field].as_str().unwrap_or_default();
        let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
        if !taken.insert(key.clone()) {
            errors.duplicate(&context.at(&format!("{at}.hostPort")), &key.into(), "");
        }
    }
}

pub(super) fn host_network(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.value["hostNetwork"] != true {
        return;
    }
    for (at, port) in ports(context.value) {
        // A template can omit it: it is defaulted in the pod.
        let said = port["hostPort"].as_i64().is_some_and(|number| number != 0);
        if said && port["hostPort"] != port["containerPort"] {
            errors.invalid(
                &context.at(&format!("{at}.hostPort")),
                &port["hostPort"],
                "must match `containerPort` when `hostNetwork` is true",
            );
        }
    }
}

pub(super) fn shared_processes(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let is = |field: &str| context.value[field] == true;
    if is("shareProcessNamespace") && is("hostPID") {
        // Since 1.37 the path is that of the API, not of the internal type.
        let field = match context.version >= Version::V1_37 {
            true => "shareProcessNamespace",
            false => "securityContext.shareProcessNamespace",
        };
        errors.invalid(
            &context.at(field),
            &true.into(),
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
}

pub(super) fn dns_config(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.text("dnsPolicy") == "None" && context.value["dnsConfig"].is_null() {
        errors.required(
            &context.at("dnsConfig"),
            "must provide `dnsConfig` when `dnsPolicy` is None",
        );
    }
}

pub(super) fn resources(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let resources = &context.value["resources"];
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (field, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in amounts.as_object().into_iter().flatten() {
            let at = context.at(&format!("resources.{field}[{name}]"));
            resource_name(name, &at, context.version, errors);
            let text = amount.as_str().unwrap_or_default();
            if text.starts_with('-') {
                errors.invalid(&at, amount, "must be greater than or equal to 0");
            }
            let limit = limits[name].as_str().filter(|_| field == "requests");
            if let Some(limit) = limit.filter(|limit| types::amount(text) > types::amount(limit)) {
                errors.invalid(
                    &context.at("resources.requests"),
                    amount,
                    &format!("must be less than or equal to {name} limit of {limit}"),
                );
            }
        }
    }
}

pub(super) fn resource_name(name: &str, at: &str, version: Version, errors: &mut ErrorList) {
    let mut why = qualified_name(name, version);
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !known {
        if why.is_empty() {
            why.push("must be a standard resource type or fully qualified".to_owned());
        }
        why.push("must be a standard resource for containers".to_owned());
    }
    for why in why {
        errors.invalid(at, &name.into(), &why);
    }
}

pub(super) fn liveness(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for probe in ["livenessProbe", "startupProbe"] {
        let threshold = &context.value[probe]["successThreshold"];
        if threshold.as_i64().is_some_and(|number| number > 1) {
            errors.invalid(
                &context.at(&format!("{probe}.successThreshold")),
                threshold,
                "must be 1",
            );
        }
    }
}

/// Validates that a readiness probe has no grace period.
pub(super) fn readiness(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let seconds = &context.value["readinessProbe"]["terminationGracePeriodSeconds"];
    if !seconds.is_null() {
        let at = context.at("readinessProbe.terminationGracePeriodSeconds");
        errors.invalid(&at, seconds, "must not be set for readinessProbes");
    }
}

/// Validates the resource of a `resourceFieldRef`.
pub(super) fn resource_field(context: &FieldContext<'_>, errors: &mut ErrorList) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let (at, resource) = (context.at("resource"), context.text("resource"));
    let huge = ["limits.hugepages-", "requests.hugepages-"];
    if resource.is_empty() {
        errors.required(&at, "");
    } else if !KNOWN.contains(&resource) && !huge.iter().any(|prefix| resource.starts_with(prefix)) {
        errors.unsupported(&at, &resource.into(), &KNOWN);
    }
}

pub(super) fn init_container(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = context.text("name");
    let regular = list(context.pod, "containers");
    let is_regular = context.has(regular, "name", &context.value["name"]);
    if !name.is_empty() && (is_regular || context.repeats(&["name"])) {
        errors.duplicate(&context.at("name"), &name.into(), "");
    }
    if context.text("restartPolicy") == "Always" {
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if !context.value[field].is_null() {
            errors.forbidden(
                &context.at(field),
                "may not be set for init containers without restartPolicy=Always",
            );
        }
    }
}

/// Validates an ephemeral container, for which many fields are forbidden.
pub(super) fn ephemeral_container(context: &FieldContext<'_>, errors: &mut ErrorList) {
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
        context.has(list(context.pod, "containers"), "name", name)
            || context.has(list(context.pod, "initContainers"), "name", name)
    };
    let name = &context.value["name"];
    if !context.text("name").is_empty() && (lasting(name) || context.repeats(&["name"])) {
        errors.duplicate(&context.at("name"), name, "");
    }
    let target = &context.value["targetContainerName"];
    if !context.text("targetContainerName").is_empty() && !lasting(target) {
        errors.not_found(&context.at("targetContainerName"), target);
    }
    for field in FIELDS {
        let value = &context.value[field];
        let fields = value.as_object();
        let is_set = fields.map_or(!value.is_null(), |fields| !fields.is_empty());
        if is_set {
            errors.forbidden(&context.at(field), WHY);
        }
    }
    for (nth, mount) in context.list("volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if mount[field].as_str().is_some_and(|path| !path.is_empty()) {
                errors.forbidden(&context.at(&format!("volumeMounts[{nth}].{field}")), WHY);
            }
        }
    }
}

/// Validates `hostnameOverride` of a pod.
pub(super) fn host_name(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = &context.value["hostnameOverride"];
    let Some(text) = name.as_str() else { return };
    let at = context.at("hostnameOverride");
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if context.value[field] == true {
            errors.forbidden(&at, &format!("may not be specified when {field} is true"));
        }
    }
    if text.len() > 64 {
        errors.too_long(&at, 64);
        return;
    }
    for why in subdomain(text) {
        errors.invalid(&at, name, &why);
    }
}

/// Validates sysctls: valid names, no duplicates, none that need the host's namespaces.
pub(super) fn sysctls(context: &FieldContext<'_>, errors: &mut ErrorList) {
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
    for (nth, sysctl) in context.list("sysctls").iter().enumerate() {
        let at = context.at(&format!("sysctls[{nth}].name"));
        let name = sysctl["name"].as_str().unwrap_or_default();
        let again = !seen.insert(name);
        if name.is_empty() {
            errors.required(&at, "");
        } else if name.len() > LONGEST || !is_sysctl(name) {
            let why = format!(
                "must have at most {LONGEST} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.invalid(&at, &name.into(), &why);
        } else if again {
            errors.duplicate(&at, &name.into(), "");
        }
        let dotted = with_dots(name);
        let of = |prefix: &str| {
            dotted
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let field = if context.pod["hostNetwork"] == true && of("net") {
            "hostNetwork"
        } else if context.pod["hostIPC"] == true && (of("fs.mqueue") || SHARED.contains(&dotted.as_str())) {
            "hostIPC"
        } else {
            continue;
        };
        let why = format!("may not be specified when '{field}' is true");
        errors.invalid(&at, &name.into(), &why);
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

pub(super) fn host_port(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let port = &context.value["hostPort"];
    if port.as_i64().is_some_and(|number| number != 0) && !is_port(port) {
        errors.invalid(
            &context.at("hostPort"),
            port,
            "must be between 1 and 65535, inclusive",
        );
    }
}

pub(super) fn value_source(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let source = &context.value["valueFrom"];
    let Some(sources) = source.as_object() else { return };
    let at = context.at("valueFrom");
    let nothing = Value::from("");
    if sources.is_empty() {
        let last = if context.version >= Version::V1_35 {
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        } else {
            "`configMapKeyRef` or `secretKeyRef`"
        };
        let why = format!("must specify one of: `fieldRef`, `resourceFieldRef`, {last}");
        errors.invalid(&at, &nothing, &why);
    } else if !context.text("value").is_empty() {
        errors.invalid(&at, &nothing, "may not be specified when `value` is not empty");
    } else if sources.len() > 1 {
        errors.invalid(
            &at,
            &nothing,
            "may not have more than one field specified at a time",
        );
    }
}

pub(super) fn field_path(context: &FieldContext<'_>, errors: &mut ErrorList) {
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
    let at = context.at("fieldPath");
    match context.text("fieldPath") {
        "" => errors.required(&at, ""),
        path if FIELDS.contains(&path) || path == "status.podIPs" || path.contains('[') => {}
        path => {
            let why = format!("error converting fieldPath: field label not supported: {path}");
            errors.invalid(&at, &path.into(), &why);
        }
    }
}

pub(super) fn variables_source(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let sources = ["configMapRef", "secretRef"];
    let sources: Vec<&str> = sources
        .into_iter()
        .filter(|field| !context.value[*field].is_null())
        .collect();
    for source in &sources {
        if context.value[*source]["name"].as_str().is_none_or(str::is_empty) {
            errors.required(&context.at(&format!("{source}.name")), "");
        }
    }
    // The error has the path of the list.
    let at = context
        .path
        .rsplit_once('[')
        .map_or(context.path, |(list, _)| list);
    match sources.len() {
        0 => errors.invalid(
            at,
            &"".into(),
            "must specify one of: `configMapRef` or `secretRef`",
        ),
        1 => {}
        _ => errors.invalid(
            at,
            &"".into(),
            "may not have more than one field specified at a time",
        ),
    }
}

pub(super) fn mount(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (name, path) = (context.text("name"), context.text("mountPath"));
    if name.is_empty() {
        errors.required(&context.at("name"), "");
    }
    let volumes = list(context.pod, "volumes");
    // A StatefulSet adds the volumes of its claim templates.
    let claims = list(&context.root["spec"], "volumeClaimTemplates");
    let said = &context.value["name"];
    // An invalid volume is none.
    let named = context.find(volumes, "name", said);
    let is_volume = named.is_some_and(|(first, last)| is_sound(&volumes[first]) || is_sound(&volumes[last]));
    let known = is_volume || context.has(claims, "metadata.name", said);
    if name.is_empty() || !known {
        errors.not_found(&context.at("name"), &name.into());
    }
    if path.is_empty() {
        errors.required(&context.at("mountPath"), "");
    }
    if !path.is_empty() && context.repeats(&["mountPath"]) {
        errors.invalid(&context.at("mountPath"), &path.into(), "must be unique");
    }
    for field in ["subPath", "subPathExpr"] {
        let sub = context.text(field);
        // The error has the path of the list.
        let list = context
            .path
            .rsplit_once('[')
            .map_or(context.path, |(list, _)| list);
        let at = format!("{list}.{field}");
        if sub.starts_with('/') {
            errors.invalid(&at, &sub.into(), "must be a relative path");
        }
        if sub.split('/').any(|part| part == "..") {
            errors.invalid(&at, &sub.into(), "must not contain '..'");
        }
    }
    let propagation = &context.value["mountPropagation"];
    let known = ["Bidirectional", "HostToContainer", "None"];
    if propagation.as_str().is_some_and(|word| !known.contains(&word)) {
        // The error has the path of the list.
        let list = context
            .path
            .rsplit_once('[')
            .map_or(context.path, |(list, _)| list);
        errors.unsupported(&format!("{list}.mountPropagation"), propagation, &known);
    }
}

/// Validates that a probe or lifecycle hook has exactly one action.
pub(super) fn handler(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut done = kinds.into_iter().filter(|kind| !context.value[*kind].is_null());
    let Some(first) = done.next() else {
        return errors.required(context.path, "must specify a handler type");
    };
    for second in done {
        errors.forbidden(&context.at(second), "may not specify more than 1 handler type");
    }
    let action = &context.value[first];
    let at = |field: &str| context.at(&format!("{first}.{field}"));
    match first {
        "exec" if list(action, "command").is_empty() => errors.required(&at("command"), ""),
        "httpGet" => {
            if action["path"].as_str().is_none_or(str::is_empty) {
                errors.required(&at("path"), "");
            }
            port_of(action, &at("port"), context.version, errors);
            let scheme = &action["scheme"];
            if !matches!(scheme.as_str(), None | Some("HTTP" | "HTTPS")) {
                errors.unsupported(&at("scheme"), scheme, &["HTTP", "HTTPS"]);
            }
        }
        "tcpSocket" | "grpc" => port_of(action, &at("port"), context.version, errors),
        _ => {}
    }
}

fn port_of(action: &Value, path: &str, version: Version, errors: &mut ErrorList) {
    super::formats::check(
        super::formats::Format::Port,
        &action["port"],
        path,
        version,
        errors,
    );
}
