//! What is stored and never evaluated: a real server acts on these objects, the fake only keeps them. Who creates one gets
//! a warning, and `docs/fidelity.md` lists them.
//!
//! It must not know of requests or of the store.

use apimachinery::kind::Kind;

/// How every such warning begins. No warning of a real server does, so that it can be told apart.
pub const PREFIX: &str = "fake-apiserver: ";

/// What is stored and never evaluated: group, kind, and what does not happen.
pub const KINDS: [(&str, &str, &str); 8] = [
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
        "the policy changes no object",
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
        "the policy changes no object",
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "the webhooks are not called",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        "the policy rejects no object",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        "the policy rejects no object",
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "the webhooks are not called",
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "FlowSchema",
        "requests are not classified",
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        "requests are neither queued nor limited",
    ),
];

/// The warning for an object of this kind; `None`: a real server evaluates nothing of it that the fake does not.
pub fn warning(kind: &Kind) -> Option<String> {
    let is_of = |(group, name, _): &&(&str, &str, &str)| (*group, *name) == (kind.group, kind.kind);
    let (_, name, effect) = KINDS.iter().find(is_of)?;
    Some(format!("{PREFIX}{name} is stored and never evaluated: {effect}"))
}
