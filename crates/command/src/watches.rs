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

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apimachinery::path::{ResourcePath, decoded_path, query_pairs};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{ConnId, Frame, FrameType, Record, Replica, StreamId, Verb, What};
use fake_apiserver::server::StreamView;
use serde::Serialize;

/// Maximum number of watches that are tracked; further ones are counted.
const WATCHES_MAX: usize = 20_000;

/// Maximum number of requests whose records are found: the newest.
const REQUESTS_MAX: usize = 20_000;

/// Changes that are kept of a watched collection: a watch that is further behind is behind by more than this.
const CHANGES_MAX: usize = 100;

/// Maximum length of a client's name, in characters.
const CLIENT_MAX: usize = 200;

/// Maximum number of names in a view, of clients and of resources.
const NAMES_MAX: usize = 200;

/// Time by which a watch may be behind in normal operation.
const NORMAL_LAG: Duration = Duration::from_secs(1);

/// Records taken at a time: the server does not run meanwhile.
const TAKEN_AT_ONCE: usize = 20_000;

/// Seconds over which a rate is averaged.
const RATE_SECONDS: u64 = 4;

/// The watches of a server, shared by the requests of the control API.
#[derive(Clone)]
pub(crate) struct Watches(Arc<Mutex<Tracker>>);

/// Who sent a request, for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// User-Agent; empty without one.
    pub(crate) client: Arc<str>,
    /// `pods`, `deployments.apps`; empty if the path is not that of a resource.
    pub(crate) resource: Arc<str>,
    /// Namespace of the path.
    namespace: Option<Arc<str>>,
}

/// Which watches, or records, to return: all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Part of the User-Agent.
    pub(crate) client: Option<String>,
    /// Resource: `pods`, `deployments.apps`.
    pub(crate) resource: Option<String>,
}

impl Filter {
    /// Whether it lets everything pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_none() && self.resource.is_none()
    }

    /// Whether a request passes.
    pub(crate) fn fits(&self, asked: &Asked) -> bool {
        self.client
            .as_ref()
            .is_none_or(|part| asked.client.contains(part.as_str()))
            && self
                .resource
                .as_ref()
                .is_none_or(|resource| *resource == *asked.resource)
    }
}

/// The watches at a time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchesView {
    /// Time since the start of the server, in milliseconds.
    now_ms: u64,
    /// Number of open watches.
    open: usize,
    /// Of these, those that the filter lets pass.
    matched: usize,
    /// Of those, the ones that are behind for more than a second.
    behind: usize,
    /// Of those, the ones on which nothing is sent any more.
    stalled: usize,
    /// Events sent to them in a second.
    events_per_second: u64,
    /// Names of clients with open watches.
    clients: Vec<Arc<str>>,
    /// Resources with open watches.
    resources: Vec<Arc<str>>,
    /// The watches: those that are stalled or behind first.
    watches: Vec<WatchView>,
}

/// An open watch.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchView {
    stream: u64,
    connection: u64,
    replica: Replica,
    client: Arc<str>,
    resource: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Arc<str>>,
    state: State,
    /// Whether it has a selector.
    selective: bool,
    /// Last version sent, or requested.
    resource_version: String,
    /// Changes after that version; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<usize>,
    /// Age of the oldest of them, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_ms: Option<u64>,
    events: u64,
    events_per_second: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_bookmark_ms: Option<u64>,
    open_ms: u64,
}

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
        let requests = &self.tracker.requests;
        let nth = requests
            .binary_search_by_key(&stream, |(stream, _)| *stream)
            .ok()?;
        let seq = requests[nth].1;
        let at = self
            .records
            .binary_search_by_key(&seq, |record| record.seq)
            .ok()?;
        if let What::Request { path, user_agent, .. } = &self.records[at].what {
            return Some(Rc::new(asked(path, user_agent.as_deref())));
        }
        None
    }

    /// Returns the number of the first record that was not taken.
    pub(crate) fn next(&self) -> u64 {
        self.tracker.next
    }
}

/// Plural and namespace; `None`: all namespaces.
type Scope = (Arc<str>, Option<Arc<str>>);

#[derive(Default)]
struct Tracker {
    forwards: bool,
    /// Number of the first record that was not taken.
    next: u64,
    /// The newest version written or sent.
    newest: u64,
    open: BTreeMap<StreamId, Watch>,
    by_connection: BTreeSet<(ConnId, StreamId)>,
    /// Open watches that are not tracked.
    untracked: BTreeMap<StreamId, ConnId>,
    /// Changes of each collection that is watched, and the number of its watches.
    changes: BTreeMap<Scope, (usize, VecDeque<Change>)>,
    /// Numbers of the records of the newest requests.
    requests: VecDeque<(StreamId, u64)>,
    /// Whether records were trimmed before they were taken.
    missed: bool,
}

struct Change {
    version: u64,
    at: Duration,
}

struct Watch {
    asked: Asked,
    scope: Scope,
    conn: ConnId,
    replica: Replica,
    opened: Duration,
    state: State,
    selective: bool,
    /// Last version sent, or requested; as text for display.
    shown: String,
    /// Version up to which all changes were sent.
    version: u64,
    /// Whether that version is known.
    is_known: bool,
    events: u64,
    rate: Rate,
    last_event: Option<Duration>,
    last_bookmark: Option<Duration>,
}

/// Events in each of the last seconds.
#[derive(Default)]
struct Rate {
    /// Second of the newest count.
    second: u64,
    counts: [u32; RATE_SECONDS as usize + 1],
}

impl Rate {
    fn count(&mut self, at: Duration) {
        self.advance(at.as_secs());
        self.counts[(self.second % self.counts.len() as u64) as usize] += 1;
    }

    fn advance(&mut self, second: u64) {
        let slots = self.counts.len() as u64;
        for passed in self.second + 1..=second.min(self.second + slots) {
            self.counts[(passed % slots) as usize] = 0;
        }
        self.second = self.second.max(second);
    }

    /// Sum over the last complete seconds.
    fn sum(&self, now: Duration) -> u64 {
        let slots = self.counts.len() as u64;
        let second = now.as_secs();
        (second.saturating_sub(RATE_SECONDS)..second)
            .filter(|past| *past <= self.second && past + slots > self.second)
            .map(|past| u64::from(self.counts[(past % slots) as usize]))
            .sum()
    }
}

impl Tracker {
    fn take(&mut self, record: &Record) {
        self.next = record.seq + 1;
        let at = record.at;
        let what = &record.what;
        if let What::Request { stream, .. } = what {
            self.note(*stream, record.seq);
            self.request(*stream, at, what);
        } else if let What::Head { stream, .. } = what {
            self.turn(*stream, State::Open);
        } else if let What::Frame { stream, frame } = what {
            self.frame(*stream, at, frame);
        } else if let What::End { stream, how, .. } = what {
            match how {
                Ending::Stall => self.turn(*stream, State::Stalled),
                Ending::Eof
                | Ending::Fin
                | Ending::Rst
                | Ending::NoCloseNotify
                | Ending::RstStream(_)
                | Ending::Goaway(_) => self.close(*stream),
            }
        } else if let What::Disconnected { conn, .. } = what {
            let of = (*conn, StreamId(0))..=(*conn, StreamId(u64::MAX));
            let on = self.by_connection.range(of).map(|(_, stream)| *stream);
            for stream in on.collect::<Vec<StreamId>>() {
                self.close(stream);
            }
        } else if let What::Wrote(write) = what {
            self.changed(
                at,
                &write.resource,
                &write.object.key,
                &write.object.resource_version,
            );
        } else if let What::Restored { to } = what {
            self.restore(*to);
        }
    }

    fn turn(&mut self, stream: StreamId, state: State) {
        if let Some(watch) = self.open.get_mut(&stream) {
            watch.state = state;
        }
    }

    /// Forgets the changes that a restore undoes.
    fn restore(&mut self, to: u64) {
        self.newest = to;
        for (_, changes) in self.changes.values_mut() {
            changes.retain(|change| change.version <= to);
        }
        for watch in self.open.values_mut() {
            watch.version = watch.version.min(to);
        }
    }

    fn note(&mut self, stream: StreamId, seq: u64) {
        if self.requests.len() >= REQUESTS_MAX {
            self.requests.pop_front();
        }
        let at = self.requests.partition_point(|(earlier, _)| *earlier < stream);
        self.requests.insert(at, (stream, seq));
    }

    fn request(&mut self, stream: StreamId, at: Duration, what: &What) {
        let What::Request {
            conn,
            verb: Verb::Watch | Verb::WatchList,
            path,
            query,
            user_agent,
            replica,
            ..
        } = what
        else {
            return;
        };
        let asked = asked(path, user_agent.as_deref());
        self.by_connection.insert((*conn, stream));
        if self.open.len() >= WATCHES_MAX {
            self.untracked.insert(stream, *conn);
            return;
        }
        let value = |name: &str| {
            let mut all = query.iter();
            all.find(|(own, value)| own == name && !value.is_empty())
                .map(|(_, value)| value.as_str())
        };
        let shown = value("resourceVersion").unwrap_or_default();
        let plural = asked.resource.split('.').next().unwrap_or_default();
        let scope = (Arc::from(plural), asked.namespace.clone());
        self.changes.entry(scope.clone()).or_default().0 += 1;
        let watch = Watch {
            scope,
            conn: *conn,
            replica: *replica,
            opened: at,
            state: State::Waiting,
            selective: value("labelSelector")
                .or_else(|| value("fieldSelector"))
                .is_some(),
            shown: cut(shown),
            // Without a version, the initial events show the state at this time.
            version: shown
                .parse()
                .ok()
                .filter(|version| *version > 0)
                .unwrap_or(self.newest),
            is_known: true,
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
        watch.version = watch.version.max(version);
        watch.is_known = true;
        if self.forwards && frame.kind.is_change() && !frame.scripted {
            let plural = watch.scope.0.clone();
            self.changed(at, &plural, &object.key, &object.resource_version);
        }
    }

    /// Notes a change of an object, unless it is older than one that is known.
    fn changed(&mut self, at: Duration, plural: &str, key: &str, version: &str) {
        let Ok(version) = version.parse::<u64>() else {
            return;
        };
        self.newest = self.newest.max(version);
        let namespace = key.split_once('/').map(|(namespace, _)| Arc::from(namespace));
        let scopes = [Some(None), namespace.map(Some)];
        for namespace in scopes.into_iter().flatten() {
            let Some((_, changes)) = self.changes.get_mut(&(Arc::from(plural), namespace)) else {
                continue;
            };
            if changes.back().is_some_and(|last| last.version >= version) {
                continue;
            }
            if changes.len() > CHANGES_MAX {
                changes.pop_front();
            }
            changes.push_back(Change { version, at });
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
            let mut verbs = [Verb::Watch, Verb::WatchList].into_iter();
            let verb = verbs.find(|verb| verb.word() == view.verb);
            let Some(verb) = verb.filter(|_| !self.open.contains_key(&view.stream)) else {
                continue;
            };
            let (path, query) = view.target.split_once('?').unwrap_or((&view.target, ""));
            let what = What::Request {
                stream: view.stream,
                conn: view.connection,
                verb,
                method: view.method.clone(),
                path: decoded_path(path).into_owned(),
                query: query_pairs(query),
                accept: None,
                user_agent: view.user_agent.clone(),
                replica: view.replica,
                violations: Vec::new(),
            };
            let opened = now.saturating_sub(Duration::from_millis(view.open_ms));
            self.request(view.stream, opened, &what);
            if let Some(watch) = self.open.get_mut(&view.stream) {
                // What it was sent meanwhile was missed too.
                watch.is_known = false;
                watch.state = State::Open;
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
        if let Some((watches, _)) = self.changes.get_mut(&watch.scope) {
            *watches -= 1;
            if *watches == 0 {
                self.changes.remove(&watch.scope);
            }
        }
    }

    fn view(
        &self,
        now: Duration,
        filter: &Filter,
        limit: usize,
        ambiguous: &BTreeSet<String>,
    ) -> WatchesView {
        let (mut clients, mut resources) = (BTreeSet::new(), BTreeSet::new());
        for watch in self.open.values() {
            clients.insert(&watch.asked.client);
            resources.insert(&watch.asked.resource);
        }
        let fitting = self.open.iter().filter(|(_, watch)| filter.fits(&watch.asked));
        let mut sum = 0;
        let mut watches: Vec<WatchView> = fitting
            .map(|(stream, watch)| {
                sum += watch.rate.sum(now);
                self.viewed(now, *stream, watch, ambiguous)
            })
            .collect();
        let lags = |watch: &WatchView| u128::from(watch.behind_ms.unwrap_or(0)) > NORMAL_LAG.as_millis();
        let stalls = |watch: &WatchView| watch.state == State::Stalled;
        let (behind, stalled) = (
            watches.iter().filter(|watch| lags(watch)).count(),
            watches.iter().filter(|watch| stalls(watch)).count(),
        );
        let matched = watches.len();
        watches.sort_by_key(|watch| {
            let late = watch.behind_ms.filter(|_| lags(watch)).unwrap_or(0);
            (!stalls(watch), std::cmp::Reverse(late), watch.stream)
        });
        watches.truncate(limit);
        WatchesView {
            now_ms: now.as_millis() as u64,
            open: self.open.len() + self.untracked.len(),
            matched,
            behind,
            stalled,
            events_per_second: sum.div_ceil(RATE_SECONDS),
            clients: clients.into_iter().take(NAMES_MAX).cloned().collect(),
            resources: resources.into_iter().take(NAMES_MAX).cloned().collect(),
            watches,
        }
    }

    fn viewed(
        &self,
        now: Duration,
        stream: StreamId,
        watch: &Watch,
        ambiguous: &BTreeSet<String>,
    ) -> WatchView {
        let ago = |at: Duration| now.saturating_sub(at).as_millis() as u64;
        let is_known = watch.is_known && !watch.selective && !ambiguous.contains(&*watch.scope.0);
        let changes = self.changes.get(&watch.scope).filter(|_| is_known);
        let late = changes.map(|(_, changes)| {
            let first = changes.partition_point(|change| change.version <= watch.version);
            (
                changes.len() - first,
                changes.get(first).map(|change| ago(change.at)),
            )
        });
        WatchView {
            stream: stream.0,
            connection: watch.conn.0,
            replica: watch.replica,
            client: watch.asked.client.clone(),
            resource: watch.asked.resource.clone(),
            namespace: watch.asked.namespace.clone(),
            state: watch.state,
            selective: watch.selective,
            resource_version: watch.shown.clone(),
            behind: late.map(|(behind, _)| behind),
            behind_ms: late.and_then(|(_, ms)| ms),
            events: watch.events,
            events_per_second: watch.rate.sum(now).div_ceil(RATE_SECONDS),
            last_event_ms: watch.last_event.map(ago),
            last_bookmark_ms: watch.last_bookmark.map(ago),
            open_ms: ago(watch.opened),
        }
    }
}

/// Returns who sent a request to this path.
pub(crate) fn asked(path: &str, user_agent: Option<&str>) -> Asked {
    let read = ResourcePath::read(path);
    let resource = read.as_ref().map(|path| match path.group {
        "" => path.resource.to_owned(),
        group => format!("{}.{group}", path.resource),
    });
    Asked {
        client: cut(user_agent.unwrap_or_default()).into(),
        resource: cut(&resource.unwrap_or_default()).into(),
        namespace: read.and_then(|path| path.within).map(Arc::from),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CLIENT_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::{ObjectRef, Side, StoreWrite, WriteOp};
    use rstest::rstest;

    use super::*;

    /// Records with numbers and times in seconds.
    fn trace(whats: Vec<(u64, What)>) -> Vec<Record> {
        let records = (0..).zip(whats);
        records
            .map(|(seq, (at, what))| Record {
                seq,
                at: Duration::from_secs(at),
                what,
            })
            .collect()
    }

    fn watch(stream: u64, path: &str, query: &[(&str, &str)]) -> What {
        let query = query.iter();
        What::Request {
            stream: StreamId(stream),
            conn: ConnId(stream),
            verb: Verb::Watch,
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: query
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            accept: None,
            user_agent: Some("tester/1".to_owned()),
            replica: Replica::Primary,
            violations: Vec::new(),
        }
    }

    fn object(key: &str, version: u64) -> ObjectRef {
        ObjectRef {
            key: key.to_owned(),
            uid: String::new(),
            resource_version: version.to_string(),
        }
    }

    fn wrote(key: &str, version: u64) -> What {
        What::Wrote(StoreWrite {
            resource: "pods".to_owned(),
            object: object(key, version),
            op: WriteOp::Update,
            selected: false,
            by: None,
            content: None,
        })
    }

    fn sent(stream: u64, kind: FrameType, key: &str, version: u64) -> What {
        What::Frame {
            stream: StreamId(stream),
            frame: Frame {
                kind,
                object: Some(Arc::new(object(key, version))),
                bytes: 1,
                sent: 1,
                scripted: false,
            },
        }
    }

    fn ended(stream: u64, how: Ending) -> What {
        What::End {
            stream: StreamId(stream),
            how,
            by: Side::Server,
        }
    }

    fn view(watches: &Watches, now: u64) -> WatchesView {
        let now = Duration::from_secs(now);
        watches.view(now, &Filter::default(), 10, &BTreeSet::new())
    }

    fn heard(forwards: bool, whats: Vec<(u64, What)>) -> Watches {
        let watches = Watches::new(forwards);
        let records = trace(whats);
        while watches.hear(&records) {}
        watches
    }

    const PODS: &str = "/api/v1/pods";
    const AT_5: &[(&str, &str)] = &[("watch", "1"), ("resourceVersion", "5")];

    #[rstest]
    #[case::of_all_namespaces(PODS, AT_5, Some(2))]
    #[case::of_one("/api/v1/namespaces/a/pods", AT_5, Some(1))]
    #[case::of_another("/api/v1/namespaces/c/pods", AT_5, Some(0))]
    #[case::of_another_resource("/api/v1/nodes", AT_5, Some(0))]
    #[case::a_selector_hides_changes(PODS, &[("labelSelector", "a=b")], None)]
    fn a_watch_is_behind_by_the_changes_of_its_collection(
        #[case] path: &str,
        #[case] query: &[(&str, &str)],
        #[case] behind: Option<usize>,
    ) {
        let watches = heard(
            false,
            vec![
                (1, watch(1, path, query)),
                (2, wrote("a/one", 6)),
                (3, wrote("b/two", 7)),
            ],
        );
        assert_eq!(view(&watches, 9).watches[0].behind, behind);
    }

    #[test]
    fn an_event_or_a_bookmark_catches_up() {
        let bookmark = FrameType::Bookmark {
            initial_events_end: None,
        };
        let watches = heard(
            false,
            vec![
                (1, watch(1, PODS, AT_5)),
                (1, watch(2, PODS, AT_5)),
                (2, wrote("a/one", 6)),
                (3, wrote("a/one", 7)),
                (4, sent(1, FrameType::Modified, "a/one", 6)),
                (5, sent(2, bookmark, "", 7)),
            ],
        );
        let view = view(&watches, 9);
        let [late, caught_up] = view.watches.as_slice() else {
            panic!("{view:?}");
        };
        assert_eq!(
            (late.stream, late.behind, late.behind_ms),
            (1, Some(1), Some(6000))
        );
        assert_eq!((caught_up.stream, caught_up.behind), (2, Some(0)));
        assert_eq!((caught_up.last_bookmark_ms, view.behind), (Some(4000), 1));
    }

    #[test]
    fn changes_before_an_upstream_are_what_other_watches_were_sent() {
        let watches = heard(
            true,
            vec![
                (1, watch(1, PODS, AT_5)),
                (1, watch(2, PODS, AT_5)),
                (2, sent(2, FrameType::Added, "a/one", 6)),
            ],
        );
        assert_eq!(view(&watches, 5).watches[0].behind, Some(1));
    }

    #[test]
    fn a_watch_ends_with_its_response_or_connection_and_a_stalled_one_stays() {
        let closed = What::Disconnected {
            conn: ConnId(2),
            by: Side::Client,
        };
        let watches = heard(
            false,
            vec![
                (1, watch(1, PODS, AT_5)),
                (1, watch(2, PODS, AT_5)),
                (1, watch(3, PODS, AT_5)),
                (2, ended(1, Ending::Eof)),
                (2, closed),
                (2, ended(3, Ending::Stall)),
            ],
        );
        let view = view(&watches, 9);
        assert_eq!((view.open, view.stalled, view.watches[0].stream), (1, 1, 3));
        assert!(watches.lock().by_connection.len() == 1 && watches.lock().changes.len() == 1);
    }

    #[test]
    fn a_plural_of_several_groups_is_not_counted() {
        let watches = heard(false, vec![(1, watch(1, PODS, AT_5)), (2, wrote("a/one", 6))]);
        let shared = BTreeSet::from(["pods".to_owned()]);
        let view = watches.view(Duration::from_secs(3), &Filter::default(), 10, &shared);
        assert_eq!(view.watches[0].behind, None);
    }

    #[test]
    fn what_the_trace_no_longer_has_is_taken_from_the_open_responses() {
        let mut records = trace(vec![
            (1, watch(1, PODS, AT_5)),
            (1, watch(2, PODS, AT_5)),
            (2, wrote("a/one", 6)),
        ]);
        let watches = Watches::new(false);
        assert!(!watches.hear(&records) && !watches.missed());
        // The end of 1 and the request of 3 are gone.
        for record in &mut records {
            record.seq += 100;
        }
        watches.hear(&records[2..]);
        assert!(watches.missed());
        let open = |stream| StreamView {
            stream: StreamId(stream),
            connection: ConnId(stream),
            replica: Replica::Primary,
            verb: "WATCH",
            method: "GET".to_owned(),
            target: format!("{PODS}?watch=1&resourceVersion=5"),
            user_agent: Some("tester/1".to_owned()),
            open_ms: 1000,
        };
        watches.reconcile(Duration::from_secs(4), &[open(2), open(3)]);
        let view = view(&watches, 4);
        let seen: Vec<(u64, Option<usize>)> = { view.watches.iter() }
            .map(|watch| (watch.stream, watch.behind))
            .collect();
        assert_eq!(seen, [(2, Some(1)), (3, None)]);
        assert!(!watches.missed());
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut rate = Rate::default();
        for second in [10, 10, 11, 11, 11, 11, 13, 13, 14] {
            rate.count(Duration::from_secs(second));
        }
        assert_eq!(rate.sum(Duration::from_secs(14)), 8);
        assert_eq!(rate.sum(Duration::from_secs(17)), 3);
        assert_eq!(rate.sum(Duration::from_secs(60)), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut whats = vec![(1, watch(1, PODS, AT_5))];
        whats.extend((6..1000).map(|version| (2, wrote("a/one", version))));
        whats.extend((2..REQUESTS_MAX as u64 + 100).map(|stream| (3, watch(stream, PODS, AT_5))));
        let watches = heard(false, whats);
        let tracker = watches.lock();
        assert_eq!(tracker.requests.len(), REQUESTS_MAX);
        assert_eq!(tracker.open.len(), WATCHES_MAX);
        assert!(
            tracker
                .changes
                .values()
                .all(|(_, changes)| changes.len() <= CHANGES_MAX + 1)
        );
    }
}
