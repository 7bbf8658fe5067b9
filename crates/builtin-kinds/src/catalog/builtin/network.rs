//! Networking and discovery of endpoints.

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Generation, NameRule, Names::Literal};

use super::CORE;

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("networking.k8s.io"),
        plural: Borrowed("ingressclasses"),
        singular: Borrowed("ingressclass"),
        kind: Borrowed("IngressClass"),
        list_kind: Borrowed("IngressClassList"),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        ..CORE
    },
    ApiResource {
        group: Borrowed("networking.k8s.io"),
        plural: Borrowed("ingresses"),
        singular: Borrowed("ingress"),
        kind: Borrowed("Ingress"),
        list_kind: Borrowed("IngressList"),
        short_names: Literal(&["ing"]),
        status: true,
        generation: Generation::Spec,
        zero: r#","spec":{},"status":{"loadBalancer":{}}"#,
        first_status: Some(r#"{"loadBalancer":{}}"#),
        ..CORE
    },
    ApiResource {
        group: Borrowed("networking.k8s.io"),
        plural: Borrowed("ipaddresses"),
        singular: Borrowed("ipaddress"),
        kind: Borrowed("IPAddress"),
        list_kind: Borrowed("IPAddressList"),
        short_names: Literal(&["ip"]),
        stored_as: Some(("v1beta1", Some(Version::V1_34))),
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        names: NameRule::IpAddress,
        ..CORE
    },
    ApiResource {
        group: Borrowed("networking.k8s.io"),
        plural: Borrowed("networkpolicies"),
        singular: Borrowed("networkpolicy"),
        kind: Borrowed("NetworkPolicy"),
        list_kind: Borrowed("NetworkPolicyList"),
        short_names: Literal(&["netpol"]),
        generation: Generation::SpecAsSent,
        fields: &["spec"],
        zero: r#","spec":{"podSelector":{}}"#,
        ..CORE
    },
    ApiResource {
        group: Borrowed("networking.k8s.io"),
        plural: Borrowed("servicecidrs"),
        singular: Borrowed("servicecidr"),
        kind: Borrowed("ServiceCIDR"),
        list_kind: Borrowed("ServiceCIDRList"),
        stored_as: Some(("v1beta1", Some(Version::V1_34))),
        namespaced: false,
        status: true,
        zero: r#","spec":{},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("discovery.k8s.io"),
        plural: Borrowed("endpointslices"),
        singular: Borrowed("endpointslice"),
        kind: Borrowed("EndpointSlice"),
        list_kind: Borrowed("EndpointSliceList"),
        generation: Generation::Spec,
        fields: &["addressType", "endpoints", "ports"],
        zero: r#","addressType":"","endpoints":null,"ports":null"#,
        ..CORE
    },
];
