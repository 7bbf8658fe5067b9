//! Changes of a store, with old and new state.

use std::sync::Arc;

/// A change of a [`Store`](super::Store). The store is updated before the delta is delivered.
///
/// Corresponds to client-go's `OnAdd`, `OnUpdate` and `OnDelete` (with `DeletedFinalStateUnknown`).
#[derive(Debug, PartialEq, Eq)]
pub enum Delta<K> {
    /// An object was added.
    Added(Arc<K>),
    /// An object changed.
    Modified {
        /// The previous state.
        old: Arc<K>,
        /// The new state.
        new: Arc<K>,
    },
    /// An object was removed: deleted, or no longer selected.
    Deleted {
        /// The last known state. For an inferred delete this is the last state seen, not the final one.
        last: Arc<K>,
        /// There was no DELETED event: the object was missing from a relist, or was replaced by another of the same
        /// name.
        inferred: bool,
    },
}

impl<K> Delta<K> {
    /// Returns the current object, or the last known state of a deleted one.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Modified { new: object, .. } | Self::Deleted { last: object, .. } => {
                object
            }
        }
    }

    /// Returns true if the object was removed.
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(object) => Self::Added(Arc::clone(object)),
            Self::Modified { old, new } => Self::Modified {
                old: Arc::clone(old),
                new: Arc::clone(new),
            },
            Self::Deleted { last, inferred } => Self::Deleted {
                last: Arc::clone(last),
                inferred: *inferred,
            },
        }
    }
}
