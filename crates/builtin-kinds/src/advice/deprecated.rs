//! Deprecated parts of pods and their templates: node labels in selectors, annotations, volumes.
//!
//! It must not know workloads.
//!
//! Source: kubernetes `pkg/api/pod/warnings.go` and `pkg/api/node/util.go`.

use apimachinery::Version;
use serde_json::Value;

use super::text;
use crate::fields::list;
use crate::validation::label_value;

/// Deprecated labels of nodes.
const NODE_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Annotations of pods without a function.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volume whose name in warnings is not that of its field.
const STORAGE_OS: &str = "storageos";

/// Volumes of plugins that are deprecated or gone.
const VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    (STORAGE_OS, "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Adds warnings about node labels in the node selector and the node affinity of a pod.
pub(super) fn node_selectors(warnings: &mut Vec<String>, spec: &Value, at: &str, version: Version) {
    for (label, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(why) = of_label(label) {
            warnings.push(format!("{at}.nodeSelector[{label}]: {why}"));
        }
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let at = format!("{at}.affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    for (nth, term) in list(&affinity[required], "nodeSelectorTerms").iter().enumerate() {
        node_selector_term(
            warnings,
            term,
            None,
            &format!("{at}.{required}.nodeSelectorTerms[{nth}]"),
        );
    }
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for (nth, term) in list(affinity, preferred).iter().enumerate() {
        node_selector_term(
            warnings,
            &term["preference"],
            Some(version),
            &format!("{at}.{preferred}[{nth}].preference"),
        );
    }
}

/// `version`: that of the server, if it checks values too.
fn node_selector_term(warnings: &mut Vec<String>, term: &Value, version: Option<Version>, at: &str) {
    for (nth, expression) in list(term, "matchExpressions").iter().enumerate() {
        let (key, at) = (text(&expression["key"]), format!("{at}.matchExpressions[{nth}]"));
        if let Some(why) = of_label(key) {
            warnings.push(format!("{at}.key: {key} is {why}"));
        }
        for (nth, value) in list(expression, "values").iter().enumerate() {
            let value = text(value);
            let problems = version
                .map(|version| label_value(value, version))
                .unwrap_or_default();
            let problems = problems.into_iter();
            warnings
                .extend(problems.map(|problem| format!("{at}.values[{nth}]: {value} is invalid, {problem}")));
        }
    }
}

/// Returns the warning about the topology key of a spread constraint at `at`.
pub(super) fn topology_key(constraint: &Value, at: &str) -> Option<String> {
    let key = text(&constraint["topologyKey"]);
    of_label(key).map(|why| format!("{at}.topologyKey: {key} is {why}"))
}

fn of_label(label: &str) -> Option<&'static str> {
    let known = NODE_LABELS.iter().find(|(known, _)| *known == label);
    known.map(|(_, why)| *why)
}

/// Adds warnings about the annotations of a pod's metadata at `at`.
pub(super) fn annotations(warnings: &mut Vec<String>, metadata: &Value, at: &str) {
    for (annotation, why) in ANNOTATIONS {
        if !metadata["annotations"][annotation].is_null() {
            warnings.push(format!("{at}.annotations[{annotation}]: {why}"));
        }
    }
}

/// Adds a warning about an annotation for seccomp beside a security context without a profile.
pub(super) fn seccomp(
    warnings: &mut Vec<String>,
    (metadata, at): (&Value, &str),
    context: &Value,
    annotation: &str,
) {
    if context["seccompProfile"].is_null() && !metadata["annotations"][annotation].is_null() {
        warnings.push(format!(
            "{at}.annotations[{annotation}]: non-functional in v1.27+; use the \"seccompProfile\" field instead"
        ));
    }
}

/// Adds warnings about the volumes of a pod.
pub(super) fn volumes(warnings: &mut Vec<String>, spec: &Value, at: &str) {
    for (nth, volume) in list(spec, "volumes").iter().enumerate() {
        let used = VOLUMES.iter().filter(|(source, _)| !volume[*source].is_null());
        warnings.extend(used.map(|(source, why)| {
            let source = if *source == STORAGE_OS {
                "storageOS"
            } else {
                source
            };
            format!("{at}.volumes[{nth}].{source}: {why}")
        }));
    }
}
