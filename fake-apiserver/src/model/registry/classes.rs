//! Defaults from classes for new objects: priority and overhead of a pod, and the default class of a claim or an ingress.
//!
//! Source: kubernetes
//! `plugin/pkg/admission/{priority,runtimeclass,storage/storageclass/setdefault,network/defaultingressclass}`.

use apimachinery::object::Stored;
use apimachinery::status::Status;
use scenario::AdmissionPlugin;
use serde_json::{Value, json};

use super::Writer;
use crate::model::Objects;

/// Priority classes that exist without being stored.
const SYSTEM_PRIORITIES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// Priority of a pod.
struct Priority {
    /// Name of the class; empty: no class.
    class: String,
    value: i64,
    preemption: String,
}

impl Writer<'_> {
    /// Sets the priority of a pod by its class, or by the global default.
    ///
    /// # Errors
    ///
    /// 403 for a class that does not exist, and for a pod with another priority.
    pub(super) fn prioritize(&self, pod: &mut Value, name: &str) -> Result<(), Status> {
        let forbidden = |why: &str| Status::forbidden(&self.kind, name, why, Vec::new());
        let spec = &mut pod["spec"];
        let class = spec["priorityClassName"].as_str().unwrap_or_default();
        let Some(priority) = self.priority(class) else {
            return Err(forbidden(&format!(
                "no PriorityClass with name {class} was found"
            )));
        };
        let Priority {
            class,
            value,
            preemption,
        } = priority;
        let computed = |what: &str, said: &str, computed: &str| {
            forbidden(&format!(
                "the {what} ({said}) must not be provided in pod spec; priority admission controller computed {computed} \
                 from the given PriorityClass name"
            ))
        };
        if let Some(said) = spec["priority"].as_i64().filter(|said| *said != value) {
            return Err(computed(
                "integer value of priority",
                &said.to_string(),
                &value.to_string(),
            ));
        }
        if let Some(said) = spec["preemptionPolicy"]
            .as_str()
            .filter(|said| *said != preemption)
        {
            return Err(computed("string value of PreemptionPolicy", said, &preemption));
        }
        if !class.is_empty() {
            spec["priorityClassName"] = class.into();
        }
        spec["priority"] = value.into();
        spec["preemptionPolicy"] = preemption.into();
        Ok(())
    }

    fn priority(&self, class: &str) -> Option<Priority> {
        let of = |class: &str, value, preemption: Option<&str>| Priority {
            class: class.to_owned(),
            value,
            preemption: preemption.unwrap_or("PreemptLowerPriority").to_owned(),
        };
        let read = |stored: &Stored| {
            let found = stored.json();
            let value = found["value"].as_i64().unwrap_or(0);
            of(stored.name(), value, found["preemptionPolicy"].as_str())
        };
        let classes = self.classes("scheduling.k8s.io", "priorityclasses");
        if !class.is_empty() {
            let system = SYSTEM_PRIORITIES.iter().find(|(known, _)| *known == class);
            let system = system.map(|(name, value)| of(name, *value, None));
            return system.or_else(|| classes?.get(class).map(|stored| read(stored)));
        }
        let stored = classes.into_iter().flat_map(Objects::values);
        let of_all = stored
            .filter(|stored| stored.json()["globalDefault"] == true)
            .map(|stored| read(stored));
        Some(
            of_all
                .min_by_key(|priority| priority.value)
                .unwrap_or_else(|| of("", 0, None)),
        )
    }

    /// Sets overhead and scheduling of a pod by its RuntimeClass.
    ///
    /// # Errors
    ///
    /// 403 for a class that does not exist, and for a pod that contradicts it.
    pub(super) fn fit_to_runtime(&self, pod: &mut Value, name: &str) -> Result<(), Status> {
        let forbidden = |why: &str| Err(Status::forbidden(&self.kind, name, why, Vec::new()));
        let spec = &mut pod["spec"];
        let overhead = spec["overhead"]
            .as_object()
            .is_some_and(|overhead| !overhead.is_empty());
        let class = spec["runtimeClassName"].as_str().map(|name| {
            let classes = self.classes("node.k8s.io", "runtimeclasses");
            (
                name,
                classes
                    .and_then(|classes| classes.get(name))
                    .map(|class| class.json()),
            )
        });
        let class = match class {
            None => Value::Null,
            Some((_, Some(class))) => class,
            Some((name, None)) => {
                return forbidden(&format!("pod rejected: RuntimeClass \"{name}\" not found"));
            }
        };
        let fixed = &class["overhead"]["podFixed"];
        match (fixed.is_null(), overhead) {
            (true, true) => {
                return forbidden(
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
                );
            }
            (false, true) if *fixed != spec["overhead"] => {
                return forbidden(
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
                );
            }
            (false, _) => spec["overhead"] = fixed.clone(),
            (true, false) => {}
        }
        for (label, value) in class["scheduling"]["nodeSelector"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let there = &mut spec["nodeSelector"][label];
            if !there.is_null() && there != value {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                return forbidden(&format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{label}] = {}; pod.spec.nodeSelector[{label}] = {}",
                    text(value),
                    text(there)
                ));
            }
            *there = value.clone();
        }
        for toleration in class["scheduling"]["tolerations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            if let Some(all) = spec["tolerations"].as_array_mut()
                && !all.contains(toleration)
            {
                all.push(toleration.clone());
            }
        }
        Ok(())
    }

    /// Sets the default class of a claim, and copies its data source to both fields.
    pub(super) fn complete_claim(&self, claim: &mut Value) {
        let named = claim["metadata"]["annotations"]
            .get("volume.beta.kubernetes.io/storage-class")
            .is_some();
        let defaults = self.has(AdmissionPlugin::DefaultStorageClass);
        if claim["spec"]["storageClassName"].is_null() && !named && defaults {
            let marks = [
                "storageclass.kubernetes.io/is-default-class",
                "storageclass.beta.kubernetes.io/is-default-class",
            ];
            if let Some(class) = self.default_class("storage.k8s.io", "storageclasses", &marks) {
                claim["spec"]["storageClassName"] = class.into();
            }
        }
        let source = &claim["spec"]["dataSource"];
        let group = &source["apiGroup"];
        let kinds = [
            (json!(null), "PersistentVolumeClaim"),
            (json!("snapshot.storage.k8s.io"), "VolumeSnapshot"),
        ];
        let known = kinds
            .iter()
            .any(|(of, kind)| of == group && source["kind"] == *kind);
        let reference = &claim["spec"]["dataSourceRef"];
        match (source.is_null(), reference.is_null()) {
            // Other data sources never had an effect.
            (false, true) if !known => super::remove(&mut claim["spec"], "dataSource"),
            (false, true) => claim["spec"]["dataSourceRef"] = source.clone(),
            (true, false) if reference["namespace"].is_null() => {
                claim["spec"]["dataSource"] = reference.clone()
            }
            (_, _) => {}
        }
    }

    /// Sets the default class of an ingress.
    pub(super) fn complete_ingress(&self, ingress: &mut Value) {
        let named = ingress["metadata"]["annotations"]
            .get("kubernetes.io/ingress.class")
            .is_some();
        let defaults = self.has(AdmissionPlugin::DefaultIngressClass);
        if ingress["spec"]["ingressClassName"].is_null() && !named && defaults {
            let marks = ["ingressclass.kubernetes.io/is-default-class"];
            if let Some(class) = self.default_class("networking.k8s.io", "ingressclasses", &marks) {
                ingress["spec"]["ingressClassName"] = class.into();
            }
        }
    }

    /// Returns the newest class with one of these annotations; of several, the first by name.
    fn default_class(&self, group: &str, plural: &str, marks: &[&str]) -> Option<String> {
        let classes = self.classes(group, plural)?.values().map(|stored| stored.json());
        let marked = classes.filter(|class| {
            marks
                .iter()
                .any(|mark| class["metadata"]["annotations"][mark] == "true")
        });
        let text =
            |class: &Value, field: &str| class["metadata"][field].as_str().unwrap_or_default().to_owned();
        let newest = marked.min_by_key(|class| {
            (
                std::cmp::Reverse(text(class, "creationTimestamp")),
                text(class, "name"),
            )
        });
        newest.map(|class| text(&class, "name"))
    }

    fn classes(&self, group: &str, plural: &str) -> Option<&Objects> {
        let kind = self.model.catalog.find(group, plural)?;
        Some(self.model.objects(kind))
    }
}
