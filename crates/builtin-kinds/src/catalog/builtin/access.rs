//! RBAC, reviews of access and certificates.

use apimachinery::kind::{ApiResource, NameRule, Review, UnknownField};

use super::{CORE, field, part};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "rbac.authorization.k8s.io",
        plural: "clusterrolebindings",
        singular: "clusterrolebinding",
        kind: "ClusterRoleBinding",
        list_kind: "ClusterRoleBindingList",
        namespaced: false,
        fields: &["subjects", "roleRef"],
        zero: r#","roleRef":{"apiGroup":"","kind":"","name":""}"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: "rbac.authorization.k8s.io",
        plural: "clusterroles",
        singular: "clusterrole",
        kind: "ClusterRole",
        list_kind: "ClusterRoleList",
        namespaced: false,
        fields: &["rules", "aggregationRule"],
        zero: r#","rules":null"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: "rbac.authorization.k8s.io",
        plural: "rolebindings",
        singular: "rolebinding",
        kind: "RoleBinding",
        list_kind: "RoleBindingList",
        fields: &["subjects", "roleRef"],
        zero: r#","roleRef":{"apiGroup":"","kind":"","name":""}"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: "rbac.authorization.k8s.io",
        plural: "roles",
        singular: "role",
        kind: "Role",
        list_kind: "RoleList",
        fields: &["rules"],
        zero: r#","rules":null"#,
        update_creates: true,
        names: NameRule::PathSegment,
        ..CORE
    },
    ApiResource {
        group: "authentication.k8s.io",
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        kind: "SelfSubjectReview",
        list_kind: "SelfSubjectReviewList",
        verbs: &["create"],
        review: Some(Review::Asker),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: "authentication.k8s.io",
        plural: "tokenreviews",
        singular: "tokenreview",
        kind: "TokenReview",
        list_kind: "TokenReviewList",
        verbs: &["create"],
        review: Some(Review::Token),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: "authorization.k8s.io",
        plural: "localsubjectaccessreviews",
        singular: "localsubjectaccessreview",
        kind: "LocalSubjectAccessReview",
        list_kind: "LocalSubjectAccessReviewList",
        verbs: &["create"],
        review: Some(Review::LocalAccess),
        ..CORE
    },
    ApiResource {
        group: "authorization.k8s.io",
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
        list_kind: "SelfSubjectAccessReviewList",
        verbs: &["create"],
        review: Some(Review::OwnAccess),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: "authorization.k8s.io",
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        kind: "SelfSubjectRulesReview",
        list_kind: "SelfSubjectRulesReviewList",
        verbs: &["create"],
        review: Some(Review::OwnRules),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: "authorization.k8s.io",
        plural: "subjectaccessreviews",
        singular: "subjectaccessreview",
        kind: "SubjectAccessReview",
        list_kind: "SubjectAccessReviewList",
        verbs: &["create"],
        review: Some(Review::Access),
        namespaced: false,
        ..CORE
    },
    ApiResource {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        singular: "certificatesigningrequest",
        kind: "CertificateSigningRequest",
        list_kind: "CertificateSigningRequestList",
        short_names: &["csr"],
        namespaced: false,
        status: true,
        parts: &[part(
            "approval",
            "CertificateSigningRequest",
            None,
            &["get", "patch", "update"],
        )],
        zero: r#","spec":{"request":null,"signerName":""},"status":{}"#,
        selectable: &[field("spec.signerName", "/spec/signerName")],
        unknown_field: UnknownField::NotSupported,
        names: NameRule::PathSegment,
        first_status: Some("{}"),
        ..CORE
    },
];
