//! etcd's part for one resource: the current objects, and what undoes every write that is not compacted.
//!
//! Past snapshots are requested rarely, and then repeatedly, page by page: they are built by undoing writes, and the most
//! recent ones are kept. A snapshot is a clone of a persistent map, so it costs what changes after it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use apimachinery::object::Stored;
use imbl::OrdMap;

/// Number of past snapshots kept.
const REMEMBERED_MAX: usize = 8;

/// Objects of a resource at one revision, in key order.
pub(super) type Objects = OrdMap<Arc<str>, Arc<Stored>>;

/// Objects of one resource and their history.
#[derive(Debug)]
pub(super) struct Store {
    current: Objects,
    /// Oldest revision that can be rebuilt.
    since: u64,
    /// Undo entries of the writes after `since`, ascending.
    writes: VecDeque<Write>,
    /// Bytes of objects that only `writes` holds.
    superseded: usize,
    /// Past snapshots by revision, the most recently used last. A cell, because reads fill it.
    remembered: RefCell<VecDeque<(u64, Objects)>>,
    /// Number of keys that follow the most recent pages.
    behind: RefCell<VecDeque<(Mark, usize)>>,
}

/// End of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Revision of the snapshot.
    pub(super) revision: u64,
    pub(super) namespace: Option<String>,
    /// Start key of the next page.
    pub(super) start: String,
}

/// Undo entry of one write.
#[derive(Debug)]
struct Write {
    revision: u64,
    key: Arc<str>,
    before: Option<Arc<Stored>>,
}

impl Write {
    fn weight(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.weight())
    }
}

impl Store {
    /// Returns an empty store whose history begins at `revision`.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            current: Objects::new(),
            since: revision,
            writes: VecDeque::new(),
            superseded: 0,
            remembered: RefCell::default(),
            behind: RefCell::default(),
        }
    }

    pub(super) fn current(&self) -> &Objects {
        &self.current
    }

    pub(super) fn put(&mut self, stored: &Arc<Stored>) {
        let known = self.current.get_key_value(stored.key.as_str());
        let key = known.map_or_else(|| Arc::from(stored.key.as_str()), |(key, _)| Arc::clone(key));
        let before = self.current.insert(Arc::clone(&key), Arc::clone(stored));
        self.wrote(stored.revision, key, before);
    }

    pub(super) fn remove(&mut self, key: &str, revision: u64) {
        if let Some((key, before)) = self.current.remove_with_key(key) {
            self.wrote(revision, key, Some(before));
        }
    }

    /// Returns the objects as of `revision`; `None` if it is compacted.
    pub(super) fn at(&self, revision: u64) -> Option<Objects> {
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
    pub(super) fn compact(&mut self, revision: u64) {
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
    pub(super) fn rewind(&mut self, revision: u64) {
        self.current = self.undone(revision);
        self.writes.truncate(self.after(revision));
        self.superseded = self.writes.iter().map(Write::weight).sum();
        self.remembered.borrow_mut().clear();
        // The same revisions will denote other states.
        self.behind.borrow_mut().clear();
    }

    /// Returns the number of keys from `mark` on, if the page before it is remembered: counting at every page would cost
    /// more than the pages.
    pub(super) fn behind(&self, mark: &Mark) -> Option<usize> {
        let behind = self.behind.borrow();
        let known = behind.iter().find(|(known, _)| known == mark);
        known.map(|(_, count)| *count)
    }

    /// Remembers that `count` keys follow from `mark` on.
    pub(super) fn remember_behind(&self, mark: Mark, count: usize) {
        let mut behind = self.behind.borrow_mut();
        if behind.len() == REMEMBERED_MAX {
            behind.pop_front();
        }
        behind.push_back((mark, count));
    }

    /// Returns the bytes that dropping all history would free.
    pub(super) fn superseded(&self) -> usize {
        self.superseded
    }

    fn wrote(&mut self, revision: u64, key: Arc<str>, before: Option<Arc<Stored>>) {
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

    fn undone(&self, revision: u64) -> Objects {
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
pub(super) fn range<'a>(
    objects: &'a Objects,
    namespace: Option<&str>,
    start: &str,
) -> impl Iterator<Item = &'a Arc<Stored>> {
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
        .map(|(_, stored)| stored)
}
