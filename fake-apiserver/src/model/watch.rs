//! A watch session: its initial events, which writes it sends and as which event type, its bookmarks, and its end.
//!
//! ```text
//!   Waiting{for a revision} --cache got there--> Initial{objects, end marker} --all sent--> Live{position}
//!      \                                                                                       |
//!       `--3 s--> Refused{status} --ERROR sent--> Over <---deadline, relist, overrun-----------+
//! ```
//! It is polled: a session is a cursor into its resource's events and owns none of them.
//!
//! Sources: "Efficient detection of changes", "Streaming lists" and "Watch bookmarks" in the API concepts page;
//! KEP-956, KEP-3157; apiserver `storage/cacher`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::encode::encode_json;
use apimachinery::kind::Kind;
use apimachinery::object::Stored;
use apimachinery::options::{Collection, Form, MetaVersion, RequestedVersion, RowObject, WatchRequest};
use apimachinery::selector::Selector;
use apimachinery::status::Status;
use apimachinery::{ObjectRef, Version};
use builtin_kinds::convert;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use trace::record::{FrameType, Replica, WriteOp};

use super::list::FRESH_WAIT;
use super::watch_cache::{Change, Event, line};
use super::{Model, Place, store, table};

/// Annotation of the bookmark that ends the initial events (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Longest lifetime of a watch, whatever its `timeoutSeconds`.
const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long before its deadline a watch gets its last bookmark (apiserver `cache_watcher.go`, `nextBookmarkTime`).
const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

/// One line of a watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFrame {
    /// Event type.
    pub kind: FrameType,
    /// Object key; `None` for ERROR.
    pub object: Option<Arc<ObjectRef>>,
    /// The line, with its newline.
    pub line: Bytes,
}

/// Result of polling a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchPoll {
    /// A line. Poll again.
    Frame(WatchFrame),
    /// Nothing until the model changes, or until `wake`.
    Pending {
        /// Latest time of the next poll.
        wake: Option<Duration>,
    },
    /// The stream ends cleanly.
    End,
}

/// One open watch: a cursor into the events of its resource.
#[derive(Debug)]
pub struct WatchSession {
    replica: Replica,
    /// Index of the resource.
    place: Place,
    collection: Collection,
    selector: Selector,
    form: Form,
    /// Did an event of this watch already carry the column definitions of its table?
    named: bool,
    /// Does the request allow bookmarks and the end marker?
    bookmarks: bool,
    /// Time of the next periodic bookmark.
    next_bookmark: Duration,
    deadline: Duration,
    generation: usize,
    /// Events up to this revision are never sent.
    start_revision: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Waits for the revision of its initial state.
    Waiting {
        revision: u64,
        until: Duration,
        marked: bool,
    },
    /// Sends the initial objects; the flag says whether a marker ends them.
    Initial {
        objects: VecDeque<Arc<Stored>>,
        marked: bool,
        position: u64,
    },
    /// Sends changes, from a position in the log.
    Live { position: u64 },
    /// Sends a refusal after the response head.
    Refused(Status),
    /// Ended.
    Over,
}

impl WatchSession {
    /// Starts a watch at `now` that ends after the request's `timeoutSeconds`, or after `lifetime` if it has none.
    pub(super) fn open(
        model: &Model,
        replica: Replica,
        now: Duration,
        request: &WatchRequest,
        lifetime: Duration,
    ) -> Self {
        let kind = request.collection.kind;
        let place = model.place(kind);
        let resource = model.at(place);
        let lifetime = match request.timeout_seconds {
            None | Some(0) => lifetime,
            // A negative timeout is a deadline in the past.
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(LIFETIME_MAX),
        };
        let deadline = now.saturating_add(lifetime);
        let mut session = Self {
            replica,
            place,
            collection: request.collection.clone(),
            selector: request.selector.clone(),
            form: request.form,
            named: false,
            bookmarks: request.bookmarks,
            next_bookmark: Duration::ZERO,
            deadline,
            generation: resource.cache(replica).generation(),
            start_revision: 0,
            state: State::Over,
        };
        session.next_bookmark = session.bookmark_after(model, now);
        let (cached, _) = model.cached(resource, replica);
        session.state = match (request.send_initial_events, request.resource_version) {
            (Some(true), RequestedVersion::Newest) => session.wait(model, now, model.revision),
            (Some(true), RequestedVersion::At(revision)) => session.wait(model, now, revision),
            (Some(true), RequestedVersion::Any) => session.initial(model, true),
            (None, RequestedVersion::Newest | RequestedVersion::Any) => session.initial(model, false),
            (Some(false), RequestedVersion::Newest) => session.replay(model, model.revision),
            (Some(false), RequestedVersion::Any) => session.replay(model, cached),
            (None | Some(false), RequestedVersion::At(revision)) => session.replay(model, revision),
        };
        tracing::debug!(
            resource = kind.plural,
            start = session.start_revision,
            ?deadline,
            "watch opened"
        );
        session
    }

    /// Does it still wait for the revision of its initial state? Until then nothing is sent, not even the response head.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Returns the watched collection.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Returns the selector.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// Returns the representation of the objects.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the revision up to which events are never sent, once the initial events were sent; 0 before.
    pub fn start_revision(&self) -> u64 {
        self.start_revision
    }

    /// Returns the revision up to which everything was sent: the server's, unless the watch cache or the reader lags. Before
    /// the initial events are sent, and after the end of the watch, it is the server's.
    pub fn shown(&self, model: &Model) -> u64 {
        let State::Live { position } = self.state else {
            return model.revision;
        };
        let resource = model.at(self.place);
        let cache = resource.cache(self.replica);
        let next = cache.event(position).filter(|_| position < cache.visible());
        match next {
            Some(event) => event.revision.saturating_sub(1),
            None if cache.behind().is_some() => cache.revision(),
            None => model.revision,
        }
    }

    /// Returns the time at which the stream ends by itself.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Is there nothing left to send to a client that did not read in time: did the lifetime pass, or does the watch lag so
    /// far behind that its events are dropped?
    pub fn is_past(&self, model: &Model, now: Duration) -> bool {
        let behind = match self.state {
            State::Live { position } | State::Initial { position, .. } => {
                let resource = model.at(self.place);
                resource.cache(self.replica).overran(position)
            }
            State::Waiting { .. } | State::Refused(_) | State::Over => false,
        };
        behind || now >= self.deadline
    }

    /// Returns the next line, if there is one. Call it until it is pending or over, after every change of the model and at
    /// `wake`.
    pub fn poll(&mut self, model: &Model, now: Duration) -> WatchPoll {
        loop {
            if now >= self.deadline {
                self.state = State::Over;
            }
            match &mut self.state {
                State::Over => return WatchPoll::End,
                State::Refused(status) => {
                    let frame = error_frame(status);
                    self.state = State::Over;
                    return WatchPoll::Frame(frame);
                }
                State::Waiting {
                    revision,
                    until,
                    marked,
                } => {
                    let (revision, until, marked) = (*revision, *until, *marked);
                    let resource = model.at(self.place);
                    let cached = model.catch_up(resource, self.replica, revision);
                    if resource.cache(self.replica).end_of(self.generation).is_some() {
                        self.state = State::Over;
                    } else if cached >= revision {
                        self.state = self.initial(model, marked);
                    } else if now >= until {
                        self.state = State::Refused(Status::too_large(revision, cached, 1));
                    } else {
                        return WatchPoll::Pending {
                            wake: Some(until.min(self.deadline)),
                        };
                    }
                }
                State::Initial {
                    objects,
                    marked,
                    position,
                } => match objects.pop_front() {
                    Some(object) => {
                        return WatchPoll::Frame(WatchFrame {
                            kind: FrameType::Added,
                            object: Some(Arc::new(object.object_ref())),
                            line: self.line(model, now, Change::Added, &object),
                        });
                    }
                    None => {
                        let (marked, position) = (*marked, *position);
                        self.state = State::Live { position };
                        if marked && self.bookmarks {
                            return WatchPoll::Frame(self.bookmark(model, self.start_revision, true));
                        }
                    }
                },
                State::Live { position } => {
                    let position = *position;
                    if let Some(poll) = self.live(model, now, position) {
                        return poll;
                    }
                }
            }
        }
    }

    /// Takes one step of a live watch. `None`: the step sent nothing, and more events may follow.
    fn live(&mut self, model: &Model, now: Duration, position: u64) -> Option<WatchPoll> {
        let resource = model.at(self.place);
        let cache = resource.cache(self.replica);
        let ended = cache.end_of(self.generation);
        if cache.overran(position) || ended.is_some_and(|end| position >= end) {
            tracing::debug!(resource = self.collection.kind.plural, ?ended, "watch ended");
            self.state = State::Over;
            return None;
        }
        if position < cache.visible()
            && let Some(event) = cache.event(position)
        {
            self.state = State::Live {
                position: position + 1,
            };
            let event = Arc::clone(event);
            return self.show(model, now, &event).map(WatchPoll::Frame);
        }
        let periodic = self.bookmarks && self.collection.kind.watch_cached;
        if periodic && now >= self.next_bookmark {
            self.next_bookmark = self.bookmark_after(model, now);
            let (revision, _) = model.cached(resource, self.replica);
            return (revision > self.start_revision)
                .then(|| WatchPoll::Frame(self.bookmark(model, revision, false)));
        }
        let wake = if periodic {
            self.deadline.min(self.next_bookmark)
        } else {
            self.deadline
        };
        Some(WatchPoll::Pending { wake: Some(wake) })
    }

    /// Classifies a write for this watch: added, modified, deleted or not selected.
    fn show(&mut self, model: &Model, now: Duration, event: &Event) -> Option<WatchFrame> {
        let selects = |object: &Arc<Stored>| self.in_namespace(object) && self.selector.matches(object);
        let converted = event.as_kind(self.collection.kind);
        let event = converted.as_ref().unwrap_or(event);
        if event.revision <= self.start_revision {
            return None;
        }
        let before = event.previous.as_ref().is_some_and(selects);
        let after = match event.op {
            WriteOp::Create | WriteOp::Update => selects(&event.object),
            WriteOp::Delete => false,
        };
        let (change, kind) = match (before, after) {
            (false, false) => return None,
            (false, true) => (Change::Added, FrameType::Added),
            (true, true) => (Change::Modified, FrameType::Modified),
            (true, false) => (Change::Deleted, FrameType::Deleted),
        };
        let shown = event.shown(change);
        let line = event.line(change, self.form);
        Some(WatchFrame {
            kind,
            object: Some(Arc::clone(event.object_ref())),
            line: line.unwrap_or_else(|| self.line(model, now, change, shown)),
        })
    }

    /// Returns the line that sends an object.
    fn line(&mut self, model: &Model, now: Duration, change: Change, object: &Stored) -> Bytes {
        let named = !std::mem::replace(&mut self.named, true);
        let shown = table::shown(object, self.form, model.version, model.epoch + now, named);
        line(change.word(), &shown)
    }

    fn in_namespace(&self, object: &Stored) -> bool {
        self.collection.namespace.is_none() || self.collection.namespace.as_deref() == object.namespace()
    }

    /// Starts from the state at `revision` or later, as soon as the watch cache reaches it.
    fn wait(&mut self, model: &Model, now: Duration, revision: u64) -> State {
        let cached = model.catch_up(model.at(self.place), self.replica, revision);
        if cached >= revision {
            self.initial(model, true)
        } else if self.collection.kind.watch_cached {
            State::Waiting {
                revision,
                until: now + FRESH_WAIT,
                marked: true,
            }
        } else {
            State::Refused(Status::too_large(revision, cached, 1))
        }
    }

    /// Starts from the current objects.
    fn initial(&mut self, model: &Model, marked: bool) -> State {
        let resource = model.at(self.place);
        let (revision, objects) = model.cached(resource, self.replica);
        self.start_revision = revision;
        let kind = self.collection.kind;
        let objects = store::range(objects, self.collection.namespace.as_deref(), "")
            .map(|object| convert::as_kind(object, kind))
            .filter(|object| self.selector.matches(object))
            .collect();
        State::Initial {
            objects,
            marked,
            position: resource.cache(self.replica).visible(),
        }
    }

    /// Starts after `revision`, without initial objects.
    fn replay(&mut self, model: &Model, revision: u64) -> State {
        let resource = model.at(self.place);
        self.start_revision = revision;
        if !self.collection.kind.watch_cached {
            if revision < model.compacted {
                return State::Refused(Status::expired_etcd_watch());
            }
        } else if revision < resource.cache(self.replica).oldest_start() {
            return State::Refused(Status::expired_watch(
                revision,
                resource.cache(self.replica).oldest_start(),
            ));
        }
        State::Live {
            position: resource.cache(self.replica).position_after(revision),
        }
    }

    fn bookmark(&mut self, model: &Model, revision: u64, ends_initial_events: bool) -> WatchFrame {
        let marker = ends_initial_events.then_some("true");
        let named = !std::mem::replace(&mut self.named, true);
        bookmark_frame(
            model.version,
            self.collection.kind,
            &revision.to_string(),
            marker,
            self.form,
            named,
        )
    }

    /// Returns a bookmark period from now, or the time shortly before the deadline if that is earlier and not past.
    fn bookmark_after(&self, model: &Model, now: Duration) -> Duration {
        let periodic = now.saturating_add(model.bookmark_interval);
        let last = self.deadline.saturating_sub(BOOKMARK_BEFORE_DEADLINE);
        if last > now { periodic.min(last) } else { periodic }
    }
}

/// Returns an ERROR event.
pub fn error_frame(status: &Status) -> WatchFrame {
    WatchFrame {
        kind: FrameType::Error {
            code: status.code,
            reason: status.reason.clone(),
        },
        object: None,
        line: line("ERROR", &status.encode()),
    }
}

/// Returns a bookmark: a zero value of the kind with a revision and perhaps the marker. A table has its column definitions
/// if `named`.
pub(super) fn bookmark_frame(
    version: Version,
    kind: &Kind,
    resource_version: &str,
    initial_events_end: Option<&str>,
    form: Form,
    named: bool,
) -> WatchFrame {
    let zero = Zero {
        version,
        kind,
        resource_version,
        initial_events_end,
    };
    let object = match form {
        Form::Full => zero.full(),
        Form::Metadata(meta) => zero.metadata_only(meta),
        Form::Table(form) => {
            let object = serde_json::from_slice(&zero.full()).expect("a zero value is written as JSON");
            let carried = match form.object {
                RowObject::Full => zero.full(),
                RowObject::Metadata => zero.metadata_only(form.version),
                // The marker is sent even if the request excludes all objects.
                RowObject::None if initial_events_end.is_some() => zero.metadata_only(form.version),
                RowObject::None => b"null".to_vec(),
            };
            table::bookmark(kind, form, version, &object, &carried, named)
        }
    };
    WatchFrame {
        kind: FrameType::Bookmark {
            initial_events_end: initial_events_end.map(str::to_owned),
        },
        object: Some(Arc::new(ObjectRef {
            key: String::new(),
            uid: String::new(),
            resource_version: resource_version.to_owned(),
        })),
        line: line("BOOKMARK", &object),
    }
}

/// Returns a zero value of the kind with its version and the marker.
struct Zero<'a> {
    version: Version,
    kind: &'a Kind,
    resource_version: &'a str,
    initial_events_end: Option<&'a str>,
}

impl Zero<'_> {
    fn full(&self) -> Vec<u8> {
        let metadata = self.metadata(self.kind.custom);
        let zero_metadata = match self.version {
            Version::V1_33 => r#"{"creationTimestamp":null}"#,
            Version::V1_34 | Version::V1_35 | Version::V1_36 => "{}",
        };
        let mut head = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata,
        });
        if self.kind.custom {
            head.sort_all_objects();
        }
        let mut object = encode_json(&head);
        object.pop();
        object.extend_from_slice(self.kind.zero.replace("{0}", zero_metadata).as_bytes());
        object.push(b'}');
        object
    }

    fn metadata_only(&self, meta: MetaVersion) -> Vec<u8> {
        encode_json(&json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": meta.api_version(),
            "metadata": self.metadata(false),
        }))
    }

    fn metadata(&self, custom: bool) -> Value {
        let mut metadata = Map::new();
        if !self.resource_version.is_empty() {
            metadata.insert("resourceVersion".to_owned(), self.resource_version.into());
        }
        if self.version == Version::V1_33 && !custom {
            metadata.insert("creationTimestamp".to_owned(), Value::Null);
        }
        let own = self.kind.zero_annotations.iter().copied();
        let marker = self.initial_events_end.map(|value| (INITIAL_EVENTS_END, value));
        let annotations: BTreeMap<&str, &str> = own.chain(marker).collect();
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(annotations));
        }
        Value::Object(metadata)
    }
}
