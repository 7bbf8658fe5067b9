//! etcd's part for one resource: the current objects, and what undoes every write that is not compacted.
//!
//! Past snapshots are requested rarely, and then repeatedly, page by page: they are built by undoing writes, and the most
//! recent ones are kept. A snapshot is a clone of a persistent map, so it costs what changes after it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::object::Object;

/// Number of past snapshots kept.
const REMEMBERED_MAX: usize = 8;

/// Objects of a resource at one revision, in key order.
pub type Objects<O> = OrdMap<Arc<str>, Arc<O>>;

/// Objects of one resource and their history.
#[derive(Debug)]
pub(crate) struct Store<O> {
    current: Objects<O>,
    /// Oldest revision that can be rebuilt.
    since: u64,
    /// Undo entries of the writes after `since`, ascending.
    writes: VecDeque<Write<O>>,
    /// Bytes of objects that only `writes` holds.
    superseded: usize,
    /// Past snapshots by revision, the most recently used last. A cell, because reads fill it.
    remembered: RefCell<VecDeque<(u64, Objects<O>)>>,
    /// Number of keys that follow the most recent pages.
    behind: RefCell<VecDeque<(Mark, usize)>>,
}

/// End of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Revision of the snapshot.
    pub(crate) revision: u64,
    pub(crate) namespace: Option<String>,
    /// Start key of the next page.
    pub(crate) start: String,
}

/// Undo entry of one write.
#[derive(Debug)]
struct Write<O> {
    revision: u64,
    key: Arc<str>,
    before: Option<Arc<O>>,
}

impl<O: Object> Write<O> {
    fn weight(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.weight())
    }
}

impl<O: Object> Store<O> {
    /// Returns an empty store whose history begins at `revision`.
    pub(crate) fn new(revision: u64) -> Self {
        Self {
            current: Objects::new(),
            since: revision,
            writes: VecDeque::new(),
            superseded: 0,
            remembered: RefCell::new(VecDeque::new()),
            behind: RefCell::default(),
        }
    }

    pub(crate) fn current(&self) -> &Objects<O> {
        &self.current
    }

    /// Sets the objects before the first write, which has no history.
    pub(crate) fn preload(&mut self, objects: Objects<O>) {
        debug_assert!(self.writes.is_empty(), "preloaded before the first write");
        self.current = objects;
    }

    /// Makes the current objects those of `revision`, without history.
    pub(crate) fn begin_at(&mut self, revision: u64) {
        let objects = std::mem::take(&mut self.current);
        *self = Self {
            current: objects,
            ..Self::new(revision)
        };
    }

    /// Stores a version; returns the one before.
    pub(crate) fn put(&mut self, object: &Arc<O>, revision: u64) -> Option<Arc<O>> {
        let known = self.current.get_key_value(object.key());
        let key = known.map_or_else(|| Arc::from(object.key()), |(key, _)| Arc::clone(key));
        let before = self.current.insert(Arc::clone(&key), Arc::clone(object));
        self.wrote(revision, key, before.clone());
        before
    }

    /// Removes an object; returns its last version.
    pub(crate) fn remove(&mut self, key: &str, revision: u64) -> Option<Arc<O>> {
        let (key, before) = self.current.remove_with_key(key)?;
        self.wrote(revision, key, Some(Arc::clone(&before)));
        Some(before)
    }

    /// Returns the objects as of `revision`; `None` if it is compacted.
    pub(crate) fn at(&self, revision: u64) -> Option<Objects<O>> {
        if revision < self.since {
            return None;
        }
        let mut remembered = self.remembered.borrow_mut();
        if let Some(place) = remembered.iter().position(|(known, _)| *known == revision) {
            let found = remembered.remove(place)?;
            let objects = found.1.clone();
            remembered.push_back(found);
            return Some(objects);
        }
        let objects = self.undone(revision);
        if remembered.len() == REMEMBERED_MAX {
            remembered.pop_front();
        }
        remembered.push_back((revision, objects.clone()));
        Some(objects)
    }

    /// Drops the history before `revision`.
    pub(crate) fn compact(&mut self, revision: u64) {
        while let Some(write) = self.writes.front()
            && write.revision <= revision
        {
            self.superseded -= write.weight();
            self.writes.pop_front();
        }
        self.since = self.since.max(revision);
        self.remembered
            .borrow_mut()
            .retain(|(known, _)| *known >= revision);
    }

    /// Goes back to `revision`, which must not be compacted, and drops what came after it.
    pub(crate) fn rewind(&mut self, revision: u64) {
        self.current = self.undone(revision);
        self.writes.truncate(self.after(revision));
        self.superseded = self.writes.iter().map(Write::weight).sum();
        self.remembered.borrow_mut().clear();
        // The same revisions will denote other states.
        self.behind.borrow_mut().clear();
    }

    /// Returns the number of keys from `mark` on, if the page before it is remembered: counting at every page would cost
    /// more than the pages.
    pub(crate) fn behind(&self, mark: &Mark) -> Option<usize> {
        let behind = self.behind.borrow();
        let known = behind.iter().find(|(known, _)| known == mark);
        known.map(|(_, count)| *count)
    }

    /// Remembers that `count` keys follow from `mark` on.
    pub(crate) fn remember_behind(&self, mark: Mark, count: usize) {
        let mut behind = self.behind.borrow_mut();
        if behind.len() == REMEMBERED_MAX {
            behind.pop_front();
        }
        behind.push_back((mark, count));
    }

    /// Returns the bytes that dropping all history would free.
    pub(crate) fn superseded(&self) -> usize {
        self.superseded
    }

    fn wrote(&mut self, revision: u64, key: Arc<str>, before: Option<Arc<O>>) {
        let write = Write {
            revision,
            key,
            before,
        };
        self.superseded += write.weight();
        self.writes.push_back(write);
    }

    /// Returns the index of the first write after `revision`.
    fn after(&self, revision: u64) -> usize {
        self.writes.partition_point(|write| write.revision <= revision)
    }

    fn undone(&self, revision: u64) -> Objects<O> {
        let mut objects = self.current.clone();
        for write in self.writes.range(self.after(revision)..).rev() {
            match &write.before {
                Some(before) => drop(objects.insert(Arc::clone(&write.key), Arc::clone(before))),
                None => drop(objects.remove(&*write.key)),
            }
        }
        objects
    }
}

/// Returns the objects of `namespace` (of all, if `None`) whose key, relative to it, is not before `start`.
pub fn range<'a, O>(
    objects: &'a Objects<O>,
    namespace: Option<&str>,
    start: &str,
) -> impl Iterator<Item = &'a Arc<O>> {
    let (lower, upper) = match namespace {
        Some(namespace) => {
            // '0' is the byte after '/': the first key after the namespace.
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
        .map(|(_, object)| object)
}
