//! Watch cache of one resource: its events in order, the newest of which can be replayed.
//!
//! A watch cannot *start* from an event before the window, but an open watch still reads events before it, as a real
//! watcher drains its own queue. A watch that lags by more than [`LAG_MAX`] events is ended.
//!
//! A frozen or lagging cache answers from an older snapshot and keeps the events it has not processed yet.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::event::Event;
use crate::object::Object;
use crate::store::Objects;

/// Number of events by which an open watch may lag before it is ended. A real server has two queues of 10 to 1000 events
/// per watch and the socket's buffers; a test that stalls a reader on purpose lags by a few hundred.
const LAG_MAX: usize = 10_000;

/// Bytes of events before the window that are kept for lagging watches.
const LAG_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Watch cache of one resource.
#[derive(Debug)]
pub(crate) struct WatchCache<O, K> {
    log: VecDeque<Arc<Event<O, K>>>,
    /// Approximate memory of `log` in bytes.
    bytes: usize,
    /// Position of `log[0]`. Positions count all events ever.
    first: u64,
    /// Position of the oldest event from which a watch can start.
    window: u64,
    /// Position after the newest event that the cache has processed.
    visible: u64,
    /// Number of counted events in the window.
    capacity: usize,
    /// Do new events count?
    counts: bool,
    /// Positions of events that do not.
    uncounted: VecDeque<u64>,
    /// Revision of the last (re)list.
    listed: u64,
    /// Did an event leave the window since then?
    evicted: bool,
    /// Revision up to which the cache is current: that of its last event or list, or of etcd's last progress
    /// notification. A cell, because reads request progress.
    revision: Cell<u64>,
    /// Snapshot that it answers from, if it differs from the store's.
    behind: Option<Objects<O>>,
    /// Pending writes: the time, and the objects after it. The first is at `visible`.
    missed: VecDeque<(Duration, Objects<O>)>,
    /// Is it frozen?
    frozen: bool,
    /// Delay of each write.
    lag: Duration,
    /// Last position of each generation of watches: one entry per relist.
    generation_ends: Vec<u64>,
}

impl<O: Object, K> WatchCache<O, K> {
    /// Returns a cache listed at `revision`, with a window of `capacity` events and a delay of `lag`.
    pub(crate) fn new(revision: u64, capacity: usize, lag: Duration) -> Self {
        Self {
            log: VecDeque::new(),
            bytes: 0,
            first: 0,
            window: 0,
            visible: 0,
            capacity: capacity.max(1),
            counts: true,
            uncounted: VecDeque::new(),
            listed: revision,
            evicted: false,
            revision: Cell::new(revision),
            behind: None,
            missed: VecDeque::new(),
            frozen: false,
            lag,
            generation_ends: Vec::new(),
        }
    }

    /// Adds a write at `now` that left these `objects`.
    pub(crate) fn push(&mut self, now: Duration, event: Arc<Event<O, K>>, objects: &Objects<O>) {
        self.bytes += event.weight();
        if !self.counts {
            self.uncounted.push_back(self.end());
        }
        if self.frozen || !self.lag.is_zero() {
            self.behind.get_or_insert_with(|| before(&event, objects));
            self.missed.push_back((now, objects.clone()));
            self.log.push_back(event);
        } else {
            self.log.push_back(event);
            self.follow(self.end());
        }
    }

    /// Sets whether the next events count towards the capacity of the window.
    pub(crate) fn count_events(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Returns the revision up to which the cache is current.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// Handles etcd's progress notification for `revision`. A cache that is behind ignores it, because it arrives after the
    /// pending events.
    pub(crate) fn progress(&self, revision: u64) {
        if self.behind.is_none() {
            self.revision.set(self.revision.get().max(revision));
        }
    }

    /// Returns the snapshot the cache answers from, if it differs from the store's.
    pub(crate) fn behind(&self) -> Option<&Objects<O>> {
        self.behind.as_ref()
    }

    /// Freezes the cache at `revision`, or where it is.
    pub(crate) fn freeze(&mut self, revision: u64, objects: &Objects<O>) {
        self.progress(revision);
        self.behind.get_or_insert_with(|| objects.clone());
        self.frozen = true;
    }

    /// Sets the delay of each write.
    pub(crate) fn lag(&mut self, now: Duration, lag: Duration) {
        self.lag = lag;
        self.see(now);
    }

    /// Can it be behind the store?
    pub(crate) fn lags(&self) -> bool {
        !self.lag.is_zero()
    }

    /// Thaws the cache. If a write it missed is compacted (`compacted`), it can only relist at `revision`, as a real
    /// cache whose own watch on etcd is refused.
    pub(crate) fn thaw(&mut self, now: Duration, (revision, objects): (u64, &Objects<O>), compacted: u64) {
        let stood_still = std::mem::take(&mut self.frozen);
        if stood_still && self.revision() < compacted {
            self.relist(revision, objects);
        }
        self.lag(now, Duration::ZERO);
    }

    /// Processes what is due at `now`. Returns true if anything was.
    pub(crate) fn see(&mut self, now: Duration) -> bool {
        if self.frozen || self.behind.is_none() {
            return false;
        }
        let due = self.missed.partition_point(|(at, _)| *at + self.lag <= now);
        let seen = self.missed.drain(..due).next_back();
        if self.missed.is_empty() {
            self.behind = None;
            self.follow(self.end());
        } else if let Some((_, objects)) = seen {
            self.behind = Some(objects);
            self.follow(self.visible + due as u64);
        }
        due > 0
    }

    /// Returns when the next pending write is due, if it is a matter of time.
    pub(crate) fn next_sight(&self) -> Option<Duration> {
        let (at, _) = self.missed.front().filter(|_| !self.frozen)?;
        Some(*at + self.lag)
    }

    /// Refills the cache from a list of `objects` at `revision`: every watch ends after the events the cache already had.
    pub(crate) fn relist(&mut self, revision: u64, objects: &Objects<O>) {
        self.end_watches();
        self.behind = self.frozen.then(|| objects.clone());
        self.missed.clear();
        self.forget(revision);
    }

    /// Refills the cache as that of a new process: it is not frozen.
    pub(crate) fn restart(&mut self, revision: u64, objects: &Objects<O>) {
        self.frozen = false;
        self.relist(revision, objects);
    }

    /// Ends every open watch after the events the cache has now.
    pub(crate) fn end_watches(&mut self) {
        self.generation_ends.push(self.visible);
    }

    /// Drops events up to `revision` from the window; open watches continue.
    pub(crate) fn evict_all(&mut self, revision: u64) {
        if self.behind.is_some() {
            self.listed = revision;
            self.window = self.visible;
            self.evicted = false;
        } else {
            self.forget(revision);
        }
    }

    /// Drops the events of `revision` and before from the window; open watches continue.
    pub(crate) fn evict_until(&mut self, revision: u64) {
        self.window = self.position_after(revision);
        self.listed = self.listed.max(revision);
        self.evicted = false;
        self.trim();
    }

    /// Returns the approximate memory of its events in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps about `bytes` of the newest events: a watch cannot start from older ones, and an open watch that needs them is
    /// ended. The newest event stays.
    pub(crate) fn evict_down_to(&mut self, bytes: usize) {
        while self.bytes > bytes && self.first + 1 < self.visible {
            self.drop_oldest();
        }
        if self.window < self.first {
            self.window = self.first;
            self.evicted = true;
        }
    }

    /// Returns the oldest revision from which a watch can start.
    pub(crate) fn oldest_start(&self) -> u64 {
        match self.event(self.window) {
            Some(event) if self.evicted => event.revision() - 1,
            Some(_) | None => self.listed,
        }
    }

    /// Returns the generation of a watch that is opened now.
    pub(crate) fn generation(&self) -> usize {
        self.generation_ends.len()
    }

    /// Returns the position at which watches of this generation end, if they do.
    pub(crate) fn end_of(&self, generation: usize) -> Option<u64> {
        self.generation_ends.get(generation).copied()
    }

    /// Returns the position of the first event after `revision` that can be replayed.
    pub(crate) fn position_after(&self, revision: u64) -> u64 {
        // Revisions ascend within the window; before it they may not, because a restored store reuses revisions.
        let (mut low, mut high) = (self.window, self.visible);
        while low < high {
            let middle = low + (high - low) / 2;
            if self
                .event(middle)
                .is_some_and(|event| event.revision() <= revision)
            {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the position after the newest event that the cache has processed.
    pub(crate) fn visible(&self) -> u64 {
        self.visible
    }

    /// Returns the event at a position; `None` if it was dropped or is yet to come.
    pub(crate) fn event(&self, position: u64) -> Option<&Arc<Event<O, K>>> {
        let index = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.log.get(index)
    }

    /// Does an open watch at `position` need events that were dropped?
    pub(crate) fn overran(&self, position: u64) -> bool {
        position < self.first
    }

    fn end(&self) -> u64 {
        self.first + self.log.len() as u64
    }

    /// Forgets the uncounted events before the window, and returns the number of those in it.
    fn uncounted_in_window(&mut self) -> u64 {
        while self
            .uncounted
            .front()
            .is_some_and(|position| *position < self.window)
        {
            self.uncounted.pop_front();
        }
        self.uncounted
            .partition_point(|position| *position < self.visible) as u64
    }

    /// Sets the position up to which everything is processed.
    fn follow(&mut self, visible: u64) {
        let last = visible.checked_sub(1).and_then(|last| self.event(last));
        let revision = last.map_or(0, |last| last.revision());
        self.visible = visible;
        self.revision.set(self.revision.get().max(revision));
        let capacity = self.capacity as u64;
        while self.visible - self.window - self.uncounted_in_window() > capacity {
            self.window += 1;
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
        while (self.log.len() > LAG_MAX || self.bytes > LAG_BYTES_MAX) && self.first < self.window {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.log.pop_front() {
            self.bytes -= event.weight();
            self.first += 1;
        }
    }
}

/// Returns the objects before a write that left these.
fn before<O: Object, K>(event: &Event<O, K>, after: &Objects<O>) -> Objects<O> {
    let mut objects = after.clone();
    match event.previous() {
        Some(previous) => drop(objects.insert(previous.key().into(), Arc::clone(previous))),
        None => drop(objects.remove(event.object().key())),
    }
    objects
}
