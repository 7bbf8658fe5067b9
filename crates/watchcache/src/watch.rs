//! A watch session: its initial events, which writes it sends and as which event type, its bookmarks, and its end.
//!
//! ```text
//!   Waiting{for a revision} --cache got there--> Initial{objects, end marker} --all sent--> Live{position}
//!      \                                                                                       |
//!       `--3 s--> Refused{status} --ERROR sent--> Over <---deadline, relist, overrun-----------+
//! ```
//! It is polled: a session is a cursor into its resource's events and owns none of them. It must not know how a frame is
//! encoded.
//!
//! Sources: "Efficient detection of changes", "Streaming lists" and "Watch bookmarks" in the API concepts page;
//! KEP-956, KEP-3157; apiserver `storage/cacher`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::options::RequestedVersion;
use apimachinery::status::Status;

use crate::cache::WatchCache;
use crate::event::{Change, Event};
use crate::list::FRESH_WAIT;
use crate::object::{Object, View, in_namespace};
use crate::storage::{Replica, Resource, ResourceId, Storage};
use crate::store;

/// Longest lifetime of a watch, whatever its `timeoutSeconds`.
const LIFETIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long before its deadline a watch gets its last bookmark (apiserver `cache_watcher.go`, `nextBookmarkTime`).
const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

/// Options of a WATCH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Namespace; `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<String>,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `sendInitialEvents`, after the server's own defaulting.
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<i64>,
    /// Lifetime without `timeoutSeconds`; a real server draws it from 30 to 60 minutes.
    pub lifetime: Duration,
}

impl Default for WatchOptions {
    /// All namespaces, from the newest state, without bookmarks, for half an hour.
    fn default() -> Self {
        Self {
            namespace: None,
            resource_version: RequestedVersion::Newest,
            send_initial_events: None,
            bookmarks: false,
            timeout_seconds: None,
            lifetime: Duration::from_secs(30 * 60),
        }
    }
}

/// One event of a watch stream.
#[derive(Debug)]
pub enum Frame<O, K = ()> {
    /// ADDED: an object that exists when the watch begins, in the version of the request.
    Initial(Arc<O>),
    /// ADDED, MODIFIED or DELETED: a write.
    Written {
        /// Effect of the write on this watch.
        change: Change,
        /// The write, shared by all watches.
        event: Arc<Event<O, K>>,
        /// The object in the version of the request, if that is not the stored one. Otherwise it is
        /// [`Event::shown`].
        converted: Option<Arc<O>>,
    },
    /// BOOKMARK.
    Bookmark {
        /// Everything up to this revision is sent.
        revision: u64,
        /// Does it end the initial events (`k8s.io/initial-events-end`)?
        ends_initial_events: bool,
    },
    /// ERROR. The stream ends after it.
    Error(Status),
}

impl<O: Object, K> Frame<O, K> {
    /// The event type on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Initial(_) => Change::Added.word(),
            Self::Written { change, .. } => change.word(),
            Self::Bookmark { .. } => "BOOKMARK",
            Self::Error(_) => "ERROR",
        }
    }

    /// The object it carries; `None` for BOOKMARK and ERROR.
    pub fn object(&self) -> Option<&Arc<O>> {
        match self {
            Self::Initial(object) => Some(object),
            Self::Written {
                change,
                event,
                converted,
            } => Some(converted.as_ref().unwrap_or_else(|| event.shown(*change))),
            Self::Bookmark { .. } | Self::Error(_) => None,
        }
    }
}

/// Result of polling a watch.
#[derive(Debug)]
pub enum Poll<O, K = ()> {
    /// An event. Poll again.
    Send(Frame<O, K>),
    /// Nothing until the storage changes, or until `wake`.
    Pending {
        /// Latest time of the next poll.
        wake: Duration,
    },
    /// The stream ends cleanly.
    End,
}

/// One open watch: a cursor into the events of its resource.
#[derive(Debug)]
pub struct Watch<O> {
    replica: Replica,
    resource: ResourceId,
    namespace: Option<String>,
    /// Does the request allow bookmarks and the end marker?
    bookmarks: bool,
    /// Time of the next periodic bookmark.
    next_bookmark: Duration,
    deadline: Duration,
    generation: usize,
    /// Events up to this revision are never sent.
    start_revision: u64,
    state: State<O>,
}

#[derive(Debug)]
enum State<O> {
    /// Waits for the revision of its initial state.
    Waiting {
        revision: u64,
        until: Duration,
        marked: bool,
    },
    /// Sends the initial objects; the flag: whether a marker ends them.
    Initial {
        objects: VecDeque<Arc<O>>,
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

/// A copy reads ahead, and takes nothing from the original.
impl<O> Clone for Watch<O> {
    fn clone(&self) -> Self {
        let state = match &self.state {
            State::Waiting {
                revision,
                until,
                marked,
            } => State::Waiting {
                revision: *revision,
                until: *until,
                marked: *marked,
            },
            State::Initial {
                objects,
                marked,
                position,
            } => State::Initial {
                objects: objects.clone(),
                marked: *marked,
                position: *position,
            },
            State::Live { position } => State::Live { position: *position },
            State::Refused(status) => State::Refused(status.clone()),
            State::Over => State::Over,
        };
        Self {
            namespace: self.namespace.clone(),
            state,
            ..*self
        }
    }
}

impl<O: Object> Watch<O> {
    /// Opens a watch at `now`. A request that cannot be answered is refused in the stream, as an ERROR event.
    pub fn open<K>(
        storage: &Storage<O, K>,
        now: Duration,
        resource: ResourceId,
        replica: Replica,
        options: &WatchOptions,
        view: &impl View<O>,
    ) -> Self {
        let lifetime = match options.timeout_seconds {
            None | Some(0) => options.lifetime,
            // A negative timeout is a deadline in the past.
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(LIFETIME_MAX),
        };
        let deadline = now.saturating_add(lifetime);
        let held = storage.resource(resource);
        let mut watch = Self {
            replica,
            resource,
            namespace: options.namespace.clone(),
            bookmarks: options.bookmarks,
            next_bookmark: Duration::ZERO,
            deadline,
            generation: held.cache(replica).generation(),
            start_revision: 0,
            state: State::Over,
        };
        watch.next_bookmark = watch.bookmark_after(now, storage.bookmark_interval);
        let (cached, _) = storage.cached(held, replica);
        watch.state = match (options.send_initial_events, options.resource_version) {
            (Some(true), RequestedVersion::Newest) => watch.wait(storage, view, now, storage.revision),
            (Some(true), RequestedVersion::At(revision)) => watch.wait(storage, view, now, revision),
            (Some(true), RequestedVersion::Any) => watch.initial(storage, view, true),
            (None, RequestedVersion::Newest | RequestedVersion::Any) => watch.initial(storage, view, false),
            (Some(false), RequestedVersion::Newest) => watch.replay(storage, storage.revision),
            (Some(false), RequestedVersion::Any) => watch.replay(storage, cached),
            (None | Some(false), RequestedVersion::At(revision)) => watch.replay(storage, revision),
        };
        tracing::debug!(
            resource = &*held.name,
            start = watch.start_revision,
            ?deadline,
            "watch opened"
        );
        watch
    }

    /// Does it still wait for the revision of its initial state? Until then nothing is sent, not even the response head.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Returns the revision up to which events are never sent, once the initial events were sent; 0 before.
    pub fn start_revision(&self) -> u64 {
        self.start_revision
    }

    /// Returns the revision up to which everything was sent: the server's, unless the watch cache or the reader lags; the
    /// server's too before the initial events are sent. `None`: the watch is refused, waits for a later revision, or is
    /// over.
    pub fn shown<K>(&self, storage: &Storage<O, K>) -> Option<u64> {
        let position = match self.state {
            State::Live { position } => position,
            State::Initial { .. } => return Some(storage.revision),
            State::Waiting { .. } | State::Refused(_) | State::Over => return None,
        };
        let cache = self.cache(storage);
        let next = cache.event(position).filter(|_| position < cache.visible());
        Some(match next {
            Some(event) => event.revision().saturating_sub(1),
            None if cache.behind().is_some() => cache.revision(),
            None => storage.revision,
        })
    }

    /// Returns the time at which the stream ends by itself.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Is there nothing left to send to a client that did not read in time: did the lifetime pass, or does the watch lag so
    /// far behind that its events are dropped?
    pub fn is_past<K>(&self, storage: &Storage<O, K>, now: Duration) -> bool {
        let behind = match self.state {
            State::Live { position } | State::Initial { position, .. } => {
                self.cache(storage).overran(position)
            }
            State::Waiting { .. } | State::Refused(_) | State::Over => false,
        };
        behind || now >= self.deadline
    }

    /// Returns the next event, if there is one. Call it until it is pending or over, after every change of the storage and
    /// at `wake`.
    pub fn poll<K>(&mut self, storage: &Storage<O, K>, now: Duration, view: &impl View<O>) -> Poll<O, K> {
        loop {
            if now >= self.deadline {
                self.state = State::Over;
            }
            match &mut self.state {
                State::Over => return Poll::End,
                State::Refused(status) => {
                    let frame = Frame::Error(std::mem::take(status));
                    self.state = State::Over;
                    return Poll::Send(frame);
                }
                State::Waiting {
                    revision,
                    until,
                    marked,
                } => {
                    let (revision, until, marked) = (*revision, *until, *marked);
                    let cached = storage.catch_up(self.held(storage), self.replica, revision);
                    if self.cache(storage).end_of(self.generation).is_some() {
                        self.state = State::Over;
                    } else if cached >= revision {
                        self.state = self.initial(storage, view, marked);
                    } else if now >= until {
                        self.state = State::Refused(Status::too_large(revision, cached, 1));
                    } else {
                        return Poll::Pending {
                            wake: until.min(self.deadline),
                        };
                    }
                }
                State::Initial {
                    objects,
                    marked,
                    position,
                } => match objects.pop_front() {
                    Some(object) => return Poll::Send(Frame::Initial(object)),
                    None => {
                        let (marked, position) = (*marked, *position);
                        self.state = State::Live { position };
                        if marked && self.bookmarks {
                            return Poll::Send(Frame::Bookmark {
                                revision: self.start_revision,
                                ends_initial_events: true,
                            });
                        }
                    }
                },
                State::Live { position } => {
                    let position = *position;
                    if let Some(poll) = self.live(storage, view, now, position) {
                        return poll;
                    }
                }
            }
        }
    }

    /// Takes one step of a live watch. `None`: the step sent nothing, and more events may follow.
    fn live<K>(
        &mut self,
        storage: &Storage<O, K>,
        view: &impl View<O>,
        now: Duration,
        position: u64,
    ) -> Option<Poll<O, K>> {
        let resource = self.held(storage);
        let cache = resource.cache(self.replica);
        let ended = cache.end_of(self.generation);
        if cache.overran(position) || ended.is_some_and(|end| position >= end) {
            tracing::debug!(resource = &*resource.name, ?ended, "watch ended");
            self.state = State::Over;
            return None;
        }
        if position < cache.visible()
            && let Some(event) = cache.event(position)
        {
            self.state = State::Live {
                position: position + 1,
            };
            return self.show(event, view).map(Poll::Send);
        }
        let periodic = self.bookmarks && resource.watch_cached;
        if periodic && now >= self.next_bookmark {
            self.next_bookmark = self.bookmark_after(now, storage.bookmark_interval);
            let (revision, _) = storage.cached(resource, self.replica);
            return (revision > self.start_revision).then_some(Poll::Send(Frame::Bookmark {
                revision,
                ends_initial_events: false,
            }));
        }
        let wake = if periodic {
            self.deadline.min(self.next_bookmark)
        } else {
            self.deadline
        };
        Some(Poll::Pending { wake })
    }

    /// Classifies a write for this watch: added, modified, deleted or not selected.
    fn show<K>(&self, event: &Arc<Event<O, K>>, view: &impl View<O>) -> Option<Frame<O, K>> {
        if event.revision() <= self.start_revision
            || !in_namespace(event.object().key(), self.namespace.as_deref())
        {
            return None;
        }
        let seen = |object| Some(view.convert(object)).filter(|object| view.selects(object));
        let before = event.previous().and_then(seen).is_some();
        let after = Some(event.object()).filter(|_| !event.is_delete()).and_then(seen);
        let change = Change::of(before, after.is_some())?;
        let shown = match (change, after) {
            (Change::Added | Change::Modified, Some(after)) => after,
            (Change::Added | Change::Modified | Change::Deleted, _) => view.convert(event.shown(change)),
        };
        let converted = match shown {
            Cow::Owned(converted) => Some(converted),
            Cow::Borrowed(_) => None,
        };
        Some(Frame::Written {
            change,
            event: Arc::clone(event),
            converted,
        })
    }

    /// Starts from the state at `revision` or later, as soon as the watch cache reaches it.
    fn wait<K>(
        &mut self,
        storage: &Storage<O, K>,
        view: &impl View<O>,
        now: Duration,
        revision: u64,
    ) -> State<O> {
        let resource = self.held(storage);
        let cached = storage.catch_up(resource, self.replica, revision);
        if cached >= revision {
            self.initial(storage, view, true)
        } else if resource.watch_cached {
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
    fn initial<K>(&mut self, storage: &Storage<O, K>, view: &impl View<O>, marked: bool) -> State<O> {
        let (revision, objects) = storage.cached(self.held(storage), self.replica);
        self.start_revision = revision;
        let objects = store::range(objects, self.namespace.as_deref(), "")
            .map(|object| view.convert(object))
            .filter(|object| view.selects(object))
            .map(Cow::into_owned)
            .collect();
        State::Initial {
            objects,
            marked,
            position: self.cache(storage).visible(),
        }
    }

    /// Starts after `revision`, without initial objects.
    fn replay<K>(&mut self, storage: &Storage<O, K>, revision: u64) -> State<O> {
        let resource = self.held(storage);
        let cache = resource.cache(self.replica);
        self.start_revision = revision;
        if !resource.watch_cached {
            if revision < storage.compacted {
                return State::Refused(Status::expired_etcd_watch());
            }
        } else if revision < cache.oldest_start() {
            return State::Refused(Status::expired_watch(revision, cache.oldest_start()));
        }
        State::Live {
            position: cache.position_after(revision),
        }
    }

    fn held<'a, K>(&self, storage: &'a Storage<O, K>) -> &'a Resource<O, K> {
        storage.resource(self.resource)
    }

    fn cache<'a, K>(&self, storage: &'a Storage<O, K>) -> &'a WatchCache<O, K> {
        self.held(storage).cache(self.replica)
    }

    /// Returns a bookmark period from now, or the time shortly before the deadline if that is earlier and not past.
    fn bookmark_after(&self, now: Duration, interval: Duration) -> Duration {
        let periodic = now.saturating_add(interval);
        let last = self.deadline.saturating_sub(BOOKMARK_BEFORE_DEADLINE);
        if last > now { periodic.min(last) } else { periodic }
    }
}
