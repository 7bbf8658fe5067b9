//! Kinds that are stored but not evaluated: kube-apiserver acts on these objects, the fake only stores them. Creating one
//! returns a warning, and `docs/fidelity.md` lists them.
//!
//! It must not know requests or the store.

use apimachinery::kind::ApiResource;

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
pub fn warnings(kind: &ApiResource) -> Vec<String> {
    let is_of = |(group, name, _): &&(&str, &str, &str)| *group == kind.group && *name == kind.kind;
    let known = KINDS.iter().find(is_of);
    let known =
        known.map(|(_, name, effect)| format!("{PREFIX}{name} is stored and never evaluated: {effect}"));
    known.into_iter().collect()
}
