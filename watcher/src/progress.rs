//! Progress of a watcher, for observers other than its consumer.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Handle to the progress of one watcher, from [`Watcher::progress`](crate::Watcher::progress). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    synced: Arc<Mutex<Option<Synced>>>,
}

/// The point up to which the consumer has received all events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// resourceVersion at which the emitted objects equal the server's.
    pub resource_version: String,
    /// When bytes last arrived: `at.elapsed()` is how long the server has been silent, and how stale the objects may
    /// be.
    pub at: Instant,
}

impl Progress {
    /// Returns the point up to which all events were delivered; `None` before the first complete snapshot. During a
    /// relist this is the point of the previous snapshot.
    pub fn synced(&self) -> Option<Synced> {
        self.lock().clone()
    }

    /// Returns true if another handle exists.
    pub(crate) fn is_watched(&self) -> bool {
        Arc::strong_count(&self.synced) > 1
    }

    pub(crate) fn set(&self, resource_version: &str, at: Instant) {
        let mut synced = self.lock();
        match &mut *synced {
            Some(synced) => {
                synced.at = at;
                if synced.resource_version != resource_version {
                    synced.resource_version.clear();
                    synced.resource_version.push_str(resource_version);
                }
            }
            None => {
                *synced = Some(Synced {
                    resource_version: resource_version.to_owned(),
                    at,
                });
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Synced>> {
        // Nothing panics while the lock is held.
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
