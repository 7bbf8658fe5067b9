//! What etcd keeps of one resource: the objects now, and what they were at every revision that is not compacted.
//!
//! A snapshot is a clone of a persistent map, so keeping one for every write costs no more than the write.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::object::Stored;

/// The objects of a resource at one moment, in key order.
pub(super) type Objects = OrdMap<Arc<str>, Arc<Stored>>;

/// One resource's objects and their history.
#[derive(Debug)]
pub(super) struct Store {
    current: Objects,
    /// Revision of each write to this resource and what it left, ascending; the first one may be older than the
    /// compacted revision, because it is what the objects still were at it.
    history: Vec<(u64, Objects)>,
}

impl Store {
    /// Empty since `revision`.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            current: Objects::new(),
            history: vec![(revision, Objects::new())],
        }
    }

    pub(super) fn current(&self) -> &Objects {
        &self.current
    }

    pub(super) fn put(&mut self, stored: &Arc<Stored>) {
        self.current
            .insert(Arc::from(stored.key.as_str()), Arc::clone(stored));
        self.history.push((stored.revision, self.current.clone()));
    }

    pub(super) fn remove(&mut self, key: &str, revision: u64) {
        self.current.remove(key);
        self.history.push((revision, self.current.clone()));
    }

    /// The objects as of `revision`; `None` when nothing so old is kept.
    pub(super) fn at(&self, revision: u64) -> Option<&Objects> {
        let after = self.history.partition_point(|(written, _)| *written <= revision);
        let (_, objects) = self.history.get(after.checked_sub(1)?)?;
        Some(objects)
    }

    /// Forgets what was before `revision`.
    pub(super) fn compact(&mut self, revision: u64) {
        let after = self.history.partition_point(|(written, _)| *written <= revision);
        self.history.drain(..after.saturating_sub(1));
    }

    /// Goes back to `revision`, which must still be kept, and forgets what was after it.
    pub(super) fn rewind(&mut self, revision: u64) {
        let after = self.history.partition_point(|(written, _)| *written <= revision);
        self.history.truncate(after);
        self.current = self
            .history
            .last()
            .map(|(_, objects)| objects.clone())
            .unwrap_or_default();
    }
}

/// The objects of `namespace` (of all, if `None`) whose key, relative to it, is not before `start`.
pub(super) fn range<'a>(
    objects: &'a Objects,
    namespace: Option<&str>,
    start: &str,
) -> impl Iterator<Item = &'a Arc<Stored>> {
    let (lower, upper) = match namespace {
        Some(namespace) => {
            // '0' is the byte after '/': the first key behind all of the namespace.
            (
                format!("{namespace}/{start}"),
                Bound::Excluded(format!("{namespace}0")),
            )
        }
        None => (start.to_owned(), Bound::Unbounded),
    };
    let upper = upper.as_ref().map(String::as_str);
    objects
        .range::<_, str>((Bound::Included(lower.as_str()), upper))
        .map(|(_, stored)| stored)
}
