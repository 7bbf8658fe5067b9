//! Extension of the apiserver: admission, custom resource definitions, API services.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, NameRule};

use super::CORE;

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicies",
        singular: "mutatingadmissionpolicy",
        kind: "MutatingAdmissionPolicy",
        list_kind: "MutatingAdmissionPolicyList",
        categories: &["api-extensions"],
        since: Version::V1_36,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "mutatingadmissionpolicybindings",
        singular: "mutatingadmissionpolicybinding",
        kind: "MutatingAdmissionPolicyBinding",
        list_kind: "MutatingAdmissionPolicyBindingList",
        categories: &["api-extensions"],
        since: Version::V1_36,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "mutatingwebhookconfigurations",
        singular: "mutatingwebhookconfiguration",
        kind: "MutatingWebhookConfiguration",
        list_kind: "MutatingWebhookConfigurationList",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        fields: &["webhooks"],
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicies",
        singular: "validatingadmissionpolicy",
        kind: "ValidatingAdmissionPolicy",
        list_kind: "ValidatingAdmissionPolicyList",
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        generation: true,
        zero: r#","spec":{},"status":{}"#,
        unconditional_update: false,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "validatingadmissionpolicybindings",
        singular: "validatingadmissionpolicybinding",
        kind: "ValidatingAdmissionPolicyBinding",
        list_kind: "ValidatingAdmissionPolicyBindingList",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "admissionregistration.k8s.io",
        plural: "validatingwebhookconfigurations",
        singular: "validatingwebhookconfiguration",
        kind: "ValidatingWebhookConfiguration",
        list_kind: "ValidatingWebhookConfigurationList",
        categories: &["api-extensions"],
        namespaced: false,
        generation: true,
        fields: &["webhooks"],
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        singular: "customresourcedefinition",
        kind: "CustomResourceDefinition",
        list_kind: "CustomResourceDefinitionList",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        status: true,
        generation: true,
        zero: concat!(
            r#","spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"#,
            r#""status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"#,
            r#""storedVersions":null}"#,
        ),
        deletion_shows_object: true,
        unconditional_update: false,
        defines: true,
        ..CORE
    },
    ApiResource {
        group: "apiregistration.k8s.io",
        plural: "apiservices",
        singular: "apiservice",
        kind: "APIService",
        list_kind: "APIServiceList",
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        zero: r#","spec":{"groupPriorityMinimum":0,"versionPriority":0},"status":{}"#,
        unconditional_update: false,
        names: NameRule::PathSegment,
        first_status: Some("{}"),
        ..CORE
    },
];
