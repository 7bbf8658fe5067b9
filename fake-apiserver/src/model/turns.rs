//! What is done to the store and to watch caches from outside: compaction, restarts, caches that stop or go on, and
//! backups that are restored.
//!
//! It must not know who does it, or why.

use std::collections::BTreeMap;
use std::time::Duration;

use trace::record::Door;

use super::watch_cache::WatchCache;
use super::{Model, Resource};

/// What is done to a watch cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchCacheOp {
    /// It relists: its open watches end, older starts are too old.
    Clear,
    /// It stops following the store: what is read from it is stale, and watches are still.
    Freeze,
    /// It follows the store, but sees every write so much later.
    Lag(Duration),
    /// It follows at once again. If what it missed is compacted, it relists, which ends its watches.
    Thaw,
}

/// How late watch caches see what is written.
#[derive(Debug, Default)]
pub(super) struct Lags {
    /// Of resources that come later: as was said of all at a door.
    by_door: BTreeMap<Door, Duration>,
    /// Is any cache late?
    any: bool,
}

impl Lags {
    pub(super) fn of(&self, door: Door) -> Duration {
        self.by_door.get(&door).copied().unwrap_or_default()
    }
}

/// Why the store cannot go back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The revision is compacted.
    #[error("revision {to} is compacted (the oldest left is {oldest})")]
    Compacted {
        /// Where to.
        to: u64,
        /// The oldest revision left.
        oldest: u64,
    },
    /// The revision is not written yet.
    #[error("revision {to} is in the future (the store is at {current})")]
    Future {
        /// Where to.
        to: u64,
        /// The store's revision.
        current: u64,
    },
}

impl Model {
    /// Forgets all history before the current revision, in the store and in every watch cache. Open watches go on.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
        tracing::debug!(revision = self.revision, "compacted");
        for resource in &mut self.resources {
            resource.store.compact(self.compacted);
            resource
                .caches(None)
                .for_each(|cache| cache.evict_all(self.compacted));
        }
    }

    /// Forgets all history before the current revision in the store alone, as etcd does when it is compacted: exact
    /// lists and continue tokens of before are too old, and so are watches where there is no watch cache.
    pub fn compact_store(&mut self) {
        self.compact_store_to(self.revision);
    }

    /// The same for the history before `revision`, as far as it is written yet.
    pub fn compact_store_to(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        tracing::debug!(revision = self.compacted, "store compacted");
        // The apiserver writes down what it compacted.
        self.revision += 1;
        for resource in &mut self.resources {
            resource.store.compact(self.compacted);
            if !resource.watch_cached {
                resource
                    .caches(None)
                    .for_each(|cache| cache.evict_until(self.compacted));
            }
        }
    }

    /// About how many bytes of memory would be free if all history were forgotten.
    pub fn history_bytes(&self) -> usize {
        let of = |resource: &Resource| {
            // Without a watch cache it is compaction that lets events go.
            let events = (!resource.watch_cached).then(|| resource.event_bytes());
            resource.store.superseded() + events.unwrap_or_default()
        };
        self.resources.iter().map(of).sum()
    }

    /// About how many bytes of memory the events in the watch caches take.
    pub fn event_bytes(&self) -> usize {
        let cached = self.resources.iter().filter(|resource| resource.watch_cached);
        cached.map(Resource::event_bytes).sum()
    }

    /// Lets the oldest events leave the watch caches until they take about so many `bytes`, each cache its share: what
    /// they can no longer replay is too old for them (410), and watches that are so far behind end.
    pub fn evict_events(&mut self, bytes: usize) {
        let all = self.event_bytes().max(1) as u128;
        for resource in self.resources.iter_mut().filter(|resource| resource.watch_cached) {
            for cache in resource.caches(None) {
                let share = cache.bytes() as u128 * bytes as u128 / all;
                cache.evict_down_to(usize::try_from(share).unwrap_or(usize::MAX));
            }
        }
    }

    /// Every watch cache is refilled from a list at the current revision, as when the apiserver restarts: all watches
    /// end, and older starts are too old. Where there is no watch cache, watches end and can go on from where they
    /// were.
    pub fn restart_watch_caches(&mut self) {
        let revision = self.revision;
        tracing::debug!(revision, "watch caches restarted");
        for resource in &mut self.resources {
            if resource.watch_cached {
                resource.relist(revision);
            } else {
                resource.caches(None).for_each(WatchCache::end_watches);
            }
        }
    }

    /// Turns the watch cache of a resource, or of all; nothing where there is no watch cache. Those of one door, or of
    /// both.
    pub fn turn_watch_caches(
        &mut self,
        now: Duration,
        turn: WatchCacheOp,
        resource: Option<(&str, &str)>,
        door: Option<Door>,
    ) {
        let lag = match turn {
            WatchCacheOp::Lag(lag) => Some(lag),
            WatchCacheOp::Thaw => Some(Duration::ZERO),
            WatchCacheOp::Clear | WatchCacheOp::Freeze => None,
        };
        if let (Some(lag), None) = (lag, resource) {
            let doors = [Door::A, Door::B].into_iter();
            let meant = doors.filter(|at| door.is_none_or(|door| door == *at));
            self.lags.by_door.extend(meant.map(|door| (door, lag)));
        }
        let (revision, compacted) = (self.revision, self.compacted);
        for (stored, place) in &self.places {
            let held = &mut self.resources[place.0];
            if !held.watch_cached || resource.is_some_and(|meant| meant != *stored) {
                continue;
            }
            let objects = held.store.current().clone();
            for cache in held.caches(door) {
                match turn {
                    WatchCacheOp::Clear => cache.relist(revision, &objects),
                    WatchCacheOp::Freeze => cache.freeze(revision, &objects),
                    WatchCacheOp::Lag(lag) => cache.lag(now, lag),
                    WatchCacheOp::Thaw => cache.thaw(now, (revision, &objects), compacted),
                }
            }
        }
        let mut caches = self.resources.iter_mut().flat_map(|held| held.caches(None));
        self.lags.any = caches.any(|cache| cache.lags());
    }

    /// Lets watch caches that lag see what is due at `now`: to be called before anything else is done at that time. True
    /// if one saw something.
    pub fn follow(&mut self, now: Duration) -> bool {
        if !self.lags.any {
            return false;
        }
        let caches = self.resources.iter_mut().flat_map(|held| held.caches(None));
        caches.fold(false, |seen, cache| cache.see(now) | seen)
    }

    /// When a watch cache that lags will see something more.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if !self.lags.any {
            return None;
        }
        let resources = self.resources.iter();
        let caches = resources.flat_map(|held| [Some(&held.cache), held.twin.as_ref()]);
        caches.flatten().filter_map(WatchCache::next_sight).min()
    }

    /// The store goes back to an earlier state and revision, as from a backup that was restored without raising the
    /// revision (kubernetes#107457); every watch cache relists, which ends all watches.
    ///
    /// # Errors
    /// When that state is not there: compacted, or not written yet.
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
