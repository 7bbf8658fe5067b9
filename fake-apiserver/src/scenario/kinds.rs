//! The kinds the fake serves, and the words for them in scenario files.
//!
//! It must not know what a scenario does with them.

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindInfo {
    /// The word for it in short forms; kubectl's singular name.
    pub word: &'static str,
    /// API group, empty for core.
    pub group: &'static str,
    /// `v1`.
    pub version: &'static str,
    /// `ConfigMap`.
    pub kind: &'static str,
    /// `configmaps`.
    pub plural: &'static str,
    /// Lives in a namespace.
    pub namespaced: bool,
}

impl KindInfo {
    /// `v1`, or `group/version`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `configmaps`, or `plural.group`: what a target is called.
    pub fn resource(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

const fn core(word: &'static str, kind: &'static str, plural: &'static str, namespaced: bool) -> KindInfo {
    KindInfo {
        word,
        group: "",
        version: "v1",
        kind,
        plural,
        namespaced,
    }
}

/// Every kind, in the order of the short forms of `raw::ShortObject`.
pub const KINDS: &[KindInfo] = &[
    core("configmap", "ConfigMap", "configmaps", true),
    core("secret", "Secret", "secrets", true),
    core("pod", "Pod", "pods", true),
    core("service", "Service", "services", true),
    core("serviceaccount", "ServiceAccount", "serviceaccounts", true),
    core("namespace", "Namespace", "namespaces", false),
    core("node", "Node", "nodes", false),
    KindInfo {
        word: "deployment",
        group: "apps",
        version: "v1",
        kind: "Deployment",
        plural: "deployments",
        namespaced: true,
    },
    KindInfo {
        word: "job",
        group: "batch",
        version: "v1",
        kind: "Job",
        plural: "jobs",
        namespaced: true,
    },
    KindInfo {
        word: "lease",
        group: "coordination.k8s.io",
        version: "v1",
        kind: "Lease",
        plural: "leases",
        namespaced: true,
    },
    KindInfo {
        word: "widget",
        group: "probe.example.com",
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        namespaced: true,
    },
];

/// The words of [`KINDS`].
pub(crate) const SHORT_WORDS: &[&str] = &[
    "configmap",
    "secret",
    "pod",
    "service",
    "serviceaccount",
    "namespace",
    "node",
    "deployment",
    "job",
    "lease",
    "widget",
];

/// The kind a target's resource means: `configmaps`, `widgets.probe.example.com`.
pub(crate) fn by_resource(resource: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|kind| kind.resource() == resource)
}

/// The kind of a manifest.
pub(crate) fn by_api_version(api_version: &str, kind: &str) -> Option<&'static KindInfo> {
    KINDS
        .iter()
        .find(|known| known.api_version() == api_version && known.kind == kind)
}

/// The kind a short form means.
pub(crate) fn by_word(word: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|kind| kind.word == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_kinds() {
        assert!(KINDS.iter().map(|kind| kind.word).eq(SHORT_WORDS.iter().copied()));
    }
}
