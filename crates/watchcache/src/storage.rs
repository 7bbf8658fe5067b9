//! The storage: etcd with its one revision, and above each resource the watch cache of every apiserver.
//!
//! It must not know how a request chooses what it reads: that is `list` and `watch`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cache::WatchCache;
use crate::event::Event;
use crate::object::Object;
use crate::store::{Objects, Store};

/// Settings of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Revision at the start; the first write gets the next one. Default 1, as in etcd.
    pub revision: u64,
    /// Number of events from which a watch of a resource can start. Default 100.
    pub watch_cache_capacity: usize,
    /// Time between periodic bookmarks, at least 1 ms. Default 1 min.
    pub bookmark_interval: Duration,
    /// Does etcd notify idle watch caches of writes to other resources? Without it, bookmarks and reads at
    /// `resourceVersion=0` show the last revision the cache had reason to learn. Default true.
    pub progress_notify: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            revision: 1,
            watch_cache_capacity: 100,
            bookmark_interval: Duration::from_secs(60),
            progress_notify: true,
        }
    }
}

/// One resource of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId(usize);

/// One of the apiservers on the same etcd, by number. Each has its own watch caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica(pub usize);

impl Replica {
    /// The first apiserver, which always exists.
    pub const FIRST: Self = Self(0);
}

/// An etcd, and the watch caches of the apiservers on it. `K` is what the caller keeps with each event.
#[derive(Debug)]
pub struct Storage<O, K = ()> {
    pub(crate) revision: u64,
    /// Weight of all events so far, dropped ones included.
    pub(crate) written_bytes: u64,
    /// Oldest revision that is not compacted.
    pub(crate) compacted: u64,
    pub(crate) bookmark_interval: Duration,
    pub(crate) progress_notify: bool,
    watch_cache_capacity: usize,
    /// In the order of registration; never removed.
    pub(crate) resources: Vec<Resource<O, K>>,
    /// Number of apiservers.
    replicas: usize,
    pub(crate) lags: Lags,
    /// Apiservers that started and whose watch caches are not filled yet: since when, and until when.
    pub(crate) filling: BTreeMap<Replica, (Duration, Duration)>,
}

/// Objects and events of one resource.
#[derive(Debug)]
pub(crate) struct Resource<O, K> {
    /// Its name in logs.
    pub(crate) name: Cow<'static, str>,
    pub(crate) watch_cached: bool,
    pub(crate) store: Store<O>,
    first: WatchCache<O, K>,
    /// Watch caches of the other apiservers.
    others: Vec<WatchCache<O, K>>,
}

/// Delays of watch caches that are added later.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    everywhere: Duration,
    /// Delay of a replica, where it differs.
    by_replica: BTreeMap<Replica, Duration>,
    /// Does any cache lag?
    pub(crate) any: bool,
}

impl Lags {
    fn of(&self, replica: Replica) -> Duration {
        let own = self.by_replica.get(&replica);
        own.copied().unwrap_or(self.everywhere)
    }

    /// Sets the delay of one replica, or of all.
    pub(crate) fn set(&mut self, replica: Option<Replica>, lag: Duration) {
        match replica {
            Some(replica) => drop(self.by_replica.insert(replica, lag)),
            None => {
                self.everywhere = lag;
                self.by_replica.clear();
            }
        }
    }
}

impl<O: Object, K> Resource<O, K> {
    /// Returns the watch cache of a replica; of the first, if there is no such replica.
    pub(crate) fn cache(&self, replica: Replica) -> &WatchCache<O, K> {
        let other = replica.0.checked_sub(1).and_then(|nth| self.others.get(nth));
        other.unwrap_or(&self.first)
    }

    /// Returns all watch caches, in the order of the replicas.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &WatchCache<O, K>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the watch caches of `replica`, or of all.
    pub(crate) fn caches_mut(
        &mut self,
        replica: Option<Replica>,
    ) -> impl Iterator<Item = &mut WatchCache<O, K>> {
        let caches = std::iter::once(&mut self.first).chain(&mut self.others);
        let numbered = caches.enumerate();
        numbered
            .filter(move |(nth, _)| replica.is_none_or(|replica| replica.0 == *nth))
            .map(|(_, cache)| cache)
    }

    /// Returns the approximate memory of the watch caches' events, in bytes.
    pub(crate) fn event_bytes(&self) -> usize {
        self.caches().map(WatchCache::bytes).sum()
    }

    /// Refills the watch caches from a list at `revision`.
    pub(crate) fn relist(&mut self, revision: u64) {
        let objects = self.store.current().clone();
        self.caches_mut(None)
            .for_each(|cache| cache.relist(revision, &objects));
    }
}

impl<O: Object, K> Storage<O, K> {
    /// Returns an empty storage with one apiserver.
    pub fn new(settings: &Settings) -> Self {
        Self {
            revision: settings.revision,
            written_bytes: 0,
            compacted: settings.revision,
            bookmark_interval: settings.bookmark_interval.max(Duration::from_millis(1)),
            progress_notify: settings.progress_notify,
            watch_cache_capacity: settings.watch_cache_capacity,
            resources: Vec::new(),
            replicas: 1,
            lags: Lags::default(),
            filling: BTreeMap::new(),
        }
    }

    /// Reserves memory for as many more resources.
    pub fn reserve_resources(&mut self, more: usize) {
        self.resources.reserve(more);
    }

    /// Adds a resource; `name` appears in logs. A real server has no watch cache for Events, and reads them from etcd.
    pub fn add_resource(&mut self, name: impl Into<Cow<'static, str>>, watch_cached: bool) -> ResourceId {
        let new = |replica| {
            let lag = self.lags.of(Replica(replica));
            WatchCache::new(self.revision, self.capacity(watch_cached), lag)
        };
        let resource = Resource {
            name: name.into(),
            watch_cached,
            store: Store::new(self.revision),
            first: new(0),
            others: (1..self.replicas).map(new).collect(),
        };
        self.resources.push(resource);
        ResourceId(self.resources.len() - 1)
    }

    /// Adds an apiserver, whose watch caches begin at the current revision.
    pub fn add_replica(&mut self) -> Replica {
        let replica = Replica(self.replicas);
        self.replicas += 1;
        let (revision, lag) = (self.revision, self.lags.of(replica));
        for nth in 0..self.resources.len() {
            let capacity = self.capacity(self.resources[nth].watch_cached);
            let cache = WatchCache::new(revision, capacity, lag);
            self.resources[nth].others.push(cache);
        }
        replica
    }

    /// Sets whether the next events of a resource count towards the capacity of its watch caches' windows; default true.
    pub fn count_events(&mut self, resource: ResourceId, counts: bool) {
        let resource = self.resource_mut(resource);
        resource.first.count_events(counts);
        resource
            .others
            .iter_mut()
            .for_each(|cache| cache.count_events(counts));
    }

    /// Number of apiservers.
    pub fn replicas(&self) -> usize {
        self.replicas
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
    pub fn oldest_watchable(&self, resource: ResourceId) -> u64 {
        let resource = self.resource(resource);
        if resource.watch_cached {
            resource.cache(Replica::FIRST).oldest_start()
        } else {
            self.compacted
        }
    }

    /// Returns the current objects in etcd, in key order.
    pub fn current(&self, resource: ResourceId) -> &Objects<O> {
        self.resource(resource).store.current()
    }

    /// Returns the objects as of `revision`, in key order; `None` if that revision is compacted.
    pub fn at(&self, resource: ResourceId, revision: u64) -> Option<Objects<O>> {
        self.resource(resource).store.at(revision)
    }

    pub(crate) fn resource(&self, resource: ResourceId) -> &Resource<O, K> {
        &self.resources[resource.0]
    }

    pub(crate) fn resource_mut(&mut self, resource: ResourceId) -> &mut Resource<O, K> {
        &mut self.resources[resource.0]
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = ResourceId> + use<O, K> {
        (0..self.resources.len()).map(ResourceId)
    }

    /// Returns the revision and the objects that reads from the watch cache see; without one, those of etcd.
    pub(crate) fn cached<'a>(
        &'a self,
        resource: &'a Resource<O, K>,
        replica: Replica,
    ) -> (u64, &'a Objects<O>) {
        let cache = resource.cache(replica);
        match cache.behind() {
            _ if !resource.watch_cached => (self.revision, resource.store.current()),
            Some(objects) => (cache.revision(), objects),
            None if self.progress_notify => (self.revision, resource.store.current()),
            None => (cache.revision(), resource.store.current()),
        }
    }

    /// Requests `revision` of the watch cache: a cache that is behind asks etcd for its revision (a progress request),
    /// and so learns of writes to other resources. Returns the revision that the cache has reached.
    pub(crate) fn catch_up(&self, resource: &Resource<O, K>, replica: Replica, revision: u64) -> u64 {
        let cache = resource.cache(replica);
        if self.cached(resource, replica).0 < revision {
            cache.progress(self.revision);
        }
        self.cached(resource, replica).0
    }

    fn capacity(&self, watch_cached: bool) -> usize {
        // Without a watch cache, etcd has all events since compaction.
        if watch_cached {
            self.watch_cache_capacity
        } else {
            usize::MAX
        }
    }
}

impl<O: Object, K> Storage<O, K> {
    /// Makes the current objects the state of `revision`, as if they were written before it: no event and no history is kept, and
    /// reads and watches from `oldest` on see them. `oldest` is not above `revision`, nor is the revision of any object. For a
    /// storage that nobody has read.
    pub fn begin_at(&mut self, oldest: u64, revision: u64) {
        self.revision = revision;
        self.compacted = oldest;
        self.written_bytes = 0;
        for nth in 0..self.resources.len() {
            let capacity = self.capacity(self.resources[nth].watch_cached);
            let resource = &mut self.resources[nth];
            resource.store.begin_at(oldest);
            for cache in resource.caches_mut(None) {
                *cache = WatchCache::new(oldest, capacity, Duration::ZERO);
                cache.progress(revision);
            }
        }
    }

    /// Sets the objects that a resource has before its first write, as if they were written before the revision at the
    /// start: no event is kept, and no revision is used. Their revisions must not be above the current one.
    pub fn preload(&mut self, resource: ResourceId, objects: Objects<O>) {
        self.resource_mut(resource).store.preload(objects);
    }
}

impl<O: Object, K: Default> Storage<O, K> {
    /// Creates or replaces an object at `now`. `make` receives the revision of the write. Watches that are due to see it
    /// have to be polled.
    pub fn put(&mut self, now: Duration, resource: ResourceId, make: impl FnOnce(u64) -> O) -> Arc<O> {
        let revision = self.revision + 1;
        let object = Arc::new(make(revision));
        let previous = self.resource_mut(resource).store.put(&object, revision);
        self.commit(
            now,
            resource,
            Event::new(revision, Arc::clone(&object), previous, false),
        );
        object
    }

    /// Deletes the object with the key of `last`; returns `last` at the revision of the delete, which is what watches
    /// receive. `None`: there is no object of this key, and no revision is used.
    pub fn delete(&mut self, now: Duration, resource: ResourceId, last: &O) -> Option<Arc<O>> {
        let revision = self.revision + 1;
        let previous = self.resource_mut(resource).store.remove(last.key(), revision)?;
        let object = Arc::new(last.at_revision(revision));
        self.commit(
            now,
            resource,
            Event::new(revision, Arc::clone(&object), Some(previous), true),
        );
        Some(object)
    }

    /// Passes a write to the watch caches.
    fn commit(&mut self, now: Duration, resource: ResourceId, event: Event<O, K>) {
        let revision = event.revision();
        self.revision = revision;
        self.written_bytes += event.weight() as u64;
        let progress = self.progress_notify.then_some(revision - 1);
        let resource = self.resource_mut(resource);
        let event = Arc::new(event);
        let objects = resource.store.current().clone();
        for cache in resource.caches_mut(None) {
            progress.iter().for_each(|revision| cache.progress(*revision));
            cache.push(now, Arc::clone(&event), &objects);
        }
    }
}
