//! Operations on the store and on watch caches from outside: compaction, restart, freeze, lag, and restore from a backup.
//!
//! It must not know who requests them.

use std::time::Duration;

use apimachinery::status::Status;

use crate::cache::WatchCache;
use crate::object::Object;
use crate::storage::{Replica, Resource, ResourceId, Storage};

/// Operation on a watch cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchCacheOp {
    /// Relist: open watches end, and older starts are too old.
    Clear,
    /// Freeze: reads are stale, and watches receive nothing.
    Freeze,
    /// Lag: every write arrives with this delay.
    Lag(Duration),
    /// Thaw. If a write it missed is compacted, it relists, which ends its watches.
    Thaw,
}

/// Why the store cannot be restored to a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The revision is compacted.
    #[error("revision {to} is compacted (the oldest left is {oldest})")]
    Compacted {
        /// The requested revision.
        to: u64,
        /// The oldest revision that is not compacted.
        oldest: u64,
    },
    /// The revision is in the future.
    #[error("revision {to} is in the future (the store is at {current})")]
    Future {
        /// The requested revision.
        to: u64,
        /// The store's revision.
        current: u64,
    },
}

impl<O: Object, K> Storage<O, K> {
    /// Drops all history before the current revision, in the store and in every watch cache. Open watches continue.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
        tracing::debug!(revision = self.revision, "compacted");
        for resource in &mut self.resources {
            resource.store.compact(self.compacted);
            resource
                .caches_mut(None)
                .for_each(|cache| cache.evict_all(self.compacted));
        }
    }

    /// Drops all history before the current revision in the store alone, as a compaction of etcd does: older exact lists
    /// and continue tokens are too old, and so are watches of resources without a watch cache.
    pub fn compact_store(&mut self) {
        self.compact_store_to(self.revision);
    }

    /// The same for the history before `revision`, capped at the current one.
    pub fn compact_store_to(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        tracing::debug!(revision = self.compacted, "store compacted");
        // The apiserver records its compactions in etcd.
        self.revision += 1;
        for resource in &mut self.resources {
            resource.store.compact(self.compacted);
            if !resource.watch_cached {
                resource
                    .caches_mut(None)
                    .for_each(|cache| cache.evict_until(self.compacted));
            }
        }
    }

    /// Returns the approximate memory of all events so far, in bytes, dropped ones included. It only grows: the other sums
    /// here visit every resource, and are due only when this has grown.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Returns the approximate memory that dropping all history would free, in bytes.
    pub fn history_bytes(&self) -> usize {
        let of = |resource: &Resource<O, K>| {
            // Without a watch cache, events are dropped by compaction.
            let events = (!resource.watch_cached).then(|| resource.event_bytes());
            resource.store.superseded() + events.unwrap_or_default()
        };
        self.resources.iter().map(of).sum()
    }

    /// Returns the approximate memory of the events in the watch caches, in bytes.
    pub fn event_bytes(&self) -> usize {
        let cached = self.resources.iter().filter(|resource| resource.watch_cached);
        cached.map(Resource::event_bytes).sum()
    }

    /// Drops the oldest events from the watch caches until they take about `bytes`, each cache its share: a watch from
    /// before them is too old (410), and open watches that lag so far behind end.
    pub fn evict_events(&mut self, bytes: usize) {
        let all = self.event_bytes().max(1) as u128;
        for resource in self.resources.iter_mut().filter(|resource| resource.watch_cached) {
            for cache in resource.caches_mut(None) {
                let share = cache.bytes() as u128 * bytes as u128 / all;
                cache.evict_down_to(usize::try_from(share).unwrap_or(usize::MAX));
            }
        }
    }

    /// Refills every watch cache from a list at the current revision, as a restart of the apiserver does: all watches
    /// end, and older starts are too old. Without a watch cache, watches end and can resume from their last revision.
    pub fn restart_watch_caches(&mut self) {
        let revision = self.revision;
        tracing::debug!(revision, "watch caches restarted");
        for resource in &mut self.resources {
            if resource.watch_cached {
                resource.relist(revision);
            } else {
                resource.caches_mut(None).for_each(WatchCache::end_watches);
            }
        }
    }

    /// Starts the process of an apiserver again, or of all: its watches end, nothing is frozen, and its watch caches are
    /// filled at `filled`. Until then reads that need them are 429. Call [`Storage::follow`] at that time.
    pub fn restart(&mut self, now: Duration, replica: Option<Replica>, filled: Duration) {
        tracing::debug!(?replica, ?filled, "apiserver restarted");
        let all = (0..self.replicas()).map(Replica);
        for replica in all.filter(|one| replica.is_none_or(|replica| replica == *one)) {
            self.fill(replica);
            if filled > now {
                self.filling.insert(replica, (now, filled));
            } else {
                self.filling.remove(&replica);
            }
        }
    }

    /// Fills the watch caches of a replica from a list at the current revision.
    fn fill(&mut self, replica: Replica) {
        let revision = self.revision;
        for resource in &mut self.resources {
            let (objects, watch_cached) = (resource.store.current().clone(), resource.watch_cached);
            for cache in resource.caches_mut(Some(replica)) {
                if watch_cached {
                    cache.restart(revision, &objects);
                } else {
                    cache.end_watches();
                }
            }
        }
    }

    /// Returns the refusal of a request that needs a watch cache which is not filled yet.
    pub fn unready(&self, now: Duration, resource: ResourceId, replica: Replica) -> Option<Status> {
        let (since, _) = self
            .filling
            .get(&replica)
            .filter(|_| self.resource(resource).watch_cached)?;
        Some(Status::initializing(now.saturating_sub(*since)))
    }

    /// Applies the operation to the watch cache of a resource, or to all, of one replica or of all. Resources without a watch
    /// cache are unaffected.
    pub fn operate(
        &mut self,
        now: Duration,
        op: WatchCacheOp,
        resource: Option<ResourceId>,
        replica: Option<Replica>,
    ) {
        let lag = match op {
            WatchCacheOp::Lag(lag) => Some(lag),
            WatchCacheOp::Thaw => Some(Duration::ZERO),
            WatchCacheOp::Clear | WatchCacheOp::Freeze => None,
        };
        if let (Some(lag), None) = (lag, resource) {
            self.lags.set(replica, lag);
        }
        let (revision, compacted) = (self.revision, self.compacted);
        for id in self.ids() {
            let held = self.resource_mut(id);
            if !held.watch_cached || resource.is_some_and(|meant| meant != id) {
                continue;
            }
            let objects = held.store.current().clone();
            for cache in held.caches_mut(replica) {
                match op {
                    WatchCacheOp::Clear => cache.relist(revision, &objects),
                    WatchCacheOp::Freeze => cache.freeze(revision, &objects),
                    WatchCacheOp::Lag(lag) => cache.lag(now, lag),
                    WatchCacheOp::Thaw => cache.thaw(now, (revision, &objects), compacted),
                }
            }
        }
        let mut caches = self.resources.iter_mut().flat_map(|held| held.caches_mut(None));
        self.lags.any = caches.any(|cache| cache.lags());
    }

    /// Processes writes that are due at `now` in lagging watch caches, and fills those of apiservers that started. Call it before anything else at that time.
    /// Returns true if there were any.
    pub fn follow(&mut self, now: Duration) -> bool {
        let filled: Vec<Replica> = self
            .filling
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(replica, _)| *replica)
            .collect();
        for replica in &filled {
            self.filling.remove(replica);
            self.fill(*replica);
        }
        if !self.lags.any {
            return !filled.is_empty();
        }
        let caches = self.resources.iter_mut().flat_map(|held| held.caches_mut(None));
        caches.fold(!filled.is_empty(), |seen, cache| cache.see(now) | seen)
    }

    /// Returns when a lagging watch cache processes its next write, or the watch caches of an apiserver are filled.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let filled = self.filling.values().map(|(_, until)| *until).min();
        if !self.lags.any {
            return filled;
        }
        let caches = self.resources.iter().flat_map(Resource::caches);
        caches.filter_map(WatchCache::next_sight).chain(filled).min()
    }

    /// Refills the watch caches of one resource from a list at the current revision, as a server does when the definition of
    /// a custom resource changes: its watches end, and older starts are too old.
    pub fn relist(&mut self, resource: ResourceId) {
        let revision = self.revision;
        self.resource_mut(resource).relist(revision);
    }

    /// Restores the store to an earlier state and revision, as from a backup that is restored without raising the revision
    /// (kubernetes#107457); every watch cache relists, which ends all watches.
    ///
    /// # Errors
    /// If that revision is compacted or in the future.
    pub fn restore(&mut self, to_revision: u64) -> Result<(), RestoreError> {
        if to_revision > self.revision {
            return Err(RestoreError::Future {
                to: to_revision,
                current: self.revision,
            });
        }
        if to_revision < self.compacted {
            return Err(RestoreError::Compacted {
                to: to_revision,
                oldest: self.compacted,
            });
        }
        tracing::debug!(from = self.revision, to = to_revision, "restored");
        self.revision = to_revision;
        for resource in &mut self.resources {
            resource.store.rewind(to_revision);
            resource.relist(to_revision);
        }
        Ok(())
    }
}
