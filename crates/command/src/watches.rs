//! The open watches of a running server, computed from its trace: whose they are, the version that each was sent, and how far
//! that is behind. It must not know HTTP, the server, or how a view is drawn.
//!
//! Records are read when somebody looks, not when they are made: a server that nobody watches does nothing for it. What was
//! trimmed from the trace by then is taken from the open responses.
//!
//! A watch is *behind* by the changes of its collection that were made after the version it was last sent. Before an upstream
//! the changes are those that any watch of the collection was sent. A selector hides changes, so that it is not known for
//! watches with one.
//!
//! Memory is bounded: by the open watches that are tracked, and a fixed number of changes for each watched collection.

mod asked;
mod changes;
mod rate;
mod view;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apimachinery::path::{decoded_path, query_pairs};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{
    ConnId, ConnectionRecord, ExchangeRecord, Frame, FrameType, Group, Record, Replica, StoreRecord,
    StreamId, Verb,
};
use fake_apiserver::server::StreamView;
use serde::Serialize;

pub(crate) use self::asked::{Asked, Filter, plural};
use self::asked::{Requests, cut};
use self::changes::{Changes, Scope};
use self::rate::Rate;
use self::view::WatchesView;

/// Verbs of a watch.
const WATCHES: [Verb; 2] = [Verb::Watch, Verb::WatchList];

/// Maximum number of watches that are tracked; further ones are counted.
const WATCHES_MAX: usize = 20_000;

/// Records taken at a time: the server does not run meanwhile.
const TAKEN_AT_ONCE: usize = 20_000;

/// The watches of a server, shared by the requests of the control API.
#[derive(Clone)]
pub(crate) struct Watches(Arc<Mutex<Tracker>>);

/// State of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// No response head was sent yet.
    Waiting,
    /// Events are sent.
    Open,
    /// Nothing is sent any more, and the connection is open.
    Stalled,
}

/// The version up to which a watch was sent all changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// This one.
    At(u64),
    /// What it was sent was missed.
    Unknown,
    /// A selector hides changes from it.
    Hidden,
}

impl Watches {
    /// Returns a tracker. `forwards`: an upstream answers, so that changes are seen as events only.
    pub(crate) fn new(forwards: bool) -> Self {
        let tracker = Tracker {
            forwards,
            ..Tracker::default()
        };
        Self(Arc::new(Mutex::new(tracker)))
    }

    /// Takes those of the kept records that it has not taken. Returns whether there are more.
    pub(crate) fn hear(&self, records: &[Record]) -> bool {
        let mut tracker = self.lock();
        if records.first().is_some_and(|first| first.seq > tracker.next) {
            tracker.missed = true;
        }
        let new = &records[records.partition_point(|record| record.seq < tracker.next)..];
        let taken = &new[..new.len().min(TAKEN_AT_ONCE)];
        for record in taken {
            tracker.take(record);
        }
        taken.len() < new.len()
    }

    /// Whether records were trimmed before they were taken, since the last [`Watches::reconcile`].
    pub(crate) fn missed(&self) -> bool {
        self.lock().missed
    }

    /// Corrects the watches by the open responses, after records were missed.
    pub(crate) fn reconcile(&self, now: Duration, streams: &[StreamView]) {
        self.lock().reconcile(now, streams);
    }

    /// Returns at most `limit` of the watches that `filter` lets pass. `ambiguous`: plurals that several groups serve, of which
    /// a write does not say which it was.
    pub(crate) fn view(
        &self,
        now: Duration,
        filter: &Filter,
        limit: usize,
        ambiguous: &BTreeSet<String>,
    ) -> WatchesView {
        self.lock().view(now, filter, limit, ambiguous)
    }

    /// Calls `read` with what is known of requests, after the kept `records`, or most of them, were taken.
    pub(crate) fn known<T>(&self, records: &[Record], read: impl FnOnce(&Known<'_>) -> T) -> T {
        self.hear(records);
        read(&Known {
            tracker: &self.lock(),
            records,
            found: RefCell::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Tracker> {
        // A panic leaves at most one record half taken.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of requests.
pub(crate) struct Known<'t> {
    tracker: &'t Tracker,
    records: &'t [Record],
    found: RefCell<BTreeMap<StreamId, Option<Rc<Asked>>>>,
}

impl Known<'_> {
    /// Returns who sent a request.
    pub(crate) fn asked(&self, stream: StreamId) -> Option<Rc<Asked>> {
        let mut found = self.found.borrow_mut();
        found.entry(stream).or_insert_with(|| self.find(stream)).clone()
    }

    fn find(&self, stream: StreamId) -> Option<Rc<Asked>> {
        if let Some(watch) = self.tracker.open.get(&stream) {
            return Some(Rc::new(watch.asked.clone()));
        }
        self.tracker.requests.find(stream, self.records).map(Rc::new)
    }

    /// Returns the number of the first record that was not taken.
    pub(crate) fn next(&self) -> u64 {
        self.tracker.next
    }
}

#[derive(Default)]
struct Tracker {
    forwards: bool,
    /// Number of the first record that was not taken.
    next: u64,
    open: BTreeMap<StreamId, Watch>,
    by_connection: BTreeSet<(ConnId, StreamId)>,
    /// Open watches that are not tracked.
    untracked: BTreeMap<StreamId, ConnId>,
    changes: Changes,
    requests: Requests,
    /// Whether records were trimmed before they were taken.
    missed: bool,
}

struct Watch {
    asked: Asked,
    scope: Scope,
    conn: ConnId,
    replica: Replica,
    opened: Duration,
    state: State,
    /// Last version sent, or requested; as text for display.
    shown: String,
    position: Position,
    events: u64,
    rate: Rate,
    last_event: Option<Duration>,
    last_bookmark: Option<Duration>,
}

impl Tracker {
    fn take(&mut self, record: &Record) {
        self.next = record.seq + 1;
        let at = record.at;
        match record.what.group() {
            Group::Connection(ConnectionRecord::Disconnected { conn, .. }) => {
                let of = (*conn, StreamId(0))..=(*conn, StreamId(u64::MAX));
                let on = self.by_connection.range(of).map(|(_, stream)| *stream);
                for stream in on.collect::<Vec<StreamId>>() {
                    self.close(stream);
                }
            }
            Group::Exchange(ExchangeRecord::Request {
                stream,
                conn,
                verb,
                path,
                query,
                user_agent,
                replica,
                ..
            }) => {
                self.requests.note(*stream, record.seq);
                if WATCHES.contains(verb) {
                    let asked = Asked::of(path, user_agent.as_deref());
                    self.request(*stream, *conn, *replica, at, asked, query);
                }
            }
            Group::Exchange(ExchangeRecord::Head { stream, .. }) => self.turn(*stream, State::Open),
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => self.frame(*stream, at, frame),
            Group::Exchange(ExchangeRecord::End { stream, how, .. }) => match how {
                Ending::Stall => self.turn(*stream, State::Stalled),
                Ending::Eof
                | Ending::Fin
                | Ending::Rst
                | Ending::NoCloseNotify
                | Ending::RstStream(_)
                | Ending::Goaway(_) => self.close(*stream),
            },
            Group::Store(StoreRecord::Wrote(write)) => {
                let object = &write.object;
                self.changes
                    .note(at, &write.resource, &object.key, &object.resource_version);
            }
            Group::Store(StoreRecord::Restored { to }) => self.restore(*to),
            Group::Connection(
                ConnectionRecord::Connected { .. }
                | ConnectionRecord::Goaway { .. }
                | ConnectionRecord::Refused,
            )
            | Group::Exchange(
                ExchangeRecord::Page { .. }
                | ExchangeRecord::Body { .. }
                | ExchangeRecord::Torn { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(StoreRecord::Turned { .. })
            | Group::Script(_)
            | Group::Run(_) => {}
        }
    }

    fn turn(&mut self, stream: StreamId, state: State) {
        if let Some(watch) = self.open.get_mut(&stream) {
            watch.state = state;
        }
    }

    fn restore(&mut self, to: u64) {
        self.changes.restore(to);
        for watch in self.open.values_mut() {
            if let Position::At(version) = &mut watch.position {
                *version = (*version).min(to);
            }
        }
    }

    /// Adds a watch.
    fn request(
        &mut self,
        stream: StreamId,
        conn: ConnId,
        replica: Replica,
        at: Duration,
        asked: Asked,
        query: &[(String, String)],
    ) {
        self.by_connection.insert((conn, stream));
        if self.open.len() >= WATCHES_MAX {
            self.untracked.insert(stream, conn);
            return;
        }
        let value = |name: &str| {
            let mut all = query.iter();
            all.find(|(own, value)| own == name && !value.is_empty())
                .map(|(_, value)| value.as_str())
        };
        let shown = value("resourceVersion").unwrap_or_default();
        let scope = (Arc::from(plural(&asked.resource)), asked.namespace.clone());
        self.changes.watch(&scope);
        let is_selective = value("labelSelector")
            .or_else(|| value("fieldSelector"))
            .is_some();
        // Without a version, the initial events show the state at this time.
        let version = shown.parse().ok().filter(|version| *version > 0);
        let version = version.unwrap_or(self.changes.newest);
        let watch = Watch {
            scope,
            conn,
            replica,
            opened: at,
            state: State::Waiting,
            shown: cut(shown),
            position: if is_selective {
                Position::Hidden
            } else {
                Position::At(version)
            },
            events: 0,
            rate: Rate::default(),
            last_event: None,
            last_bookmark: None,
            asked,
        };
        self.open.insert(stream, watch);
    }

    fn frame(&mut self, stream: StreamId, at: Duration, frame: &Frame) {
        let Some(watch) = self.open.get_mut(&stream) else {
            return;
        };
        watch.events += 1;
        watch.rate.count(at);
        watch.last_event = Some(at);
        if matches!(frame.kind, FrameType::Bookmark { .. }) {
            watch.last_bookmark = Some(at);
        }
        let Some(object) = frame.object.as_deref().filter(|_| frame.whole()) else {
            return;
        };
        let Ok(version) = object.resource_version.parse::<u64>() else {
            return;
        };
        watch.shown.clone_from(&object.resource_version);
        watch.position = match watch.position {
            Position::At(before) => Position::At(before.max(version)),
            Position::Unknown => Position::At(version),
            Position::Hidden => Position::Hidden,
        };
        if self.forwards && frame.kind.is_change() && !frame.scripted {
            self.changes
                .note(at, &watch.scope.0, &object.key, &object.resource_version);
        }
    }

    /// Adds the open watches whose requests were missed, and removes those whose ends were.
    fn reconcile(&mut self, now: Duration, streams: &[StreamView]) {
        self.missed = false;
        let open: BTreeSet<StreamId> = streams.iter().map(|stream| stream.stream).collect();
        let tracked: Vec<StreamId> = self.open.keys().chain(self.untracked.keys()).copied().collect();
        for gone in tracked.into_iter().filter(|stream| !open.contains(stream)) {
            self.close(gone);
        }
        for view in streams {
            let is_watch = WATCHES.iter().any(|verb| verb.word() == view.verb);
            if !is_watch {
                continue;
            }
            if !self.open.contains_key(&view.stream) {
                // There may be room for it now.
                self.untracked.remove(&view.stream);
                let (path, query) = view.target.split_once('?').unwrap_or((&view.target, ""));
                let asked = Asked::of(&decoded_path(path), view.user_agent.as_deref());
                let opened = now.saturating_sub(Duration::from_millis(view.open_ms));
                let query = query_pairs(query);
                self.request(view.stream, view.connection, view.replica, opened, asked, &query);
            }
            if let Some(watch) = self.open.get_mut(&view.stream) {
                watch.was_missed();
            }
        }
    }

    fn close(&mut self, stream: StreamId) {
        if let Some(conn) = self.untracked.remove(&stream) {
            self.by_connection.remove(&(conn, stream));
        }
        let Some(watch) = self.open.remove(&stream) else {
            return;
        };
        self.by_connection.remove(&(watch.conn, stream));
        self.changes.unwatch(&watch.scope);
    }
}

impl Watch {
    /// Forgets what the records told that may not be so any more: some were missed.
    fn was_missed(&mut self) {
        if let Position::At(_) = self.position {
            self.position = Position::Unknown;
        }
        if self.state == State::Waiting {
            self.state = State::Open;
        }
    }
}

#[cfg(test)]
mod tests;
