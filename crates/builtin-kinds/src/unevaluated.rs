//! Kinds that are stored but not evaluated: kube-apiserver acts on these objects, the fake only stores them. Creating one
//! returns a warning, and `docs/fidelity.md` lists them.
//!
//! It must not know requests or the store.

use std::collections::BTreeSet;

use apimachinery::kind::ApiResource;
use serde_json::Value;

use crate::expression::Expression;
pub use crate::expression::missing as missing_of_expressions;

/// Prefix of these warnings, by which they can be told from those of kube-apiserver.
pub const PREFIX: &str = "fake-apiserver: ";

/// Kinds that are not evaluated: group, kind, and the missing effect.
pub const KINDS: [(&str, &str, &str); 2] = [
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

/// Returns the warnings for an object of this kind; none if the fake evaluates it as kube-apiserver does.
pub fn warnings(kind: &ApiResource, object: &Value) -> Vec<String> {
    let is_of = |(group, name, _): &&(&str, &str, &str)| *group == kind.group && *name == kind.kind;
    let known = KINDS.iter().find(is_of);
    let known =
        known.map(|(_, name, effect)| format!("{PREFIX}{name} is stored and never evaluated: {effect}"));
    let is_policy = kind.group == "admissionregistration.k8s.io"
        && matches!(
            &*kind.kind,
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy"
        );
    let missing = match kind.defines || is_policy {
        true => missing(&object["spec"]),
        false => BTreeSet::new(),
    };
    let missing = missing
        .into_iter()
        .map(|what| format!("{PREFIX}expressions with {what} are not evaluated and hold for everything"));
    known.into_iter().chain(missing).collect()
}

/// Returns the CEL features used by the expressions of an object that are not implemented.
fn missing(spec: &Value) -> BTreeSet<&'static str> {
    let (mut missing, mut rest) = (BTreeSet::new(), vec![spec]);
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                for (field, value) in fields {
                    if matches!(field.as_str(), "rule" | "expression" | "messageExpression")
                        && let Some(Ok(expression)) = value.as_str().map(Expression::parse)
                    {
                        missing.extend(expression.unsupported());
                    }
                    rest.push(value);
                }
            }
            Value::Array(items) => rest.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    missing
}
