//! RBAC, reviews of access and certificates.

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{ApiResource, NameRule, Names::Literal, Review, SelectableFields, UnknownField};

use super::{CORE, field, part};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("rbac.authorization.k8s.io"),
        plural: Borrowed("clusterrolebindings"),
        singular: Borrowed("clusterrolebinding"),
        kind: Borrowed("ClusterRoleBinding"),
        list_kind: Borrowed("ClusterRoleBindingList"),
        namespaced: false,
        fields: &["subjects", "roleRef"],
        zero: r#","roleRef":{"apiGroup":"","kind":"","name":""}"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: Borrowed("rbac.authorization.k8s.io"),
        plural: Borrowed("clusterroles"),
        singular: Borrowed("clusterrole"),
        kind: Borrowed("ClusterRole"),
        list_kind: Borrowed("ClusterRoleList"),
        namespaced: false,
        fields: &["rules", "aggregationRule"],
        zero: r#","rules":null"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: Borrowed("rbac.authorization.k8s.io"),
        plural: Borrowed("rolebindings"),
        singular: Borrowed("rolebinding"),
        kind: Borrowed("RoleBinding"),
        list_kind: Borrowed("RoleBindingList"),
        fields: &["subjects", "roleRef"],
        zero: r#","roleRef":{"apiGroup":"","kind":"","name":""}"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: Borrowed("rbac.authorization.k8s.io"),
        plural: Borrowed("roles"),
        singular: Borrowed("role"),
        kind: Borrowed("Role"),
        list_kind: Borrowed("RoleList"),
        fields: &["rules"],
        zero: r#","rules":null"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: Borrowed("authentication.k8s.io"),
        plural: Borrowed("selfsubjectreviews"),
        singular: Borrowed("selfsubjectreview"),
        kind: Borrowed("SelfSubjectReview"),
        list_kind: Borrowed("SelfSubjectReviewList"),
        verbs: &["create"],
        review: Some(Review::Requester),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("authentication.k8s.io"),
        plural: Borrowed("tokenreviews"),
        singular: Borrowed("tokenreview"),
        kind: Borrowed("TokenReview"),
        list_kind: Borrowed("TokenReviewList"),
        verbs: &["create"],
        review: Some(Review::Token),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("authorization.k8s.io"),
        plural: Borrowed("localsubjectaccessreviews"),
        singular: Borrowed("localsubjectaccessreview"),
        kind: Borrowed("LocalSubjectAccessReview"),
        list_kind: Borrowed("LocalSubjectAccessReviewList"),
        verbs: &["create"],
        review: Some(Review::LocalAccess),
        ..CORE
    },
    ApiResource {
        group: Borrowed("authorization.k8s.io"),
        plural: Borrowed("selfsubjectaccessreviews"),
        singular: Borrowed("selfsubjectaccessreview"),
        kind: Borrowed("SelfSubjectAccessReview"),
        list_kind: Borrowed("SelfSubjectAccessReviewList"),
        verbs: &["create"],
        review: Some(Review::OwnAccess),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("authorization.k8s.io"),
        plural: Borrowed("selfsubjectrulesreviews"),
        singular: Borrowed("selfsubjectrulesreview"),
        kind: Borrowed("SelfSubjectRulesReview"),
        list_kind: Borrowed("SelfSubjectRulesReviewList"),
        verbs: &["create"],
        review: Some(Review::OwnRules),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("authorization.k8s.io"),
        plural: Borrowed("subjectaccessreviews"),
        singular: Borrowed("subjectaccessreview"),
        kind: Borrowed("SubjectAccessReview"),
        list_kind: Borrowed("SubjectAccessReviewList"),
        verbs: &["create"],
        review: Some(Review::Access),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("certificates.k8s.io"),
        plural: Borrowed("certificatesigningrequests"),
        singular: Borrowed("certificatesigningrequest"),
        kind: Borrowed("CertificateSigningRequest"),
        list_kind: Borrowed("CertificateSigningRequestList"),
        short_names: Literal(&["csr"]),
        namespaced: false,
        status: true,
        parts: &[part(
            "approval",
            "CertificateSigningRequest",
            None,
            &["get", "patch", "update"],
        )],
        zero: r#","spec":{"request":null,"signerName":""},"status":{}"#,
        selectable: SelectableFields::Literal(&[field("spec.signerName", "/spec/signerName")]),
        unknown_field: UnknownField::OnlyName,
        names: NameRule::PathSegment,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("certificates.k8s.io"),
        plural: Borrowed("clustertrustbundles"),
        singular: Borrowed("clustertrustbundle"),
        kind: Borrowed("ClusterTrustBundle"),
        list_kind: Borrowed("ClusterTrustBundleList"),
        since: Version::V1_37,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{"trustBundle":""}"#,
        selectable: SelectableFields::Literal(&[field("spec.signerName", "/spec/signerName")]),
        unknown_field: UnknownField::OnlyName,
        names: NameRule::OfSigner,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("certificates.k8s.io"),
        plural: Borrowed("podcertificaterequests"),
        singular: Borrowed("podcertificaterequest"),
        kind: Borrowed("PodCertificateRequest"),
        list_kind: Borrowed("PodCertificateRequestList"),
        since: Version::V1_37,
        stored_as: Some(("v1beta1", None)),
        status: true,
        zero: concat!(
            r#","spec":{"signerName":"","podName":"","podUID":"","serviceAccountName":"","serviceAccountUID":"","#,
            r#""nodeName":"","nodeUID":"","stubPKCS10Request":null},"status":{}"#
        ),
        selectable: SelectableFields::Literal(&[
            field("spec.nodeName", "/spec/nodeName"),
            field("spec.podName", "/spec/podName"),
            field("spec.signerName", "/spec/signerName"),
        ]),
        unknown_field: UnknownField::OnlyName,
        unconditional_update: false,
        first_status: Some("{}"),
        ..CORE
    },
];
