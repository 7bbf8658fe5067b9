//! Usage of an object for ResourceQuotas, and the scopes it is in.
//!
//! It must not know quotas or the store. Resources reported by a kubelet, and devices, are not implemented.
//!
//! Source: kubernetes `pkg/quota/v1/evaluator/core`, apiserver `pkg/quota/v1/generic`.

use std::collections::BTreeMap;

use apimachinery::kind::ApiResource;
use apimachinery::write::Subresource;
use builtin_kinds::fields::list;
use builtin_kinds::types;
use serde_json::Value;

use super::is_terminating;
use super::limits::{Amounts, add, amounts, together};

/// Usage by kind.
pub(super) enum Usage {
    Pods,
    Services,
    Claims,
    /// Object counts, under these names.
    Objects(Vec<String>),
    /// None.
    Nothing,
}

/// Kinds that were counted under their own names before `count/` existed.
const COUNTED_BY_NAME: [&str; 4] = [
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];

/// Resources that a pod must specify if a quota counts them.
const REQUIRED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

const CLASS: &str = ".storageclass.storage.k8s.io/";

impl Usage {
    pub(super) fn of(kind: &ApiResource) -> Self {
        match (&*kind.group, &*kind.plural) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("", "events") => Self::Nothing,
            (group, plural) => {
                let by_name = group.is_empty() && COUNTED_BY_NAME.contains(&plural);
                let mut names = vec![format!("count/{}", kind.qualified())];
                names.extend(by_name.then(|| plural.to_owned()));
                Self::Objects(names)
            }
        }
    }

    /// Returns whether the write can change the usage.
    pub(super) fn handles(&self, object: &Value, old: Option<&Value>, part: Option<Subresource>) -> bool {
        match (self, part) {
            (Self::Pods, None) => old.is_none_or(|old| has_deadline(old) != has_deadline(object)),
            (Self::Pods, Some(Subresource::Resize)) | (Self::Services | Self::Claims, None) => true,
            (Self::Objects(_), None) => old.is_none(),
            (_, _) => false,
        }
    }

    /// Returns whether objects of the kind use this resource.
    pub(super) fn counts(&self, resource: &str) -> bool {
        match self {
            Self::Pods => {
                let bare = resource.strip_prefix("requests.");
                let computed = bare.or(resource.strip_prefix("limits.")).unwrap_or(resource);
                matches!(resource, "pods" | "count/pods")
                    || matches!(computed, "cpu" | "memory" | "ephemeral-storage")
                    || bare.unwrap_or(resource).starts_with("hugepages-")
                    || bare.is_some_and(is_extended)
            }
            Self::Services => matches!(
                resource,
                "services" | "count/services" | "services.nodeports" | "services.loadbalancers"
            ),
            Self::Claims => {
                let own = resource.split_once(CLASS).map_or(resource, |(_, own)| own);
                matches!(own, "persistentvolumeclaims" | "requests.storage")
                    || resource == "count/persistentvolumeclaims"
            }
            Self::Objects(names) => names.iter().any(|name| name == resource),
            Self::Nothing => false,
        }
    }

    /// Returns the usage of an object.
    pub(super) fn uses(&self, object: &Value) -> Amounts {
        let one = |name: &str| (name.to_owned(), "1".to_owned());
        match self {
            Self::Pods => pod(object),
            Self::Services => service(&object["spec"]),
            Self::Claims => claim(object),
            Self::Objects(names) => names.iter().map(|name| one(name)).collect(),
            Self::Nothing => Amounts::new(),
        }
    }

    /// Returns the counted resources that a pod must specify and does not.
    pub(super) fn left_out<'a>(
        &self,
        counted: impl IntoIterator<Item = &'a String>,
        object: &Value,
    ) -> Option<String> {
        let spec = &object["spec"];
        if !matches!(self, Self::Pods) || has_own_resources(spec) {
            return None;
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for resource in counted
            .into_iter()
            .filter(|name| REQUIRED.contains(&name.as_str()))
        {
            for container in containers(spec) {
                let resources = &container["resources"];
                let of = |field: &str| amounts(&resources[field]);
                if !computed(&of("requests"), &of("limits")).contains_key(resource) {
                    let name = container["name"].as_str().unwrap_or_default();
                    missing.entry(resource).or_default().push(name);
                }
            }
        }
        let missing = missing.into_iter().map(|(resource, mut names)| {
            names.sort_unstable();
            format!("{resource} for: {}", names.join(","))
        });
        let missing: Vec<String> = missing.collect();
        (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
    }

    /// Returns whether an object is in this scope. Only pods, and claims with a volume attributes class, can be.
    pub(super) fn is_in(&self, scope: &Scope, object: &Value) -> bool {
        let spec = &object["spec"];
        match (self, scope.name.as_str()) {
            (Self::Pods, "Terminating") => has_deadline(object),
            (Self::Pods, "NotTerminating") => !has_deadline(object),
            (Self::Pods, "BestEffort") => object["status"]["qosClass"] == "BestEffort",
            (Self::Pods, "NotBestEffort") => object["status"]["qosClass"] != "BestEffort",
            (Self::Pods, "PriorityClass") => scope.selects(&spec["priorityClassName"]),
            (Self::Pods, "CrossNamespacePodAffinity") => looks_elsewhere(&spec["affinity"]),
            (Self::Claims, "VolumeAttributesClass") => scope.selects(&spec["volumeAttributesClassName"]),
            (_, _) => false,
        }
    }
}

/// Scope of a quota.
pub(super) struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

impl Scope {
    /// Returns the scopes of a quota, by its spec; an object must be in all of them.
    pub(super) fn all(spec: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let plain = listed(&spec["scopes"]).into_iter().map(|scope| Self {
            name: text(&scope),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let selected = listed(&spec["scopeSelector"]["matchExpressions"]);
        let selected = selected.into_iter().map(|term| Self {
            name: text(&term["scopeName"]),
            operator: text(&term["operator"]),
            values: listed(&term["values"]).iter().map(text).collect(),
        });
        plain.chain(selected).collect()
    }

    fn selects(&self, class: &Value) -> bool {
        let class = class.as_str().filter(|class| !class.is_empty());
        let listed = class.is_some_and(|class| self.values.iter().any(|value| value == class));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "DoesNotExist" => class.is_none(),
            _ => class.is_some(),
        }
    }
}

fn pod(object: &Value) -> Amounts {
    let mut uses = Amounts::from([("count/pods".to_owned(), "1".to_owned())]);
    let over = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if over || is_terminating(object) && object["metadata"]["deletionGracePeriodSeconds"] == 0 {
        return uses;
    }
    let spec = &object["spec"];
    let overhead = amounts(&spec["overhead"]);
    let (mut requests, mut limits) = (together(spec, "requests"), together(spec, "limits"));
    add(&mut requests, &overhead);
    for (resource, limit) in &mut limits {
        if let Some(more) = overhead.get(resource) {
            *limit = types::sum([limit.as_str(), more]);
        }
    }
    uses.insert("pods".to_owned(), "1".to_owned());
    uses.extend(computed(&requests, &limits));
    uses
}

/// Returns requests and limits under their names in quotas.
fn computed(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut uses = Amounts::new();
    for (resource, amount) in requests {
        let native = matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || resource.starts_with("hugepages-");
        if native {
            uses.insert(resource.clone(), amount.clone());
        }
        if native || is_extended(resource) {
            uses.insert(format!("requests.{resource}"), amount.clone());
        }
    }
    for (resource, amount) in limits {
        if matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            uses.insert(format!("limits.{resource}"), amount.clone());
        }
    }
    uses
}

fn service(spec: &Value) -> Amounts {
    let ports = list(spec, "ports");
    let given = || {
        ports
            .iter()
            .filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0)
            .count()
    };
    let balanced = spec["type"] == "LoadBalancer";
    let node_ports = match spec["type"].as_str() {
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => given(),
        Some("NodePort" | "LoadBalancer") => ports.len(),
        Some(_) | None => 0,
    };
    let uses = [
        ("services", 1),
        ("count/services", 1),
        ("services.nodeports", node_ports),
        ("services.loadbalancers", usize::from(balanced)),
    ];
    uses.map(|(name, count)| (name.to_owned(), count.to_string()))
        .into()
}

fn claim(object: &Value) -> Amounts {
    const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
    let noted = object["metadata"]["annotations"][ANNOTATION].as_str();
    let class = noted.or(object["spec"]["storageClassName"].as_str());
    let mut uses = Amounts::from([("count/persistentvolumeclaims".to_owned(), "1".to_owned())]);
    let mut own = vec![("persistentvolumeclaims", "1".to_owned())];
    if let Some(storage) = object["spec"]["resources"]["requests"]["storage"].as_str() {
        own.push(("requests.storage", storage.to_owned()));
    }
    for (name, amount) in own {
        if let Some(class) = class.filter(|class| !class.is_empty()) {
            uses.insert(format!("{class}{CLASS}{name}"), amount.clone());
        }
        uses.insert(name.to_owned(), amount);
    }
    uses
}

fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds >= 0)
}

/// Returns whether the pod has pod-level resources.
fn has_own_resources(spec: &Value) -> bool {
    let fields = ["requests", "limits"];
    let mut names = fields
        .iter()
        .flat_map(|field| amounts(&spec["resources"][field]).into_keys());
    names.any(|name| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-"))
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = [&spec["containers"], &spec["initContainers"]];
    lists.into_iter().filter_map(Value::as_array).flatten()
}

/// Returns whether this is an extended resource, like `example.com/gpu`.
fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.")
}

/// Returns whether a pod has affinity terms across namespaces.
fn looks_elsewhere(affinity: &Value) -> bool {
    let elsewhere = |term: &Value| {
        term["namespaces"]
            .as_array()
            .is_some_and(|names| !names.is_empty())
            || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|field| {
        let of = |list: &str| affinity[field][list].as_array().cloned().unwrap_or_default();
        of("requiredDuringSchedulingIgnoredDuringExecution")
            .iter()
            .any(elsewhere)
            || of("preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| elsewhere(&weighted["podAffinityTerm"]))
    })
}
