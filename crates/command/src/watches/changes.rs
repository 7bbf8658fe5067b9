//! The changes of the collections that are watched: a fixed number of the newest for each. It must not know who watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Changes that are kept of a watched collection: a watch that is further behind is behind by more than this.
pub(super) const CHANGES_MAX: usize = 100;

/// Plural and namespace; `None`: all namespaces.
pub(super) type Scope = (Arc<str>, Option<Arc<str>>);

#[derive(Default)]
pub(super) struct Changes {
    /// The newest version written or sent.
    pub(super) newest: u64,
    pub(super) watched: BTreeMap<Scope, Watched>,
}

/// A collection that is watched.
#[derive(Default)]
pub(super) struct Watched {
    /// Number of its watches.
    watches: usize,
    /// By version.
    pub(super) changes: VecDeque<Change>,
}

pub(super) struct Change {
    version: u64,
    at: Duration,
}

impl Changes {
    /// Adds a watch of a collection.
    pub(super) fn watch(&mut self, scope: &Scope) {
        self.watched.entry(scope.clone()).or_default().watches += 1;
    }

    /// Removes one, and with the last one its collection.
    pub(super) fn unwatch(&mut self, scope: &Scope) {
        if let Some(watched) = self.watched.get_mut(scope) {
            watched.watches -= 1;
            if watched.watches == 0 {
                self.watched.remove(scope);
            }
        }
    }

    /// Notes a change of an object, unless it is older than one that is known.
    pub(super) fn note(&mut self, at: Duration, plural: &str, key: &str, version: &str) {
        let Ok(version) = version.parse::<u64>() else {
            return;
        };
        self.newest = self.newest.max(version);
        let namespace = key.split_once('/').map(|(namespace, _)| Arc::from(namespace));
        let scopes = [Some(None), namespace.map(Some)];
        for namespace in scopes.into_iter().flatten() {
            let Some(Watched { changes, .. }) = self.watched.get_mut(&(Arc::from(plural), namespace)) else {
                continue;
            };
            if changes.back().is_some_and(|last| last.version >= version) {
                continue;
            }
            if changes.len() > CHANGES_MAX {
                changes.pop_front();
            }
            changes.push_back(Change { version, at });
        }
    }

    /// Forgets the changes that a restore undoes.
    pub(super) fn restore(&mut self, to: u64) {
        self.newest = to;
        for Watched { changes, .. } in self.watched.values_mut() {
            changes.retain(|change| change.version <= to);
        }
    }

    /// Returns the number of changes after a version, and the time of the oldest of them.
    pub(super) fn after(&self, scope: &Scope, version: u64) -> Option<(usize, Option<Duration>)> {
        let changes = &self.watched.get(scope)?.changes;
        let first = changes.partition_point(|change| change.version <= version);
        Some((changes.len() - first, changes.get(first).map(|change| change.at)))
    }
}
