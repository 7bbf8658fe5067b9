//! How far a watcher has come, for those who look at it from outside.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// A view of how far one watcher has come; from [`Watcher::progress`](crate::Watcher::progress). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    synced: Arc<Mutex<Option<Synced>>>,
}

/// The consumer of a watcher has been told everything up to here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The set told is the server's at this resourceVersion.
    pub resource_version: String,
    /// When the server was last heard: `at.elapsed()` is for how long it has been silent, and how old the set may be.
    pub at: Instant,
}

impl Progress {
    /// Up to where everything was told; `None` before the first set was told whole. While a set is read anew, this is
    /// where the last one stood.
    pub fn synced(&self) -> Option<Synced> {
        self.lock().clone()
    }

    /// Does anybody look?
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
        // Nothing panics while it is held.
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
