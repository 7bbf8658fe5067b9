//! What changed in a set, told with what it was before.

use std::sync::Arc;

/// One change of a [`Store`](super::Store)'s set. When it is told, the store has it already.
///
/// client-go's `OnAdd`, `OnUpdate` and `OnDelete` (with `DeletedFinalStateUnknown`) are these.
#[derive(Debug, PartialEq, Eq)]
pub enum Delta<K> {
    /// An object came into the set.
    Added(Arc<K>),
    /// An object changed.
    Modified {
        /// What it was.
        old: Arc<K>,
        /// What it is.
        new: Arc<K>,
    },
    /// An object left the set: deleted, or no longer selected.
    Deleted {
        /// The last state that is known of it. Of an inferred delete: the last that was seen, not its final one.
        last: Arc<K>,
        /// No event told of it: a relist did without it, or another object came under its name.
        inferred: bool,
    },
}

impl<K> Delta<K> {
    /// The object: as it is, or as it was last known.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Added(object) | Self::Modified { new: object, .. } | Self::Deleted { last: object, .. } => {
                object
            }
        }
    }

    /// Did the object leave the set?
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
