//! The model: the responses of a real apiserver. Pure and clock-free; it must not know scripts, faults or sockets.
//!
//! Revisions, watch caches, and the state that a LIST, GET or WATCH reads are in the crate `watchcache`; here are the kinds:
//! the result of a write (`registry`), and the bytes of responses (`page`, `watch`, `table`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::options::{Collection, Representation, WatchRequest};
use apimachinery::status::Status;
use builtin_kinds::crd;
use scenario::{AdmissionPlugins, Manifest, ObjectName, ServerSettings};
use trace::record::{Replica, WriteOp};

use crate::api::WriteRequest;
use crate::api::access::Requester;

mod bootstrap;
mod components;
pub(crate) mod conversions;
mod definitions;
mod derived;
pub(crate) mod hooks;
mod initial_state;
mod kubelet;
mod lines;
pub mod list;
mod namespaces;
mod page;
pub(crate) mod policy;
mod registry;
pub(crate) mod review;
mod snapshot;
mod table;
mod tokens;
mod view;
pub mod watch;
mod world;
mod write;

#[cfg(test)]
mod tests;

pub use apimachinery::encode::encode_json;
use apimachinery::kind::{KindRef, Text};
pub use apimachinery::object::Stored;
use builtin_kinds::admission_policy::mutating::Mutations;
use builtin_kinds::admission_policy::{self, Policies};
use builtin_kinds::admission_webhook::Hooks;
use builtin_kinds::catalog::Catalog;
use builtin_kinds::rbac::Policy;
pub use builtin_kinds::{catalog, unevaluated};
use conversions::Conversions;
use definitions::Installed;
use derived::Derived;
pub use hooks::{HookCall, Replies};
use initial_state::InitialState;
use lines::Lines;
pub use list::{GetOutcome, ListOutcome};
pub(crate) use namespaces::NAMESPACES;
pub use page::{Page, PageText};
pub use registry::{Done, Refused, Undone};
pub use snapshot::{NotAdded, Snapshot};
pub use watch::{WatchFrame, WatchPoll, WatchSession, error_frame};
use watchcache::{ResourceId, Settings};
pub use watchcache::{RestoreError, WatchCacheOp};
pub(crate) use world::Setting;
use write::Outcome;

/// The objects of one resource, in key order.
type Objects = watchcache::Objects<Stored>;

/// etcd and the watch caches.
type Storage = watchcache::Storage<Stored, Lines>;

/// Result of a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// What changed; `None`: nothing did, and no revision was used.
    pub op: Option<WriteOp>,
    /// Object key: `namespace/name`, or `name`.
    pub key: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The revision of the write (of the stored object, if nothing changed).
    pub revision: u64,
    /// The object as stored (as it last was, with the revision of the delete, for a delete).
    pub stored: Arc<Stored>,
    /// The version before.
    pub previous: Option<Arc<Stored>>,
}

/// Plurals of the resources of admission, whose objects every write looks for.
const ADMISSION: [&str; 6] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

/// The model of an apiserver with its etcd.
#[derive(Debug)]
pub struct Model {
    version: Version,
    catalog: Catalog,
    storage: Storage,
    /// Number of writes ever made; unlike revisions, it never goes down.
    writes: u64,
    /// Number of dry-run writes, so that the objects they return have unique uids.
    dry_runs: u64,
    /// Time from 1970 to the start.
    epoch: Duration,
    /// Whether a write needs an existing namespace.
    namespaces_enforced: bool,
    plugins: AdmissionPlugins,
    /// Revisions of objects that are stored without defaults which they have when they are read: the next write stores these,
    /// whatever else it changes.
    unsettled: BTreeSet<u64>,
    /// Served definitions, by name.
    installed: BTreeMap<String, Installed>,
    /// Definitions that changed and are not processed yet.
    pending_definitions: BTreeSet<String>,
    /// Resources by group and plural: all versions of a resource share their objects.
    resource_ids: BTreeMap<Text, BTreeMap<Text, ResourceId>>,
    /// Resources by the address of a built-in kind, because every write looks them up several times.
    builtin_resource_ids: BTreeMap<usize, ResourceId>,
    /// Those of policies and webhooks, by plural: every write asks for each of them, and mostly there are none.
    admission_resources: Vec<(&'static str, ResourceId)>,
    initial_state: InitialState,
    /// Whether the objects that kube-apiserver creates at start exist.
    bootstrapped: bool,
    policy: Derived<Policy>,
    admission: Derived<Policies>,
    mutations: Derived<Mutations>,
    mutating_hooks: Derived<Hooks>,
    validating_hooks: Derived<Hooks>,
    conversions: Conversions,
}

impl Model {
    /// Returns an empty store with the kinds that scenarios use. The first write gets `settings.revision + 1`.
    pub fn new(settings: &ServerSettings) -> Self {
        Self::with_catalog(settings, Catalog::of_scenarios(settings.version))
    }

    /// Returns the empty store of a stock apiserver: custom resources need a definition, and a write into a namespace that
    /// does not exist is refused.
    pub fn standalone(settings: &ServerSettings) -> Self {
        let mut model = Self::with_catalog(settings, Catalog::builtin(settings.version));
        model.enforce_namespaces();
        model
    }

    /// Rejects writes of clients into a namespace that does not exist from now on. Writes of the scenario are still possible.
    pub fn enforce_namespaces(&mut self) {
        self.namespaces_enforced = true;
    }

    fn with_catalog(settings: &ServerSettings, catalog: Catalog) -> Self {
        let storage = Storage::new(&Settings {
            revision: settings.revision,
            watch_cache_capacity: settings.watch_cache_capacity,
            bookmark_interval: Duration::from_millis(settings.bookmark_interval_ms),
            progress_notify: settings.progress_notify,
        });
        let mut model = Self {
            catalog: catalog.clone(),
            version: settings.version,
            storage,
            writes: 0,
            dry_runs: 0,
            epoch: Duration::from_secs(settings.epoch_seconds),
            namespaces_enforced: false,
            plugins: settings.admission,
            unsettled: BTreeSet::new(),
            installed: BTreeMap::new(),
            pending_definitions: BTreeSet::new(),
            resource_ids: BTreeMap::new(),
            builtin_resource_ids: BTreeMap::new(),
            admission_resources: Vec::new(),
            initial_state: InitialState::new(),
            bootstrapped: false,
            policy: Derived::default(),
            admission: Derived::default(),
            mutations: Derived::default(),
            mutating_hooks: Derived::default(),
            validating_hooks: Derived::default(),
            conversions: Conversions::default(),
        };
        model.storage.reserve_resources(catalog.kinds().len());
        for kind in catalog.kinds() {
            model.register_resource(kind);
        }
        let of_admission = |plural: &'static str| {
            let id = model.resource_id_of((admission_policy::GROUP, plural))?;
            Some((plural, id))
        };
        model.admission_resources = ADMISSION.into_iter().filter_map(of_admission).collect();
        model
    }

    /// Registers the resource of this kind, if it is new.
    fn register_resource(&mut self, kind: &KindRef) {
        let storage = &mut self.storage;
        let group = kind.shows.as_ref().map_or(&kind.group, |(group, _)| group);
        let ids = self.resource_ids.entry(group.clone()).or_default();
        let id = ids.entry(kind.plural.clone());
        let id = id.or_insert_with(|| storage.add_resource(kind.plural.clone(), kind.watch_cached));
        if let Some(address) = kind.builtin_address() {
            self.builtin_resource_ids.insert(address, *id);
        }
    }

    /// Returns whether a second apiserver uses the same store.
    pub fn has_secondary(&self) -> bool {
        self.storage.replicas() > 1
    }

    /// Adds a second apiserver, whose watch caches begin at the current revision.
    pub fn open_secondary(&mut self) {
        self.storage.add_replica();
    }

    /// Returns etcd and the watch caches.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns etcd and the watch caches, to compact, restore or restart it. Objects are written by the methods of the model.
    pub(crate) fn storage_mut(&mut self) -> &mut Storage {
        &mut self.storage
    }

    /// Sets whether the next events of a kind count towards the capacity of its watch caches' windows.
    pub(crate) fn count_events(&mut self, kind: &KindRef, counts: bool) {
        let resource = self.resource_id(kind);
        self.storage.count_events(resource, counts);
    }

    /// Applies the operation to the watch cache of a resource (group and plural), or to all, of one replica or both.
    pub fn turn_watch_caches(
        &mut self,
        now: Duration,
        op: WatchCacheOp,
        resource: Option<(&str, &str)>,
        replica: Option<Replica>,
    ) {
        let replica = replica.map(replica_id);
        match resource {
            None => self.storage.operate(now, op, None, replica),
            Some(resource) => {
                if let Some(id) = self.resource_id_of(resource) {
                    self.storage.operate(now, op, Some(id), replica);
                }
            }
        }
    }

    /// Starts the process of an apiserver again, or of both; its watch caches are filled at `filled`.
    pub fn restart(&mut self, now: Duration, replica: Option<Replica>, filled: Duration) {
        self.storage.restart(now, replica.map(replica_id), filled);
    }

    /// Returns the served kinds.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the newest revision.
    pub fn revision(&self) -> u64 {
        self.storage.revision()
    }

    /// Returns the oldest revision that an exact list can return.
    pub fn compacted(&self) -> u64 {
        self.storage.compacted()
    }

    /// Returns the oldest revision from which a watch of this resource can start.
    pub fn oldest_watchable(&self, group: &str, plural: &str) -> Option<u64> {
        let kind = self.catalog.find(group, plural)?;
        Some(self.storage.oldest_watchable(self.resource_id(kind)))
    }

    /// Creates or replaces the object.
    ///
    /// # Errors
    /// 404 for a kind that is not served.
    pub fn apply(&mut self, now: Duration, manifest: &Manifest) -> Result<Written, Status> {
        let kind = self.kind(&manifest.group, &manifest.plural)?;
        let namespace = manifest
            .namespace
            .as_deref()
            .or(kind.namespaced.then_some("default"));
        let key = kind.key(namespace, &manifest.name);
        Ok(self.replace(now, &kind, key, &manifest.json))
    }

    /// Deletes the object. One with finalizers is only marked for deletion; the write that removes its last finalizer
    /// deletes it.
    ///
    /// # Errors
    /// 404 for a kind that is not served and for an object that does not exist.
    pub fn delete(&mut self, now: Duration, name: &ObjectName) -> Result<Written, Status> {
        let (kind, current) = self.existing(name)?;
        let outcome = if kind.defines {
            let mut definition = current.json();
            self.definition_marked(now, &mut definition);
            Outcome::Put(definition)
        } else {
            write::delete(&current, self.epoch + now)
        };
        Ok(self.carry_out(now, &kind, current.key.clone(), Some(current), outcome))
    }

    /// Returns whether the object exists.
    pub fn has(&self, name: &ObjectName) -> bool {
        self.existing(name).is_ok()
    }

    /// Sets labels; `None` removes one.
    ///
    /// # Errors
    /// 404 for a kind that is not served and for an object that does not exist.
    pub fn relabel(
        &mut self,
        now: Duration,
        name: &ObjectName,
        labels: &[(String, Option<String>)],
    ) -> Result<Written, Status> {
        let (kind, current) = self.existing(name)?;
        let manifest = write::relabelled(&current, labels);
        Ok(self.replace(now, &kind, current.key.clone(), &manifest))
    }

    /// Executes a write of a client. `seed` is the seed of generated names.
    ///
    /// # Errors
    ///
    /// The error of a real apiserver: 403, 404, 409, 422, 500.
    pub fn write(&mut self, now: Duration, request: WriteRequest, seed: u64) -> Result<Done, Refused> {
        match self.write_as(now, request, seed, None, &mut Replies::default()) {
            Ok(done) => Ok(done),
            Err(Undone::Refused(refused)) => Err(refused),
            Err(Undone::Waits | Undone::Converts) => Err(Refused {
                status: Status::internal_error("a webhook is needed, and there is nobody to call it"),
                warnings: Vec::new(),
            }),
        }
    }

    /// Like [`Model::write`], for a user, who cannot grant rights they do not hold, and with webhooks. `None`: the server itself.
    /// A write that waits is attempted again, with the outcomes of its calls in `replies`.
    ///
    /// # Errors
    ///
    /// As [`Model::write`]; or it waits.
    pub(crate) fn write_as(
        &mut self,
        now: Duration,
        request: WriteRequest,
        seed: u64,
        requester: Option<Requester<'_>>,
        replies: &mut Replies,
    ) -> Result<Done, Undone> {
        let mut done = registry::write(self, now, request, seed, requester, replies)?;
        done.written.extend(self.settle(now));
        Ok(done)
    }

    /// Processes definitions that were written, as an apiserver's controllers do: their names are accepted, they are
    /// established and served, or cleaned up. Call it after every write of a scenario; returns what it wrote.
    pub fn settle(&mut self, now: Duration) -> Vec<Written> {
        self.sync_definitions(now)
    }

    /// Returns the objects of a resource as of `revision`, in key order; none if that revision is compacted.
    pub fn objects_at(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> impl Iterator<Item = Arc<Stored>> {
        let kind = self.catalog.find(group, plural);
        let objects = kind.and_then(|kind| self.storage.at(self.resource_id(kind), revision));
        objects.into_iter().flat_map(move |objects| {
            let range = watchcache::range(&objects, namespace, "");
            range.cloned().collect::<Vec<_>>()
        })
    }

    /// Returns the current object.
    pub fn object(&self, name: &ObjectName) -> Option<Arc<Stored>> {
        self.existing(name).ok().map(|(_, object)| object)
    }

    /// Opens a watch. `lifetime` is how long it lasts if the request has no `timeoutSeconds`; a real server draws it from
    /// 30 to 60 minutes.
    ///
    /// # Errors
    /// 429 while the watch caches are filled. Other errors of a valid watch request are sent in the stream, as an ERROR
    /// event.
    pub fn open_watch(
        &self,
        now: Duration,
        request: &WatchRequest,
        lifetime: Duration,
    ) -> Result<WatchSession, Status> {
        self.open_watch_at(Replica::Primary, now, request, lifetime)
    }

    /// Like [`Model::open_watch`], at one of two apiservers.
    ///
    /// # Errors
    /// As [`Model::open_watch`].
    pub fn open_watch_at(
        &self,
        replica: Replica,
        now: Duration,
        request: &WatchRequest,
        lifetime: Duration,
    ) -> Result<WatchSession, Status> {
        let id = self.resource_id(&request.collection.kind);
        match self.storage.unready(now, id, replica_id(replica)) {
            Some(status) => Err(status),
            None => Ok(WatchSession::open(self, replica, now, request, lifetime)),
        }
    }

    /// Returns a bookmark of this collection. `resource_version` is written verbatim (empty: left out).
    pub fn bookmark_frame(
        &self,
        collection: &Collection,
        resource_version: &str,
        initial_events_end: Option<&str>,
        form: Representation,
    ) -> WatchFrame {
        watch::bookmark_frame(
            self.version,
            &collection.kind,
            resource_version,
            initial_events_end,
            form,
            true,
        )
    }

    fn kind(&self, group: &str, plural: &str) -> Result<KindRef, Status> {
        let kind = self.catalog.find(group, plural).cloned();
        kind.ok_or_else(Status::unknown_path)
    }

    fn resource_id(&self, kind: &KindRef) -> ResourceId {
        let address = kind.builtin_address();
        let id = address.and_then(|address| self.builtin_resource_ids.get(&address).copied());
        let id = id.or_else(|| self.resource_id_of(kind.storage()));
        id.expect("a resource is registered before its kind is served, and never removed")
    }

    /// Returns the resource of a group and plural.
    fn resource_id_of(&self, (group, plural): (&str, &str)) -> Option<ResourceId> {
        self.resource_ids.get(group)?.get(plural).copied()
    }

    /// Returns all resources, by group and plural.
    fn resource_ids(&self) -> impl Iterator<Item = ResourceId> {
        self.resource_ids.values().flat_map(BTreeMap::values).copied()
    }

    /// Returns the current objects of this kind's resource, in key order.
    fn objects(&self, kind: &KindRef) -> &Objects {
        self.storage.current(self.resource_id(kind))
    }

    /// Whether a write of the object stores defaults, even if it changes nothing.
    fn is_unsettled(&self, object: &Stored) -> bool {
        !self.unsettled.is_empty() && self.unsettled.contains(&object.revision)
    }

    /// Returns the policies or webhooks of a resource in [`ADMISSION`], in key order; `None`: there are none.
    fn of_admission(&self, plural: &str) -> Option<&Objects> {
        let (_, id) = self
            .admission_resources
            .iter()
            .find(|(known, _)| *known == plural)?;
        Some(self.storage.current(*id)).filter(|objects| !objects.is_empty())
    }

    fn existing(&self, name: &ObjectName) -> Result<(KindRef, Arc<Stored>), Status> {
        let kind = self.kind(&name.group, &name.plural)?;
        let namespace = name.namespace.as_deref().or(kind.namespaced.then_some("default"));
        let key = kind.key(namespace, &name.name);
        match self.objects(&kind).get(key.as_str()).cloned() {
            Some(object) => Ok((kind, object)),
            None => Err(Status::not_found(&kind, &name.name)),
        }
    }

    fn replace(
        &mut self,
        now: Duration,
        kind: &KindRef,
        key: String,
        manifest: &serde_json::Value,
    ) -> Written {
        let current = self.objects(kind).get(key.as_str()).cloned();
        let uid = write::uid(self.writes, &key);
        let old = current.as_ref().map(|current| current.json());
        let manifest = match kind.defines {
            true => crd::prepared(manifest.clone(), old.as_ref()),
            false => manifest.clone(),
        };
        let live = current.as_ref().zip(old.as_ref());
        let outcome = write::replace(kind, &key, live, manifest, self.epoch + now, uid);
        self.carry_out(now, kind, key, current, outcome)
    }

    fn carry_out(
        &mut self,
        now: Duration,
        kind: &KindRef,
        key: String,
        previous: Option<Arc<Stored>>,
        outcome: Outcome,
    ) -> Written {
        let id = self.resource_id(kind);
        let (op, stored) = match (outcome, &previous) {
            (Outcome::Put(json), previous) => {
                let make = |revision| Stored::new(kind, key.clone(), revision, json);
                let stored = self.storage.put(now, id, make);
                let op = match previous {
                    None => WriteOp::Create,
                    Some(_) => WriteOp::Update,
                };
                (Some(op), stored)
            }
            (Outcome::Gone | Outcome::Released(_), Some(last)) => {
                let gone = self.storage.delete(now, id, last);
                let gone = gone.expect("only an object that is there can go");
                (Some(WriteOp::Delete), gone)
            }
            (Outcome::Same(current), _) => (None, current),
            (Outcome::Gone | Outcome::Released(_), None) => {
                unreachable!("only an object that is there can go")
            }
        };
        if let Some(op) = op {
            self.note(op, &stored);
            if let Some(previous) = previous.as_ref().filter(|_| !self.unsettled.is_empty()) {
                self.unsettled.remove(&previous.revision);
            }
        }
        Written {
            op,
            key,
            uid: stored.uid.clone(),
            revision: stored.revision,
            stored,
            previous,
        }
    }

    /// Creates an object that `make` completes for the revision it gets.
    fn create(&mut self, now: Duration, kind: &KindRef, make: impl FnOnce(u64) -> Stored) -> Written {
        let stored = self.storage.put(now, self.resource_id(kind), make);
        self.note(WriteOp::Create, &stored);
        Written {
            op: Some(WriteOp::Create),
            key: stored.key.clone(),
            uid: stored.uid.clone(),
            revision: stored.revision,
            stored,
            previous: None,
        }
    }

    /// Counts a write, and notifies the controllers of definitions.
    fn note(&mut self, op: WriteOp, stored: &Stored) {
        let (kind, key, revision) = (&stored.kind, stored.key.as_str(), stored.revision);
        self.writes += 1;
        tracing::debug!(resource = &*kind.plural, key, revision, ?op, "written");
        self.enqueue_definition(kind, key);
    }
}

/// Returns the index of a replica in the storage.
fn replica_id(replica: Replica) -> watchcache::Replica {
    match replica {
        Replica::Primary => watchcache::Replica::FIRST,
        Replica::Secondary => watchcache::Replica(1),
    }
}
