//! The watch cache of one resource: its events in order, of which the newest can still be replayed.
//!
//! An event that left the window can no longer be *started* from, but a watch that is already open reads on behind the
//! window, as a real watcher drains its own queue. A watch that falls further behind than [`LAG_MAX`] events is
//! ended.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::api::{Form, MetaVersion};
use crate::record::{ObjectRef, WriteOp};

use super::catalog::Kind;
use super::object::Stored;
use super::store::Objects;

/// Events an open watch may lag behind before it is ended. A real server gives a watch two queues of 10 to 1000 events
/// and the socket's buffers; a test that stalls a reader on purpose must be able to lag by a few hundred.
const LAG_MAX: usize = 10_000;

/// One write, as watches see it.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) revision: u64,
    pub(super) op: WriteOp,
    /// The new version; for a delete the last one, under the revision of the delete.
    pub(super) object: Arc<Stored>,
    pub(super) previous: Option<Arc<Stored>>,
    departed: OnceLock<Arc<Stored>>,
    object_ref: OnceLock<Arc<ObjectRef>>,
    lines: [OnceLock<Bytes>; 6],
}

/// What a write is to one watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Event {
    pub(super) fn new(op: WriteOp, object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Self {
        Self {
            revision: object.revision,
            op,
            object,
            previous,
            departed: OnceLock::new(),
            object_ref: OnceLock::new(),
            lines: Default::default(),
        }
    }

    /// The event as another kind than the object's own shows it; `None`: as it is.
    pub(super) fn as_kind(&self, kind: &'static Kind) -> Option<Self> {
        (self.object.kind != kind).then(|| {
            let previous = self.previous.as_ref().map(|previous| previous.as_kind(kind));
            Self::new(self.op, self.object.as_kind(kind), previous)
        })
    }

    /// The object this event shows to a watch for which it is `change`: whoever loses sight of an object is shown what
    /// it last saw, under the revision of the write.
    pub(super) fn shown(&self, change: Change) -> &Arc<Stored> {
        match (change, self.op, &self.previous) {
            (Change::Deleted, WriteOp::Update, Some(previous)) => self
                .departed
                .get_or_init(|| Arc::new(previous.at_revision(self.revision))),
            (Change::Deleted | Change::Added | Change::Modified, _, _) => &self.object,
        }
    }

    /// Whom it concerns, in the version of the write: the same whatever it is to a watch.
    pub(super) fn object_ref(&self) -> &Arc<ObjectRef> {
        self.object_ref.get_or_init(|| Arc::new(self.object.object_ref()))
    }

    /// The line that shows it, made once; `None` for a form in which it is another for every watch.
    pub(super) fn line(&self, change: Change, form: Form) -> Option<Bytes> {
        let column = match form {
            Form::Full => 0,
            Form::Metadata(MetaVersion::V1) => 1,
            Form::Metadata(MetaVersion::V1beta1) | Form::Table(_) => return None,
        };
        let made = self.lines[change as usize * 2 + column]
            .get_or_init(|| line(change.word(), &self.shown(change).encoded(form)));
        Some(made.clone())
    }
}

/// One line of a watch stream.
pub(super) fn line(word: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + word.len() + 24);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(word.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

/// The watch cache.
#[derive(Debug)]
pub(super) struct WatchCache {
    log: VecDeque<Arc<Event>>,
    /// Position of `log[0]`; positions count all events ever.
    first: u64,
    /// Position of the oldest event a watch can start from.
    window: u64,
    /// Position after the newest event the cache has seen.
    visible: u64,
    capacity: usize,
    /// The revision of the last (re)list.
    listed: u64,
    /// Did an event leave the window since then?
    evicted: bool,
    /// The revision the cache knows it has seen everything up to: that of its last event or list, or what etcd told it
    /// when it asked. Asking is part of reading, hence the cell.
    revision: Cell<u64>,
    /// The state the cache stopped at, while it does not follow the store.
    frozen: Option<(u64, Objects)>,
    /// Where each generation of watches ended: one entry a relist.
    generation_ends: Vec<u64>,
}

impl WatchCache {
    /// Listed at `revision`. `capacity` events can be replayed.
    pub(super) fn new(revision: u64, capacity: usize) -> Self {
        Self {
            log: VecDeque::new(),
            first: 0,
            window: 0,
            visible: 0,
            capacity: capacity.max(1),
            listed: revision,
            evicted: false,
            revision: Cell::new(revision),
            frozen: None,
            generation_ends: Vec::new(),
        }
    }

    /// Takes in a write.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.log.push_back(event);
        if self.frozen.is_none() {
            self.follow();
        }
    }

    /// Everything up to this revision has been seen.
    pub(super) fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// etcd says that there is nothing more up to `revision`.
    pub(super) fn progress(&self, revision: u64) {
        self.revision.set(self.revision.get().max(revision));
    }

    /// The state the cache answers from, if it is not the store's.
    pub(super) fn frozen(&self) -> Option<&(u64, Objects)> {
        self.frozen.as_ref()
    }

    pub(super) fn freeze(&mut self, revision: u64, objects: Objects) {
        if self.frozen.is_none() {
            self.frozen = Some((revision, objects));
        }
    }

    /// Follows the store again. If what it missed is compacted (`compacted`), it can only relist at `revision`, as a
    /// real cache does when its own watch on etcd is refused.
    pub(super) fn thaw(&mut self, revision: u64, compacted: u64) {
        match self.frozen.take() {
            Some((stopped, _)) if stopped < compacted => self.relist(revision),
            Some(_) => self.follow(),
            None => {}
        }
    }

    /// Starts anew from a list at `revision`: every watch ends once it has what the cache already had.
    pub(super) fn relist(&mut self, revision: u64) {
        self.end_watches();
        self.forget(revision);
    }

    /// Every open watch ends once it has what is there by now.
    pub(super) fn end_watches(&mut self) {
        self.generation_ends.push(self.visible);
    }

    /// Everything up to `revision` can no longer be started from; open watches go on.
    pub(super) fn evict_all(&mut self, revision: u64) {
        if self.frozen.is_some() {
            self.listed = revision;
            self.window = self.visible;
            self.evicted = false;
        } else {
            self.forget(revision);
        }
    }

    /// The events of `revision` and before can no longer be started from; open watches go on.
    pub(super) fn evict_until(&mut self, revision: u64) {
        self.window = self.position_after(revision);
        self.listed = self.listed.max(revision);
        self.evicted = false;
        self.trim();
    }

    /// While frozen, sets where.
    pub(super) fn refreeze(&mut self, revision: u64, objects: Objects) {
        if self.frozen.is_some() {
            self.frozen = Some((revision, objects));
        }
    }

    /// The oldest revision a watch can start from.
    pub(super) fn oldest_start(&self) -> u64 {
        match self.event(self.window) {
            Some(event) if self.evicted => event.revision - 1,
            Some(_) | None => self.listed,
        }
    }

    /// The generation a watch opened now belongs to.
    pub(super) fn generation(&self) -> usize {
        self.generation_ends.len()
    }

    /// Where a watch of this generation ends, if it must.
    pub(super) fn end_of(&self, generation: usize) -> Option<u64> {
        self.generation_ends.get(generation).copied()
    }

    /// Position of the first event after `revision` that can still be replayed.
    pub(super) fn position_after(&self, revision: u64) -> u64 {
        // Revisions ascend within the window; before it they may not, because a restored store counts anew.
        let (mut low, mut high) = (self.window, self.visible);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.event(middle).is_some_and(|event| event.revision <= revision) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Position after the newest event the cache has seen.
    pub(super) fn visible(&self) -> u64 {
        self.visible
    }

    /// The event at a position; `None` when it is forgotten or not there yet.
    pub(super) fn event(&self, position: u64) -> Option<&Arc<Event>> {
        let index = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.log.get(index)
    }

    /// Is an open watch at `position` so far behind that its events are gone?
    pub(super) fn overran(&self, position: u64) -> bool {
        position < self.first
    }

    fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    fn follow(&mut self) {
        self.visible = self.end();
        if let Some(last) = self.log.back() {
            self.progress(last.revision);
        }
        let capacity = self.capacity as u64;
        if self.visible - self.window > capacity {
            self.window = self.visible - capacity;
            self.evicted = true;
        }
        self.trim();
    }

    fn forget(&mut self, revision: u64) {
        self.visible = self.end();
        self.window = self.visible;
        self.listed = revision;
        self.revision.set(revision);
        self.evicted = false;
        self.trim();
    }

    fn trim(&mut self) {
        while self.log.len() > LAG_MAX && self.first < self.window {
            self.log.pop_front();
            self.first += 1;
        }
    }
}
