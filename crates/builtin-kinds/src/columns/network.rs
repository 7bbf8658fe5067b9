//! Cells of services, endpoints, ingresses and other network kinds.
//!
//! Source: kubernetes `pkg/printers/internalversion/printers.go`.

use std::collections::BTreeSet;

use apimachinery::Version;
use serde_json::Value;

use super::{Row, first_of, list, number, selectors, text};

pub(super) fn selected_labels(row: &Row<'_>) -> Value {
    selectors::labels(row.object.pointer("/spec/selector")).into()
}

pub(super) fn external_ip(row: &Row<'_>) -> Value {
    let external = texts(row.list("/spec/externalIPs"));
    let balanced = balancers(row);
    let shown = match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" if external.is_empty() && balanced.is_empty() => "<pending>".to_owned(),
        "LoadBalancer" => [balanced, external].concat().join(","),
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    };
    shown.into()
}

pub(super) fn service_ports(row: &Row<'_>) -> Value {
    let ports = row.list("/spec/ports").iter().map(|port| {
        let (number, protocol) = (number(port, "/port"), text(port, "/protocol"));
        match super::number(port, "/nodePort") {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    });
    or_none(ports.collect::<Vec<_>>().join(",")).into()
}

pub(super) fn endpoints(row: &Row<'_>) -> Value {
    let subsets = row.list("/subsets");
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses: Vec<&str> = list(subset, "/addresses")
            .iter()
            .map(|address| text(address, "/ip"))
            .collect();
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses.iter().map(|&address| address.to_owned()));
        }
        for port in ports {
            let port = number(port, "/port");
            all.extend(addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{port}"),
                false => format!("{address}:{port}"),
            }));
        }
    }
    first_of(&all, 3, ",").into()
}

pub(super) fn slice_ports(row: &Row<'_>) -> Value {
    let ports = row
        .list("/ports")
        .iter()
        .map(|port| match (&port["port"], &port["name"]) {
            (Value::Number(number), _) => number.to_string(),
            (_, Value::String(name)) => name.clone(),
            (_, _) => "*".to_owned(),
        });
    or_unset(&ports.collect::<Vec<_>>())
}

pub(super) fn slice_endpoints(row: &Row<'_>) -> Value {
    let endpoints = row.list("/endpoints").iter();
    or_unset(
        &endpoints
            .flat_map(|endpoint| texts(list(endpoint, "/addresses")))
            .collect::<Vec<_>>(),
    )
}

pub(super) fn ingress_hosts(row: &Row<'_>) -> Value {
    const SHOWN: usize = 3;
    let rules = row.list("/spec/rules");
    let hosts: Vec<&str> = rules
        .iter()
        .map(|rule| text(rule, "/host"))
        .filter(|host| !host.is_empty())
        .collect();
    if hosts.is_empty() {
        return "*".into();
    }
    let shown = hosts[..hosts.len().min(SHOWN)].join(",");
    // The rules after the last host shown are counted, with or without a host.
    let full = rules.iter().scan(0, |found, rule| {
        let before = *found;
        *found += usize::from(!text(rule, "/host").is_empty());
        Some(before)
    });
    match full.filter(|found| *found >= SHOWN).count() {
        0 => shown.into(),
        _ => format!("{shown} + {} more...", rules.len() - SHOWN).into(),
    }
}

pub(super) fn ingress_address(row: &Row<'_>) -> Value {
    balancers(row).join(",").into()
}

pub(super) fn ingress_ports(row: &Row<'_>) -> Value {
    match row.list("/spec/tls") {
        [] => "80".into(),
        _ => "80, 443".into(),
    }
}

pub(super) fn ingress_class_name(row: &Row<'_>) -> Value {
    let name = row.text("/metadata/name");
    let default =
        row.object["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"] == "true";
    if default && row.version >= Version::V1_36 {
        return format!("{name} (default)").into();
    }
    name.into()
}

pub(super) fn ingress_class_parameters(row: &Row<'_>) -> Value {
    let Some(parameters) = row
        .object
        .pointer("/spec/parameters")
        .filter(|value| value.is_object())
    else {
        return "<none>".into();
    };
    let kind = match parameters["apiGroup"].as_str() {
        Some(group) => format!("{}.{group}", text(parameters, "/kind")),
        None => text(parameters, "/kind").to_owned(),
    };
    format!("{kind}/{}", text(parameters, "/name")).into()
}

pub(super) fn ip_address_parent(row: &Row<'_>) -> Value {
    let Some(parent) = row
        .object
        .pointer("/spec/parentRef")
        .filter(|value| value.is_object())
    else {
        return "<none>".into();
    };
    let parts = ["/resource", "/group", "/namespace", "/name"].map(|pointer| text(parent, pointer));
    let [resource, group, namespace, name] = parts;
    let mut shown = resource.to_lowercase();
    if !group.is_empty() {
        shown = format!("{shown}.{}", group.to_lowercase());
    }
    if !namespace.is_empty() {
        shown = format!("{shown}/{namespace}");
    }
    format!("{shown}/{name}").into()
}

pub(super) fn cidrs(row: &Row<'_>) -> Value {
    texts(row.list("/spec/cidrs")).join(",").into()
}

/// Returns the addresses of load balancers, sorted, without duplicates.
fn balancers(row: &Row<'_>) -> Vec<String> {
    let ingress = row.list("/status/loadBalancer/ingress").iter();
    let addresses: BTreeSet<&str> = ingress
        .map(|balancer| match text(balancer, "/ip") {
            "" => text(balancer, "/hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().map(str::to_owned).collect()
}

fn texts(items: &[Value]) -> Vec<String> {
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

fn or_unset(texts: &[String]) -> Value {
    match first_of(texts, 3, ",") {
        shown if shown.is_empty() => "<unset>".into(),
        shown => shown.into(),
    }
}
