//! The model: what a real apiserver would answer. Pure and clock-free; knows nothing of scripts, faults or sockets.
//!
//! One global revision counts every write. Each resource keeps its objects as of every revision (`store`) and its newest
//! events (`watch_cache`); `list` and `watch` decide which of the two answers a read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::options::{Collection, Form, GetRequest, ListRequest, WatchRequest};
use apimachinery::status::Status;
use builtin_kinds::crd;
use scenario::{Manifest, ObjectName, ServerSettings};
use trace::record::{Replica, WriteOp};

use crate::api::WriteRequest;

mod beginning;
mod bootstrap;
mod components;
mod definitions;
mod kubelet;
pub mod list;
mod namespaces;
mod registry;
pub(crate) mod review;
mod store;
mod table;
mod tokens;
mod turns;
pub mod watch;
mod watch_cache;
mod write;

#[cfg(test)]
mod tests;

pub use apimachinery::encode::encode_json;
use apimachinery::kind::Kind;
pub use apimachinery::object::Stored;
use beginning::Beginning;
use builtin_kinds::catalog::Catalog;
pub use builtin_kinds::{catalog, unevaluated};
use definitions::Installed;
pub use list::{GetOutcome, ListOutcome, Page, PageText};
pub use registry::{Done, Refused};
use store::{Objects, Store};
use turns::Lags;
pub use turns::{RestoreError, WatchCacheOp};
pub use watch::{WatchFrame, WatchPoll, WatchSession, error_frame};
use watch_cache::{Event, WatchCache};
use write::Outcome;

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

/// The model of an apiserver with its etcd.
#[derive(Debug)]
pub struct Model {
    version: Version,
    catalog: Catalog,
    revision: u64,
    /// Oldest revision that is not compacted.
    compacted: u64,
    /// Number of writes ever made; unlike revisions, it never goes down.
    writes: u64,
    /// Number of dry-run writes, so that the objects they return have unique uids.
    dry_runs: u64,
    bookmark_interval: Duration,
    watch_cache_capacity: usize,
    /// Time from 1970 to the start.
    epoch: Duration,
    progress_notify: bool,
    /// Must a namespace exist before anything is written into it?
    namespaces_enforced: bool,
    /// Served definitions, by name.
    installed: BTreeMap<String, Installed>,
    /// Definitions that changed and are not processed yet.
    unsettled: BTreeSet<String>,
    /// In the order of registration; never removed.
    resources: Vec<Resource>,
    /// Their index by group and plural: all versions of a resource share their objects.
    places: BTreeMap<(&'static str, &'static str), Place>,
    /// The same by the address of the kind, because every write looks it up several times.
    places_of_kinds: BTreeMap<usize, Place>,
    /// Does every resource have the watch cache of a second apiserver?
    secondary: bool,
    beginning: Beginning,
    lags: Lags,
}

/// Index of a resource, for callers that need it at every event.
#[derive(Debug, Clone, Copy)]
struct Place(usize);

/// One kind's objects and events.
#[derive(Debug)]
struct Resource {
    watch_cached: bool,
    store: Store,
    cache: WatchCache,
    /// Watch cache of a second apiserver on the same store.
    secondary: Option<WatchCache>,
}

impl Resource {
    fn cache(&self, replica: Replica) -> &WatchCache {
        match (replica, &self.secondary) {
            (Replica::Secondary, Some(secondary)) => secondary,
            (Replica::Primary | Replica::Secondary, _) => &self.cache,
        }
    }

    /// Returns the watch caches of `replica`, or of both.
    fn caches(&mut self, replica: Option<Replica>) -> impl Iterator<Item = &mut WatchCache> {
        let first = (replica != Some(Replica::Secondary)).then_some(&mut self.cache);
        let second = self
            .secondary
            .as_mut()
            .filter(|_| replica != Some(Replica::Primary));
        first.into_iter().chain(second)
    }

    /// Returns the approximate memory of the watch cache's events, in bytes.
    fn event_bytes(&self) -> usize {
        self.cache.bytes() + self.secondary.as_ref().map_or(0, WatchCache::bytes)
    }

    /// Refills the watch caches from a list at `revision`.
    fn relist(&mut self, revision: u64) {
        let objects = self.store.current().clone();
        self.caches(None)
            .for_each(|cache| cache.relist(revision, &objects));
    }
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

    /// From now on, clients cannot write into a namespace that does not exist. Writes of the scenario still can.
    pub fn enforce_namespaces(&mut self) {
        self.namespaces_enforced = true;
    }

    fn with_catalog(settings: &ServerSettings, catalog: Catalog) -> Self {
        let revision = settings.revision;
        let mut model = Self {
            version: settings.version,
            catalog: catalog.clone(),
            watch_cache_capacity: settings.watch_cache_capacity,
            secondary: false,
            revision,
            compacted: revision,
            writes: 0,
            dry_runs: 0,
            bookmark_interval: Duration::from_millis(settings.bookmark_interval_ms.max(1)),
            epoch: Duration::from_secs(settings.epoch_seconds),
            progress_notify: settings.progress_notify,
            namespaces_enforced: false,
            installed: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            resources: Vec::new(),
            places: BTreeMap::new(),
            places_of_kinds: BTreeMap::new(),
            beginning: Beginning::new(),
            lags: Lags::default(),
        };
        for kind in catalog.kinds() {
            model.make_room(kind);
        }
        model
    }

    /// Registers the resource of this kind, if it is new.
    fn make_room(&mut self, kind: &'static Kind) {
        let revision = self.revision;
        // Without a watch cache, etcd has all events since compaction.
        let capacity = if kind.watch_cached {
            self.watch_cache_capacity
        } else {
            usize::MAX
        };
        let (secondary, lags) = (self.secondary, &self.lags);
        let new = |replica| WatchCache::new(revision, capacity, lags.of(replica));
        let place = self.places.entry(kind.storage()).or_insert_with(|| {
            self.resources.push(Resource {
                watch_cached: kind.watch_cached,
                store: Store::new(revision),
                cache: new(Replica::Primary),
                secondary: secondary.then(|| new(Replica::Secondary)),
            });
            Place(self.resources.len() - 1)
        });
        self.places_of_kinds.insert(address(kind), *place);
    }

    /// Is there a second apiserver on the same store?
    pub fn has_secondary(&self) -> bool {
        self.secondary
    }

    /// Adds a second apiserver, whose watch caches begin at the current revision.
    pub fn open_twin(&mut self) {
        let (revision, capacity) = (self.revision, self.watch_cache_capacity);
        self.secondary = true;
        for resource in &mut self.resources {
            let capacity = if resource.watch_cached {
                capacity
            } else {
                usize::MAX
            };
            resource.secondary = Some(WatchCache::new(
                revision,
                capacity,
                self.lags.of(Replica::Secondary),
            ));
        }
    }

    /// Returns the served kinds.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the oldest revision that an exact list can return.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Returns the oldest revision from which a watch of this resource can start.
    pub fn oldest_watchable(&self, group: &str, plural: &str) -> Option<u64> {
        let kind = self.catalog.find(group, plural)?;
        let oldest = self.resource(kind).cache.oldest_start();
        Some(if kind.watch_cached { oldest } else { self.compacted })
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
        Ok(self.replace(now, kind, key, &manifest.json))
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
        Ok(self.carry_out(now, kind, current.key.clone(), Some(current), outcome))
    }

    /// Does this object exist?
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
        Ok(self.replace(now, kind, current.key.clone(), &manifest))
    }

    /// Carries out a write of a client. `seed` decides generated names.
    ///
    /// # Errors
    /// The refusal of a real apiserver: 403, 404, 409, 422, 500.
    pub fn write(&mut self, now: Duration, request: WriteRequest, seed: u64) -> Result<Done, Refused> {
        let mut done = registry::write(self, now, request, seed)?;
        done.written.extend(self.settle(now));
        Ok(done)
    }

    /// Processes definitions that were written, as an apiserver's controllers do: their names are accepted, they are
    /// established and served, or cleaned up. Call it after every write of a scenario; returns what it wrote.
    pub fn settle(&mut self, now: Duration) -> Vec<Written> {
        self.settle_definitions(now)
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
        let objects = kind.and_then(|kind| self.resource(kind).store.at(revision));
        objects.into_iter().flat_map(move |objects| {
            let range = store::range(&objects, namespace, "");
            range.cloned().collect::<Vec<_>>()
        })
    }

    /// Returns the current object.
    pub fn object(&self, name: &ObjectName) -> Option<Arc<Stored>> {
        self.existing(name).ok().map(|(_, object)| object)
    }

    /// Answers a LIST that arrived at `arrived`.
    pub fn list(&self, now: Duration, arrived: Duration, request: &ListRequest) -> ListOutcome {
        self.list_at(Replica::Primary, now, arrived, request)
    }

    /// Like [`Model::list`], at one of two apiservers.
    pub fn list_at(
        &self,
        replica: Replica,
        now: Duration,
        arrived: Duration,
        request: &ListRequest,
    ) -> ListOutcome {
        list::list(self, replica, now, arrived, request)
    }

    /// Answers a GET that arrived at `arrived`.
    pub fn get(&self, now: Duration, arrived: Duration, request: &GetRequest) -> GetOutcome {
        self.get_at(Replica::Primary, now, arrived, request)
    }

    /// Like [`Model::get`], at one of two apiservers.
    pub fn get_at(
        &self,
        replica: Replica,
        now: Duration,
        arrived: Duration,
        request: &GetRequest,
    ) -> GetOutcome {
        list::get(self, replica, now, arrived, request)
    }

    /// Opens a watch. `lifetime` is how long it lasts if the request has no `timeoutSeconds`; a real server draws it from
    /// 30 to 60 minutes.
    ///
    /// # Errors
    /// None for the kinds served now: errors of a valid watch request are sent in the stream, as an ERROR event.
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
        Ok(WatchSession::open(self, replica, now, request, lifetime))
    }

    /// Returns a bookmark of this collection. `resource_version` is written verbatim (empty: left out).
    pub fn bookmark_frame(
        &self,
        collection: &Collection,
        resource_version: &str,
        initial_events_end: Option<&str>,
        form: Form,
    ) -> WatchFrame {
        watch::bookmark_frame(
            self.version,
            collection.kind,
            resource_version,
            initial_events_end,
            form,
            true,
        )
    }

    /// Returns the revision and the objects that reads from the watch cache see.
    fn cached<'a>(&'a self, resource: &'a Resource, replica: Replica) -> (u64, &'a Objects) {
        let cache = resource.cache(replica);
        match cache.behind() {
            Some(objects) => (cache.revision(), objects),
            None if self.progress_notify => (self.revision, resource.store.current()),
            None => (cache.revision(), resource.store.current()),
        }
    }

    /// Requests `revision` of the watch cache: a cache that is behind asks etcd for its revision (a progress request),
    /// and so learns of writes to other resources. Returns the revision that the cache has reached.
    fn catch_up(&self, resource: &Resource, replica: Replica, revision: u64) -> u64 {
        let cache = resource.cache(replica);
        if self.cached(resource, replica).0 < revision {
            cache.progress(self.revision);
        }
        self.cached(resource, replica).0
    }

    fn kind(&self, group: &str, plural: &str) -> Result<&'static Kind, Status> {
        self.catalog.find(group, plural).ok_or_else(Status::unknown_path)
    }

    fn place(&self, kind: &'static Kind) -> Place {
        let place = self.places_of_kinds.get(&address(kind));
        let place = place.or_else(|| self.places.get(&kind.storage()));
        *place.expect("room is made for a kind before it is served, and never taken back")
    }

    fn at(&self, place: Place) -> &Resource {
        &self.resources[place.0]
    }

    fn resource(&self, kind: &'static Kind) -> &Resource {
        self.at(self.place(kind))
    }

    fn resource_mut(&mut self, kind: &'static Kind) -> &mut Resource {
        let place = self.place(kind);
        &mut self.resources[place.0]
    }

    fn existing(&self, name: &ObjectName) -> Result<(&'static Kind, Arc<Stored>), Status> {
        let kind = self.kind(&name.group, &name.plural)?;
        let namespace = name.namespace.as_deref().or(kind.namespaced.then_some("default"));
        let key = kind.key(namespace, &name.name);
        match self.resource(kind).store.current().get(key.as_str()) {
            Some(object) => Ok((kind, Arc::clone(object))),
            None => Err(Status::not_found(kind, &name.name)),
        }
    }

    fn replace(
        &mut self,
        now: Duration,
        kind: &'static Kind,
        key: String,
        manifest: &serde_json::Value,
    ) -> Written {
        let current = self.resource(kind).store.current().get(key.as_str()).cloned();
        let uid = write::uid(self.writes, &key);
        let prepared = kind.defines.then(|| {
            let old = current.as_ref().map(|current| current.json());
            crd::prepared(manifest.clone(), old.as_ref())
        });
        let manifest = prepared.unwrap_or_else(|| manifest.clone());
        let outcome = write::replace(kind, &key, current.as_ref(), manifest, self.epoch + now, uid);
        self.carry_out(now, kind, key, current, outcome)
    }

    fn carry_out(
        &mut self,
        now: Duration,
        kind: &'static Kind,
        key: String,
        previous: Option<Arc<Stored>>,
        outcome: Outcome,
    ) -> Written {
        let revision = self.revision + 1;
        let (op, stored) = match (outcome, &previous) {
            (Outcome::Put(json), None) => (
                Some(WriteOp::Create),
                Arc::new(Stored::new(kind, key.clone(), revision, json)),
            ),
            (Outcome::Put(json), Some(_)) => (
                Some(WriteOp::Update),
                Arc::new(Stored::new(kind, key.clone(), revision, json)),
            ),
            (Outcome::Gone | Outcome::Released(_), Some(last)) => {
                (Some(WriteOp::Delete), Arc::new(last.at_revision(revision)))
            }
            (Outcome::Same(current), _) => (None, current),
            (Outcome::Gone | Outcome::Released(_), None) => {
                unreachable!("only an object that is there can go")
            }
        };
        if let Some(op) = op {
            self.commit(now, op, &stored, previous.clone());
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

    /// Creates an object that is complete, under the next revision.
    fn create(&mut self, now: Duration, stored: Stored) -> Written {
        let stored = Arc::new(stored);
        self.commit(now, WriteOp::Create, &stored, None);
        Written {
            op: Some(WriteOp::Create),
            key: stored.key.clone(),
            uid: stored.uid.clone(),
            revision: stored.revision,
            stored,
            previous: None,
        }
    }

    /// Stores a version, or the last one of a deleted object, and passes it to the watch caches.
    fn commit(&mut self, now: Duration, op: WriteOp, stored: &Arc<Stored>, previous: Option<Arc<Stored>>) {
        let (kind, key, revision) = (stored.kind, stored.key.as_str(), stored.revision);
        self.revision = revision;
        self.writes += 1;
        tracing::debug!(resource = kind.plural, key, revision, ?op, "written");
        self.unsettle(kind, key);
        let told = self.progress_notify.then_some(revision - 1);
        let resource = self.resource_mut(kind);
        match op {
            WriteOp::Create | WriteOp::Update => resource.store.put(stored),
            WriteOp::Delete => resource.store.remove(key, revision),
        }
        let event = Arc::new(Event::new(op, Arc::clone(stored), previous));
        let objects = resource.store.current().clone();
        for cache in resource.caches(None) {
            told.iter().for_each(|revision| cache.progress(*revision));
            cache.push(now, Arc::clone(&event), &objects);
        }
    }
}

fn address(kind: &'static Kind) -> usize {
    std::ptr::from_ref(kind).addr()
}
