//! Networking and discovery of endpoints.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, NameRule};

use super::CORE;

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "networking.k8s.io",
        plural: "ingressclasses",
        singular: "ingressclass",
        kind: "IngressClass",
        list_kind: "IngressClassList",
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        ..CORE
    },
    ApiResource {
        group: "networking.k8s.io",
        plural: "ingresses",
        singular: "ingress",
        kind: "Ingress",
        list_kind: "IngressList",
        short_names: &["ing"],
        status: true,
        generation: true,
        zero: r#","spec":{},"status":{"loadBalancer":{}}"#,
        first_status: Some(r#"{"loadBalancer":{}}"#),
        ..CORE
    },
    ApiResource {
        group: "networking.k8s.io",
        plural: "ipaddresses",
        singular: "ipaddress",
        kind: "IPAddress",
        list_kind: "IPAddressList",
        short_names: &["ip"],
        stored_as: Some(("v1beta1", Some(Version::V1_34))),
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        names: NameRule::IpAddress,
        ..CORE
    },
    ApiResource {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        singular: "networkpolicy",
        kind: "NetworkPolicy",
        list_kind: "NetworkPolicyList",
        short_names: &["netpol"],
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{"podSelector":{}}"#,
        ..CORE
    },
    ApiResource {
        group: "networking.k8s.io",
        plural: "servicecidrs",
        singular: "servicecidr",
        kind: "ServiceCIDR",
        list_kind: "ServiceCIDRList",
        stored_as: Some(("v1beta1", Some(Version::V1_34))),
        namespaced: false,
        status: true,
        zero: r#","spec":{},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        singular: "endpointslice",
        kind: "EndpointSlice",
        list_kind: "EndpointSliceList",
        generation: true,
        fields: &["addressType", "endpoints", "ports"],
        zero: r#","addressType":"","endpoints":null,"ports":null"#,
        ..CORE
    },
];
