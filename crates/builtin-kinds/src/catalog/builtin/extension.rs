//! Extension of the apiserver: admission, custom resource definitions, API services.

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Generation, NameRule, Names::Literal};

use super::CORE;

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("mutatingadmissionpolicies"),
        singular: Borrowed("mutatingadmissionpolicy"),
        kind: Borrowed("MutatingAdmissionPolicy"),
        list_kind: Borrowed("MutatingAdmissionPolicyList"),
        categories: Literal(&["api-extensions"]),
        since: Version::V1_36,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("mutatingadmissionpolicybindings"),
        singular: Borrowed("mutatingadmissionpolicybinding"),
        kind: Borrowed("MutatingAdmissionPolicyBinding"),
        list_kind: Borrowed("MutatingAdmissionPolicyBindingList"),
        categories: Literal(&["api-extensions"]),
        since: Version::V1_36,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("mutatingwebhookconfigurations"),
        singular: Borrowed("mutatingwebhookconfiguration"),
        kind: Borrowed("MutatingWebhookConfiguration"),
        list_kind: Borrowed("MutatingWebhookConfigurationList"),
        categories: Literal(&["api-extensions"]),
        namespaced: false,
        generation: Generation::SpecAsSent,
        fields: &["webhooks"],
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("validatingadmissionpolicies"),
        singular: Borrowed("validatingadmissionpolicy"),
        kind: Borrowed("ValidatingAdmissionPolicy"),
        list_kind: Borrowed("ValidatingAdmissionPolicyList"),
        categories: Literal(&["api-extensions"]),
        namespaced: false,
        status: true,
        generation: Generation::Spec,
        zero: r#","spec":{},"status":{}"#,
        unconditional_update: false,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("validatingadmissionpolicybindings"),
        singular: Borrowed("validatingadmissionpolicybinding"),
        kind: Borrowed("ValidatingAdmissionPolicyBinding"),
        list_kind: Borrowed("ValidatingAdmissionPolicyBindingList"),
        categories: Literal(&["api-extensions"]),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("admissionregistration.k8s.io"),
        plural: Borrowed("validatingwebhookconfigurations"),
        singular: Borrowed("validatingwebhookconfiguration"),
        kind: Borrowed("ValidatingWebhookConfiguration"),
        list_kind: Borrowed("ValidatingWebhookConfigurationList"),
        categories: Literal(&["api-extensions"]),
        namespaced: false,
        generation: Generation::SpecAsSent,
        fields: &["webhooks"],
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("apiextensions.k8s.io"),
        plural: Borrowed("customresourcedefinitions"),
        singular: Borrowed("customresourcedefinition"),
        kind: Borrowed("CustomResourceDefinition"),
        list_kind: Borrowed("CustomResourceDefinitionList"),
        short_names: Literal(&["crd", "crds"]),
        categories: Literal(&["api-extensions"]),
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        status: true,
        generation: Generation::Spec,
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
        group: Borrowed("apiregistration.k8s.io"),
        plural: Borrowed("apiservices"),
        singular: Borrowed("apiservice"),
        kind: Borrowed("APIService"),
        list_kind: Borrowed("APIServiceList"),
        categories: Literal(&["api-extensions"]),
        namespaced: false,
        status: true,
        zero: r#","spec":{"groupPriorityMinimum":0,"versionPriority":0},"status":{}"#,
        unconditional_update: false,
        names: NameRule::PathSegment,
        first_status: Some("{}"),
        ..CORE
    },
];
