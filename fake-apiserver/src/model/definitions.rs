//! Controllers of custom resource definitions: accept names, establish, and clean up.
//!
//! They run synchronously, one write after the other; in kube-apiserver they take some milliseconds.
//!
//! Source: apiextensions `controller/{status,establish,finalizer}`, kube-aggregator `controllers/autoregister`; the order of
//! the writes was recorded.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::Stored;
use apimachinery::time::timestamp;
use builtin_kinds::crd::names::Taken;
use builtin_kinds::crd::{approval, names, rows, terminating};
use builtin_kinds::ownership::Ownership;
use serde_json::{Value, json};

use crate::model::write::{self, Outcome};
use crate::model::{Model, Written};

/// Finalizer of a definition until its objects are deleted.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Field manager of the server's own writes.
const ITSELF: &str = "kube-apiserver";

/// A served definition.
#[derive(Debug)]
pub(crate) struct Installed {
    group: String,
    plural: String,
    /// `spec` and accepted names: a change reinstalls the definition.
    spec_and_names: Value,
}

impl Model {
    /// Processes a definition that is marked for deletion and waits for its objects.
    pub(in crate::model) fn definition_marked(&self, now: Duration, definition: &mut Value) {
        let now = timestamp(self.epoch + now);
        definition["metadata"]["deletionTimestamp"] = now.as_str().into();
        let finalizers = &mut definition["metadata"]["finalizers"];
        match finalizers.as_array_mut() {
            Some(finalizers) if finalizers.iter().any(|name| name == CLEANUP) => {}
            Some(finalizers) => finalizers.push(CLEANUP.into()),
            None => *finalizers = json!([CLEANUP]),
        }
        names::set(
            definition,
            terminating_because(
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            ),
            &now,
        );
    }

    /// Queues a definition after a change that affects it.
    pub(in crate::model) fn enqueue_definition(&mut self, kind: &ApiResource, key: &str) {
        if kind.defines {
            self.pending_definitions.insert(key.to_owned());
        } else if kind.custom && !kind.allows("create") {
            self.pending_definitions
                .insert(format!("{}.{}", kind.plural, kind.group));
        }
    }

    /// Runs the controllers of definitions. Returns their writes in order.
    pub(in crate::model) fn sync_definitions(&mut self, now: Duration) -> Vec<Written> {
        let mut written = Vec::new();
        while let Some(name) = self.pending_definitions.pop_first() {
            let Some(kind) = self.catalog.kinds().iter().find(|kind| kind.defines).cloned() else {
                return written;
            };
            match self.current(&kind, &name) {
                Some(definition) => self.sync_definition(now, &kind, &definition, &mut written),
                None => self.stop_serving(now, &name, &mut written),
            }
        }
        written
    }

    fn current(&self, kind: &KindRef, key: &str) -> Option<Arc<Stored>> {
        self.objects(kind).get(key).cloned()
    }

    fn sync_definition(
        &mut self,
        now: Duration,
        kind: &KindRef,
        stored: &Arc<Stored>,
        written: &mut Vec<Written>,
    ) {
        let was = stored.json();
        let time = timestamp(self.epoch + now);
        if terminating(&was) {
            return self.clean_up(now, kind, stored, was, written);
        }
        self.register(now, &was, written);
        let mut named = was.clone();
        approval::judge(&mut named, &time);
        let judged = named.clone();
        names::accept(&mut named, &self.names_in_use(kind, stored), &time);
        let mut last = Arc::clone(stored);
        for change in [judged, named.clone(), {
            names::establish(&mut named, &time);
            named
        }] {
            if change["status"] != last.json()["status"] {
                last = self.put(now, kind, &last, change, written);
            }
        }
        self.install(stored, &last.json());
        // Its own writes need not be processed.
        self.pending_definitions.remove(&stored.key);
    }

    /// Deletes the objects of a definition that is being deleted, and then the definition.
    fn clean_up(
        &mut self,
        now: Duration,
        kind: &KindRef,
        stored: &Arc<Stored>,
        mut definition: Value,
        written: &mut Vec<Written>,
    ) {
        let mut last = Arc::clone(stored);
        names::set(
            &mut definition,
            terminating_because(
                "InstanceDeletionInProgress",
                "CustomResource deletion is in progress",
            ),
            &timestamp(self.epoch + now),
        );
        if definition["status"] != last.json()["status"] {
            last = self.put(now, kind, &last, definition.clone(), written);
        }
        self.install(stored, &definition);
        let held = definition["metadata"]["finalizers"].as_array();
        let only_cleanup = held.is_none_or(|names| names.iter().all(|name| name == CLEANUP));
        if let Some(of) = self.served(&definition).first() {
            let objects: Vec<_> = self.objects(of).values().cloned().collect();
            for object in objects {
                let outcome = write::delete(&object, now);
                let (kind, key) = (object.kind.clone(), object.key.clone());
                let done = self.carry_out(now, &kind, key, Some(object), outcome);
                written.extend(Some(done).filter(|done| done.op.is_some()));
            }
            if !self.objects(of).is_empty() {
                self.pending_definitions.remove(&stored.key);
                return;
            }
        }
        if only_cleanup {
            written.push(self.carry_out(now, kind, stored.key.clone(), Some(last), Outcome::Gone));
        } else {
            self.pending_definitions.remove(&stored.key);
        }
    }

    /// Stops serving a deleted definition.
    fn stop_serving(&mut self, now: Duration, name: &str, written: &mut Vec<Written>) {
        let Some(gone) = self.installed.remove(name) else {
            return;
        };
        let had = self.versions_of(&gone.group);
        let row = self.rows_of(&gone).next().cloned();
        self.catalog.define(&gone.group, &gone.plural, &[]);
        if let Some(kind) = row {
            self.storage.relist(self.resource_id(&kind));
        }
        let left = self.versions_of(&gone.group);
        for version in had.iter().filter(|version| !left.contains(version)) {
            self.unregister(now, &gone.group, version, written);
        }
        // Definitions that wait for its names can have them now.
        let waiting = self
            .definitions()
            .into_iter()
            .filter(|(_, json)| json["spec"]["group"] == gone.group.as_str());
        let waiting: Vec<String> = waiting.map(|(key, _)| key).collect();
        self.pending_definitions.extend(waiting);
    }

    /// Reads the kinds of a definition that another server serves, into the catalog alone.
    pub(crate) fn know_definition(&mut self, definition: &Value) {
        let mut definition = definition.clone();
        // Its own server has them established in a moment.
        names::accept(&mut definition, &Taken::default(), "");
        names::establish(&mut definition, "");
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
        let (Some(group), Some(plural)) = (text("/spec/group"), text("/spec/names/plural")) else {
            return;
        };
        let served = self.served(&definition);
        self.catalog.define(group, plural, &served);
    }

    /// Serves the current version of a definition.
    fn install(&mut self, stored: &Stored, definition: &Value) {
        let text = |pointer: &str| {
            let text = definition.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        let served = self.served(definition);
        let spec_and_names = json!([definition["spec"], definition["status"]["acceptedNames"]]);
        let before = self.installed.insert(
            stored.key.clone(),
            Installed {
                group: group.clone(),
                plural: plural.clone(),
                spec_and_names: spec_and_names.clone(),
            },
        );
        self.catalog.define(&group, &plural, &served);
        for kind in &served {
            self.register_resource(kind);
        }
        if let (Some(before), Some(kind)) = (before, served.first())
            && before.spec_and_names != spec_and_names
        {
            tracing::debug!(resource = &*kind.plural, "definition reinstalled");
            self.storage.relist(self.resource_id(kind));
        }
    }

    /// Returns the rows of a definition. In a built-in group it has none: the server itself responds to all requests for the
    /// group, in any version.
    fn served(&self, definition: &Value) -> Vec<KindRef> {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        match self.catalog.has_builtin_group(group) {
            true => Vec::new(),
            false => rows(definition),
        }
    }

    fn rows_of(&self, of: &Installed) -> impl Iterator<Item = &KindRef> {
        let kinds = self.catalog.kinds().iter();
        kinds.filter(|kind| kind.custom && kind.group == of.group && kind.plural == of.plural)
    }

    /// Returns the served versions of a group, in the order of discovery.
    fn versions_of(&self, group: &str) -> Vec<String> {
        let groups = self.catalog.groups().into_iter();
        let group = groups.filter(|known| known.name == group);
        let versions = group.flat_map(|group| group.versions);
        versions.map(str::to_owned).collect()
    }

    fn definitions(&self) -> Vec<(String, Value)> {
        let kinds = self.catalog.kinds().iter();
        kinds
            .filter(|kind| kind.defines)
            .flat_map(|kind| self.objects(kind).values())
            .map(|stored| (stored.key.clone(), stored.json()))
            .collect()
    }

    /// Returns the names accepted for other definitions of its group.
    fn names_in_use(&self, kind: &KindRef, definition: &Stored) -> Taken {
        // A definition is named plural.group: those of other groups need not be decoded.
        fn group(key: &str) -> Option<&str> {
            key.split_once('.').map(|(_, group)| group)
        }
        let of = group(&definition.key);
        let others = self.objects(kind).values();
        let others: Vec<Value> = others
            .filter(|other| other.key != definition.key && group(&other.key) == of)
            .map(|other| other.json())
            .collect();
        Taken::by(others.iter())
    }

    /// Creates the APIServices of the group's versions, as kube-apiserver does.
    fn register(&mut self, now: Duration, definition: &Value, written: &mut Vec<Written>) {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let Some(kind) = self
            .catalog
            .find("apiregistration.k8s.io", "apiservices")
            .cloned()
        else {
            return;
        };
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let version = version["name"].as_str().filter(|_| version["served"] == true);
            let Some(version) = version else { continue };
            let key = format!("{version}.{group}");
            if self.current(&kind, &key).is_none() {
                let mut service = json!({
                    "metadata": { "labels": { "kube-aggregator.kubernetes.io/automanaged": "true" } },
                    "spec": {
                        "group": group,
                        "version": version,
                        "groupPriorityMinimum": 1000,
                        "versionPriority": 100,
                    },
                    "status": { "conditions": [{
                        "type": "Available",
                        "status": "True",
                        "lastTransitionTime": timestamp(self.epoch + now),
                        "reason": "Local",
                        "message": "Local APIServices are always available",
                    }] },
                });
                let time = timestamp(self.epoch + now);
                let nothing = json!({ "metadata": {}, "spec": {} });
                Ownership::new(&kind, self.version, ITSELF, "", time).note_update(&nothing, &mut service);
                written.push(self.replace(now, &kind, key, &service));
            }
        }
    }

    fn unregister(&mut self, now: Duration, group: &str, version: &str, written: &mut Vec<Written>) {
        let Some(kind) = self
            .catalog
            .find("apiregistration.k8s.io", "apiservices")
            .cloned()
        else {
            return;
        };
        let key = format!("{version}.{group}");
        if let Some(service) = self.current(&kind, &key) {
            let outcome = write::delete(&service, now);
            written.push(self.carry_out(now, &kind, key, Some(service), outcome));
        }
    }

    /// Stores the status of a definition.
    fn put(
        &mut self,
        now: Duration,
        kind: &KindRef,
        last: &Arc<Stored>,
        mut definition: Value,
        written: &mut Vec<Written>,
    ) -> Arc<Stored> {
        let time = timestamp(self.epoch + now);
        Ownership::new(kind, self.version, ITSELF, "status", time).note_update(&last.json(), &mut definition);
        let done = self.carry_out(
            now,
            kind,
            last.key.clone(),
            Some(Arc::clone(last)),
            Outcome::Put(definition),
        );
        let stored = Arc::clone(&done.stored);
        written.push(done);
        stored
    }
}

fn terminating_because(reason: &str, message: &str) -> Value {
    json!({ "type": "Terminating", "status": "True", "reason": reason, "message": message })
}
