//! Validation of services, ingresses, network policies and endpoints.

use std::collections::HashSet;
use std::net::IpAddr;

use apimachinery::Version;
use serde_json::{Value, json};

use super::context::FieldContext;
use super::formats::{self, Format, cidr, service_name};
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::{label, subdomain};

const AN_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Validates the address fields of a service by its type.
pub(super) fn service_addresses(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let spec = &context.value["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let headless = is_headless(spec);
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => errors.invalid(
            "spec.clusterIPs[0]",
            &"None".into(),
            &format!("may not be set to 'None' for {kind} services"),
        ),
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                // `clusterIPs[0]` and `clusterIP` are the same value.
                let is_set = !spec[field].is_null() || field == "clusterIPs" && !spec["clusterIP"].is_null();
                if is_set {
                    errors.forbidden(
                        &format!("spec.{field}"),
                        "may not be set for ExternalName services",
                    );
                }
            }
            let at = "spec.externalName";
            match spec["externalName"].as_str().unwrap_or_default() {
                "" => errors.required(at, ""),
                name => {
                    for why in subdomain(name.strip_suffix('.').unwrap_or(name)) {
                        errors.invalid(at, &name.into(), &why);
                    }
                }
            }
        }
        _ => {}
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIPs"] == json!(["None"])
}

/// Validates session affinity, IP families and cluster IPs of a service.
pub(super) fn cluster_ips(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let timeout = &context.value["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if context.text("sessionAffinity") == "ClientIP"
        && timeout
            .as_i64()
            .is_some_and(|seconds| !(1..=86_400).contains(&seconds))
    {
        errors.invalid(
            &context.at("sessionAffinityConfig.clientIP.timeoutSeconds"),
            timeout,
            "must be greater than 0 and less than 86400",
        );
    }
    let policy = &context.value["ipFamilyPolicy"];
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        errors.unsupported(&context.at("ipFamilyPolicy"), policy, &policies);
    }
    for (nth, family) in context.list("ipFamilies").iter().enumerate() {
        if family != "IPv4" && family != "IPv6" {
            errors.unsupported(
                &context.at(&format!("ipFamilies[{nth}]")),
                family,
                &["IPv4", "IPv6"],
            );
        }
    }
    for (nth, address) in context.list("clusterIPs").iter().enumerate() {
        let text = address.as_str().unwrap_or_default();
        if !matches!(text, "" | "None") && text.parse::<IpAddr>().is_err() {
            errors.invalid(&context.at(&format!("clusterIPs[{nth}]")), address, AN_IP);
        }
    }
}

/// Validates the fields of a service that need a certain type.
pub(super) fn service_types(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let spec = &context.value["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = list(spec, "ports");
    if kind == "ClusterIP" {
        for (nth, port) in ports.iter().enumerate() {
            if port["nodePort"].as_i64().is_some_and(|port| port != 0) {
                errors.forbidden(
                    &format!("spec.ports[{nth}].nodePort"),
                    "may not be used when `type` is 'ClusterIP'",
                );
            }
        }
    }
    let mut known = HashSet::new();
    for (nth, port) in ports.iter().enumerate() {
        if !known.insert((&port["port"], &port["protocol"])) {
            let shown = json!({
                "Name": "",
                "Protocol": port["protocol"],
                "AppProtocol": null,
                "Port": port["port"],
                "TargetPort": 0,
                "NodePort": 0,
            });
            errors.duplicate(&format!("spec.ports[{nth}]"), &shown, "");
        }
    }
    for (nth, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        formats::check(
            Format::Cidr,
            range,
            &format!("spec.LoadBalancerSourceRanges[{nth}]"),
            context.version,
            errors,
        );
    }
    if kind != "LoadBalancer" {
        let fields = [("LoadBalancerSourceRanges", "loadBalancerSourceRanges")];
        let more = ["allocateLoadBalancerNodePorts", "loadBalancerClass"].map(|field| (field, field));
        for (shown, _) in fields
            .iter()
            .chain(&more)
            .filter(|(_, field)| !spec[*field].is_null())
        {
            let at = format!("spec.{shown}");
            errors.forbidden(&at, "may only be used when `type` is 'LoadBalancer'");
        }
    }
    let external = &spec["externalTrafficPolicy"];
    let policies = ["Cluster", "Local"];
    let at = "spec.externalTrafficPolicy";
    let reachable = matches!(kind, "NodePort" | "LoadBalancer") || !list(spec, "externalIPs").is_empty();
    match external.as_str() {
        Some(policy) if reachable && !policies.contains(&policy) => {
            errors.unsupported(at, external, &policies);
        }
        Some(_) if !reachable => {
            errors.invalid(at, external, "may only be set for externally-accessible services");
        }
        Some(_) | None => {}
    }
    let asked = kind == "LoadBalancer" && external == "Local";
    let checked = &spec["healthCheckNodePort"];
    if checked.as_i64().is_some_and(|port| port != 0) && !asked {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.invalid("spec.healthCheckNodePort", checked, why);
    }
    let internal = &spec["internalTrafficPolicy"];
    if internal
        .as_str()
        .is_some_and(|policy| !policies.contains(&policy))
    {
        errors.unsupported("spec.internalTrafficPolicy", internal, &policies);
    }
    let distribution = &spec["trafficDistribution"];
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let known = if context.version >= Version::V1_34 {
        &known[..]
    } else {
        &known[..1]
    };
    if distribution.as_str().is_some_and(|text| !known.contains(&text)) {
        errors.unsupported("spec.trafficDistribution", distribution, known);
    }
}

/// Validates a port of a service; several ports need names.
pub(super) fn service_port(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = context.text("name");
    let at = context.at("name");
    if name.is_empty() {
        if list(&context.root["spec"], "ports").len() > 1 {
            errors.required(&at, "");
        }
        return;
    }
    for why in label(name) {
        errors.invalid(&at, &name.into(), &why);
    }
    if context.repeats(&["name"]) {
        errors.duplicate(&at, &name.into(), "");
    }
}

pub(super) fn routed(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.list("rules").is_empty() && context.value["defaultBackend"].is_null() {
        errors.invalid(
            context.path,
            &Value::Null,
            "either `defaultBackend` or `rules` must be specified",
        );
    }
}

pub(super) fn ingress_path(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let path = context.text("path");
    let kind = context.text("pathType");
    let at = context.at("path");
    let mut invalid = |why: &str| errors.invalid(&at, &path.into(), why);
    match kind {
        "" => return errors.required(&context.at("pathType"), "pathType must be specified"),
        "Exact" | "Prefix" => {
            if !path.starts_with('/') {
                invalid("must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.contains(part) {
                    invalid(&format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if path.ends_with(end) {
                    invalid(&format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !path.starts_with('/') {
                invalid("must be an absolute path");
            }
        }
        _ => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.unsupported(&context.at("pathType"), &kind.into(), &known);
        }
    }
    backend_at(&context.value["backend"], &context.at("backend"), context, errors);
}

pub(super) fn backend(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.value.is_object() {
        backend_at(context.value, context.path, context, errors);
    }
}

fn backend_at(backend: &Value, path: &str, context: &FieldContext<'_>, errors: &mut ErrorList) {
    let service = &backend["service"];
    match (service.is_null(), backend["resource"].is_null()) {
        (true, true) => errors.invalid(path, &"".into(), "resource or service backend is required"),
        (false, false) => errors.invalid(path, &"".into(), "cannot set both resource and service backends"),
        (true, false) => {}
        (false, true) => {
            let name = service["name"].as_str().unwrap_or_default();
            let at = format!("{path}.service.name");
            if name.is_empty() {
                errors.required(&at, "");
            } else {
                for why in service_name(name, context.version) {
                    errors.invalid(&at, &name.into(), &why);
                }
            }
            let port = &service["port"];
            let named = port["name"].as_str().is_some_and(|name| !name.is_empty());
            let numbered = port["number"].as_i64().is_some_and(|number| number != 0);
            let at = |field: &str| format!("{path}.service.port.{field}");
            match (named, numbered) {
                (true, true) => errors.invalid(path, &"".into(), "cannot set both port name & port number"),
                (true, false) => {
                    formats::check(
                        Format::PortName,
                        &port["name"],
                        &at("name"),
                        context.version,
                        errors,
                    );
                }
                (false, true) => {
                    formats::check(
                        Format::PortNumber,
                        &port["number"],
                        &at("number"),
                        context.version,
                        errors,
                    );
                }
                (false, false) => errors.required(path, "port name or number is required"),
            }
        }
    }
}

/// Validates a peer of a NetworkPolicy: it must not be empty.
pub(super) fn peer(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.value.as_object().is_none_or(serde_json::Map::is_empty) {
        errors.required(context.path, "must specify a peer");
    }
    let block = &context.value["ipBlock"];
    excepted(context, block, errors);
    if block.is_object() && context.value.as_object().is_some_and(|fields| fields.len() > 1) {
        errors.forbidden(context.path, "may not specify both ipBlock and another peer");
    }
}

fn excepted(context: &FieldContext<'_>, block: &Value, errors: &mut ErrorList) {
    let Some((address, length)) = block["cidr"].as_str().and_then(cidr) else {
        return;
    };
    for (nth, except) in list(block, "except").iter().enumerate() {
        let at = context.at(&format!("ipBlock.except[{nth}]"));
        match except.as_str().and_then(cidr) {
            None => formats::check(Format::Cidr, except, &at, context.version, errors),
            Some((inner, inner_length)) => {
                let within = inner_length > length && contains(address, length, inner);
                if !within {
                    errors.invalid(&at, except, "must be a strict subset of `cidr`");
                }
            }
        }
    }
}

/// Validates a port or port range of a NetworkPolicy.
pub(super) fn policy_port(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (port, last) = (&context.value["port"], &context.value["endPort"]);
    let at = context.at("endPort");
    if !port.is_null() && !port.is_string() {
        formats::check(Format::Port, port, &context.at("port"), context.version, errors);
        if last.is_number() {
            if last.as_i64() < port.as_i64() {
                // Before 1.37 the value is that of the other field.
                let shown = if context.version >= Version::V1_37 {
                    last
                } else {
                    port
                };
                errors.invalid(&at, shown, "must be greater than or equal to `port`");
            }
            formats::check(Format::Port, last, &at, context.version, errors);
        }
        return;
    }
    let what = if port.is_null() {
        "not specified"
    } else {
        "non-numeric"
    };
    if last.is_number() {
        errors.invalid(&at, last, &format!("may not be specified when `port` is {what}"));
    }
    if !port.is_null() {
        formats::check(Format::Port, port, &context.at("port"), context.version, errors);
    }
}

/// Validates the controller of an IngressClass.
pub(super) fn controller(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (at, name) = (context.at("controller"), context.text("controller"));
    if name.is_empty() {
        return errors.required(&at, "");
    }
    let why = match name.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => subdomain(domain),
        Some(_) | None => vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()],
    };
    for why in why {
        errors.invalid(&at, &name.into(), &why);
    }
}

/// Validates the addresses of an endpoint against the address type of its slice.
pub(super) fn endpoint(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let at = context.at("addresses");
    let addresses = context.list("addresses");
    if addresses.is_empty() {
        errors.required(&at, "must contain at least 1 address");
    }
    let wanted = context.root["addressType"].as_str().unwrap_or_default();
    for (nth, address) in addresses.iter().enumerate() {
        let parsed = address.as_str().unwrap_or_default().parse::<IpAddr>();
        match (wanted, parsed) {
            ("IPv4" | "IPv6", Err(_)) => errors.invalid(&format!("{at}[{nth}]"), address, AN_IP),
            ("IPv4", Ok(IpAddr::V6(_))) => errors.invalid(&at, address, "must be an IPv4 address"),
            ("IPv6", Ok(IpAddr::V4(_))) => errors.invalid(&at, address, "must be an IPv6 address"),
            (_, _) => {}
        }
    }
}

fn contains(network: IpAddr, length: u8, address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((network, width), (address, other_width)) = (bits(network), bits(address));
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or_default();
    width == other_width && network & mask == address & mask
}

/// Validates a subset of Endpoints.
pub(super) fn subset(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let fields = ["addresses", "notReadyAddresses"];
    if fields.iter().all(|field| context.list(field).is_empty()) {
        errors.required(context.path, "must specify `addresses` or `notReadyAddresses`");
    }
    for field in fields {
        for (nth, address) in context.list(field).iter().enumerate() {
            let ip = &address["ip"];
            let at = context.at(&format!("{field}[{nth}].ip"));
            if ip.as_str().is_none_or(|ip| ip.parse::<IpAddr>().is_err()) {
                errors.invalid(&at, ip, AN_IP);
                errors.invalid(&at, ip, "must be a valid IP address");
            }
        }
    }
    let ports = context.list("ports");
    for (nth, port) in ports.iter().enumerate() {
        if ports.len() > 1 && port["name"].as_str().is_none_or(str::is_empty) {
            errors.required(&context.at(&format!("ports[{nth}].name")), "");
        }
        let at = context.at(&format!("ports[{nth}].port"));
        formats::check(Format::PortNumber, &port["port"], &at, context.version, errors);
    }
}

/// Validates the load balancer status of a service; only one of type LoadBalancer can have it.
pub(super) fn balancer(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let ingress = context.list("ingress");
    if context.root["spec"]["type"] != "LoadBalancer" && !ingress.is_empty() {
        errors.forbidden(
            &context.at("ingress"),
            "may only be used when `spec.type` is 'LoadBalancer'",
        );
        return;
    }
    for (nth, point) in ingress.iter().enumerate() {
        let at = context.at(&format!("ingress[{nth}]"));
        let ip = !point["ip"].as_str().unwrap_or_default().is_empty();
        if ip {
            formats::check(
                Format::Ip,
                &point["ip"],
                &format!("{at}.ip"),
                context.version,
                errors,
            );
        }
        let mode_at = format!("{at}.ipMode");
        match (ip, &point["ipMode"]) {
            (true, Value::Null) => errors.required(&mode_at, "must be specified when `ip` is set"),
            (false, Value::Null) => {}
            (false, _) => errors.forbidden(&mode_at, "may not be specified when `ip` is not set"),
            (true, mode) if mode == "VIP" || mode == "Proxy" => {}
            (true, mode) => errors.unsupported(&mode_at, mode, &["Proxy", "VIP"]),
        }
        let point = FieldContext {
            value: point,
            path: &at,
            ..*context
        };
        balanced_host(&point, errors);
    }
}

/// Validates a hostname of the load balancer status.
pub(super) fn balanced_host(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let host = &context.value["hostname"];
    let text = context.text("hostname");
    if text.is_empty() {
        return;
    }
    let at = context.at("hostname");
    formats::check(Format::Subdomain, host, &at, context.version, errors);
    if text.parse::<IpAddr>().is_ok() {
        errors.invalid(&at, host, "must be a DNS name, not an IP address");
    }
}
