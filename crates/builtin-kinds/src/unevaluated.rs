//! What is stored and never evaluated: a real server acts on these objects, the fake only keeps them. Who creates one gets
//! a warning, and `docs/fidelity.md` lists them.
//!
//! It must not know of requests or of the store.

use apimachinery::kind::Kind;
use serde_json::Value;

/// How every such warning begins. No warning of a real server does, so that it can be told apart.
pub const PREFIX: &str = "fake-apiserver: ";

/// What is stored and never evaluated: group, kind, and what does not happen.
pub const KINDS: [(&str, &str, &str); 9] = [
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
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "rules in CEL (x-kubernetes-validations) reject no object",
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

/// The warning for an object of this kind; `None`: a real server evaluates nothing of it that the fake does not. Of
/// definitions only those with rules in CEL have one.
pub fn warning(kind: &Kind, object: &Value) -> Option<String> {
    let is_of = |(group, name, _): &&(&str, &str, &str)| (*group, *name) == (kind.group, kind.kind);
    let (_, name, effect) = KINDS.iter().find(is_of)?;
    let concerns = !kind.defines || has_rules(object);
    concerns.then(|| format!("{PREFIX}{name} is stored and never evaluated: {effect}"))
}

/// Does any schema of a definition have rules in CEL?
fn has_rules(definition: &Value) -> bool {
    let mut rest = vec![&definition["spec"]["versions"]];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                let rules = fields.get("x-kubernetes-validations").and_then(Value::as_array);
                if rules.is_some_and(|rules| !rules.is_empty()) {
                    return true;
                }
                rest.extend(fields.values());
            }
            Value::Array(items) => rest.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}
