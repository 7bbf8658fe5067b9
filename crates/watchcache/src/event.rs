//! One write, as watches see it. It must not know which watch reads it.

use std::sync::{Arc, OnceLock};

use crate::object::Object;

/// A write. All watches of a resource share it.
#[derive(Debug)]
pub struct Event<O, K = ()> {
    revision: u64,
    object: Arc<O>,
    previous: Option<Arc<O>>,
    deleted: bool,
    departed: OnceLock<Arc<O>>,
    kept: K,
}

/// Effect of a write on one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new, or the selector matches it now.
    Added,
    /// The selector matched before and still does.
    Modified,
    /// The object is deleted, or the selector no longer matches it.
    Deleted,
}

impl Change {
    /// The event type on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// Returns the change that a watch sees whose selector matched `before` and matches `after`; `None`: it sees none.
    pub fn of(before: bool, after: bool) -> Option<Self> {
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Self::Added),
            (true, true) => Some(Self::Modified),
            (true, false) => Some(Self::Deleted),
        }
    }
}

impl<O: Object, K: Default> Event<O, K> {
    pub(crate) fn new(revision: u64, object: Arc<O>, previous: Option<Arc<O>>, deleted: bool) -> Self {
        Self {
            revision,
            object,
            previous,
            deleted,
            departed: OnceLock::new(),
            kept: K::default(),
        }
    }
}

impl<O: Object, K> Event<O, K> {
    /// Revision of the write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// New version; for a delete the last one, at the revision of the delete.
    pub fn object(&self) -> &Arc<O> {
        &self.object
    }

    /// Version before the write.
    pub fn previous(&self) -> Option<&Arc<O>> {
        self.previous.as_ref()
    }

    /// Is it a delete?
    pub fn is_delete(&self) -> bool {
        self.deleted
    }

    /// What the caller keeps beside the event, made once for all watches: encoded lines, for example.
    pub fn kept(&self) -> &K {
        &self.kept
    }

    /// Returns the object that this event carries for `change`: a watch whose selector no longer matches receives the last
    /// version it saw, at the revision of the write.
    pub fn shown(&self, change: Change) -> &Arc<O> {
        match (change, self.deleted, &self.previous) {
            (Change::Deleted, false, Some(previous)) => self
                .departed
                .get_or_init(|| Arc::new(previous.at_revision(self.revision))),
            (Change::Deleted | Change::Added | Change::Modified, _, _) => &self.object,
        }
    }

    /// Returns its approximate memory in bytes: the object, and an encoded line.
    pub(crate) fn weight(&self) -> usize {
        2 * self.object.weight()
    }
}
