//! Actions of a step: write to the store, replace or change a response, set a rule on it, or send scripted frames.
//!
//! The four kinds differ in when they affect the request that met their step (see `server/act.rs`); their effect is
//! decided there and in `server/exchange.rs`.

use serde_json::Value;
use trace::fault::{Cut, Ending, Pace};
use trace::record::Replica;

use super::{Expected, Manifest, ObjectName, Ref};

/// An action of a step.
///
/// All kinds but the first and the last act on a response: that of the request the step waited for, otherwise that of
/// the newest open watch; if there is none, the step waits for one.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes to the store.
    Store(StoreAction),
    /// Determines the response before any of it is sent.
    Shape(ShapeAction),
    /// Applies to the store's events from now on.
    Rule(RuleAction),
    /// Sends scripted frames now, after the store's events so far, or ends the response.
    Stream(StreamAction),
    /// Refuses new connections for this many milliseconds.
    Refuse(u64),
}

/// A write to the store, or a change of its watch caches.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreAction {
    /// Creates the object, or replaces it if it exists.
    Apply(Vec<Manifest>),
    /// Deletes the objects.
    Delete {
        /// The objects.
        objects: Vec<ObjectName>,
        /// `as:`: the name bound to the resourceVersion of the last deletion.
        binds: Option<String>,
    },
    /// Changes labels; `None` removes one.
    Relabel {
        /// The object.
        object: ObjectName,
        /// Pairs of label and value.
        labels: Vec<(String, Option<String>)>,
        /// `as:`: the name bound to the resourceVersion of this write.
        binds: Option<String>,
    },
    /// Compacts the store: exact lists and continue tokens below the current revision fail with 410 from now on, and
    /// so do watches below it (the watch cache is evicted up to now).
    Compact,
    /// Rebuilds the watch cache: every open watch of the target ends cleanly, and watches from older versions fail
    /// with 410.
    ClearWatchCache(Where),
    /// Stops the watch cache: cached reads are stale, and watches receive no new events.
    FreezeWatchCache(Where),
    /// Delays the watch cache: it receives every write this much later.
    LagWatchCache {
        /// Delay in milliseconds.
        by_ms: u64,
        /// Where.
        at: Where,
    },
    /// Lets the watch cache catch up and follow the store without delay.
    ThawWatchCache(Where),
    /// Restores the store to an earlier state and revision, as from a backup.
    Restore {
        /// The resourceVersion to restore.
        to: Ref,
    },
    /// Restarts the apiserver: its connections are closed, and its watch caches are those of a new process. The store is
    /// not affected.
    Restart(Restart),
    /// Sets the wall clock of the server forward (positive) or back, by this many milliseconds. Timers do not move.
    JumpClock {
        /// Milliseconds.
        by_ms: i64,
    },
}

/// The replica whose watch cache an action changes; `None`: both.
pub type Where = Option<Replica>;

/// Restart of an apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restart {
    /// Milliseconds for which it accepts no connection.
    pub down_ms: u64,
    /// Milliseconds after that for which its watch caches are empty, and reads that need them are 429.
    pub filling_ms: u64,
    /// Where.
    pub at: Where,
}

/// Replaces a response, or changes how it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeAction {
    /// Sends this response instead of the normal one.
    Reply(Reply),
    /// Sends the normal LIST response with these changes.
    EditPage(PageEdit),
    /// Delays the response, including its head, by this many milliseconds.
    Delay(u64),
    /// How the body is split into writes.
    Pace(Pace),
    /// Compresses the body if the request accepts gzip.
    Gzip,
    /// Sends no response, not even a head: the connection ends this way, or stays silent. A write is not carried out.
    NoAnswer(Ending),
    /// Carries the request out, and sends no response, as [`ShapeAction::NoAnswer`].
    LoseAnswer(Ending),
}

/// Changes to the store's events on a stream, or to how the body ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// Drops the next events of the stream; the store is not affected.
    DropEvents(u32),
    /// Sends the next event this many times.
    RepeatEvent(u32),
    /// Buffers this many events and sends them in reverse order.
    ReorderEvents(u32),
    /// Sends no bookmarks on the stream from now on: neither periodic ones nor the end marker.
    NoBookmarks,
    /// Replaces the value `"true"` of the end marker's annotation; `None`: sends the bookmark without it.
    EndMarker(Option<String>),
    /// Truncates the body and ends it.
    Truncate {
        /// Where to cut.
        cut: Cut,
        /// How to end.
        ending: Ending,
    },
    /// Ends the response this long after its head, as a gateway that limits the duration of streams.
    EndAfter {
        /// Milliseconds.
        ms: u64,
        /// How it ends.
        ending: Ending,
    },
}

/// Scripted frames, or the end of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamAction {
    /// Sends these bytes; a newline follows each entry unless disabled.
    Send(Vec<RawFrame>),
    /// Sends a watch event that is not in the store's history.
    SendEvent {
        /// `ADDED`, `MODIFIED`, `DELETED`, or any other text.
        kind: String,
        /// The object.
        object: SentObject,
        /// Overrides `metadata.resourceVersion`; `Expected::Absent` removes it.
        resource_version: Option<Expected>,
    },
    /// Sends an ERROR event with this Status. The stream stays open until an `end` action.
    SendError(StatusSpec),
    /// Sends a bookmark.
    SendBookmark {
        /// Its resourceVersion; `None`: the current one; `Expected::Absent` or `Is("")`: sent like that.
        resource_version: Option<Expected>,
        /// Value of `k8s.io/initial-events-end`; `None`: no annotation.
        initial_events_end: Option<String>,
        /// `as:`: the name bound to its resourceVersion.
        binds: Option<String>,
    },
    /// Sends GOAWAY: the connection accepts no more requests; this response continues.
    Goaway,
    /// Ends the response now (after its head and the frames that this step already sent).
    End(Ending),
}

/// The object of a scripted event.
#[derive(Debug, Clone, PartialEq)]
pub enum SentObject {
    /// The object of this name in its current state. Nothing is sent if it does not exist.
    Stored(ObjectName),
    /// This object. If it has no uid and the store has an object of its kind and name, it gets the uid and creation
    /// timestamp of that object.
    Given(Value),
}

impl Action {
    /// Returns true if the action acts on a response, rather than on the store or the whole server.
    pub fn acts_on_response(&self) -> bool {
        match self {
            Self::Store(_) | Self::Refuse(_) => false,
            Self::Shape(_) | Self::Rule(_) | Self::Stream(_) => true,
        }
    }

    /// Returns whether the action writes objects, as any client may.
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Store(action) if action.is_write())
    }

    /// Returns the objects that the action creates or replaces.
    pub fn manifests(&self) -> &[Manifest] {
        if let Self::Store(StoreAction::Apply(manifests)) = self {
            manifests
        } else {
            &[]
        }
    }

    /// Returns what the action has of objects and resources, for a scenario that is moved to others.
    pub fn contents_mut(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Store(StoreAction::Apply(manifests)) => {
                manifests.iter_mut().map(Content::Written).collect()
            }
            Self::Store(StoreAction::Delete { objects, .. }) => {
                objects.iter_mut().map(Content::Named).collect()
            }
            Self::Store(StoreAction::Relabel { object, .. }) => vec![Content::Named(object)],
            Self::Shape(ShapeAction::EditPage(edit)) => vec![Content::Page(edit)],
            Self::Shape(ShapeAction::Reply(reply)) => match &reply.body {
                ReplyBody::Raw(text) => vec![Content::Verbatim(text.clone())],
                ReplyBody::Json(json) => vec![Content::Verbatim(json.to_string())],
                ReplyBody::Status(_) | ReplyBody::Unmodified => Vec::new(),
            },
            Self::Stream(StreamAction::Send(lines)) => {
                let text = lines.iter().map(|line| String::from_utf8_lossy(&line.bytes));
                vec![Content::Verbatim(text.collect())]
            }
            Self::Stream(StreamAction::SendEvent { kind, object, .. }) => match object {
                SentObject::Stored(name) => vec![Content::Named(name)],
                SentObject::Given(object) => vec![Content::Sent {
                    object,
                    is_bookmark: kind == "BOOKMARK",
                }],
            },
            Self::Store(_) | Self::Shape(_) | Self::Rule(_) | Self::Stream(_) | Self::Refuse(_) => Vec::new(),
        }
    }

    /// Returns why a proxy cannot do the action before an upstream, and what to do instead; `None`: it can.
    pub fn needs_model(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Store(action) => action.needs_model(),
            Self::Shape(ShapeAction::EditPage(_)) => Some((
                "a proxy sends a list on while it arrives, and cannot change it",
                "reply with a list of your own (`reply: {status: 200, json: …}`), or make a stale one: freeze_watch_cache",
            )),
            Self::Shape(ShapeAction::Reply(Reply {
                body: ReplyBody::Unmodified,
                ..
            })) => Some((
                "a proxy has no body of the upstream before it asks",
                "reply with a body of your own (`json` or `body`)",
            )),
            Self::Stream(StreamAction::SendEvent {
                object: SentObject::Stored(_),
                ..
            }) => Some((
                "a proxy keeps no objects",
                "write the object into the rule, or repeat an event: repeat_event",
            )),
            Self::Shape(_) | Self::Rule(_) | Self::Stream(_) | Self::Refuse(_) => None,
        }
    }

    /// Returns the part of a response that the action changes; `None`: none, or its connection.
    pub(crate) fn part(&self) -> Option<Part> {
        match self {
            Self::Store(_) | Self::Refuse(_) | Self::Stream(StreamAction::Goaway) => None,
            Self::Shape(action) => Some(match action {
                ShapeAction::Reply(reply) => Part::Whole {
                    is_silent: false,
                    after_write: reply.after_write,
                },
                ShapeAction::NoAnswer(_) => Part::Whole {
                    is_silent: true,
                    after_write: false,
                },
                ShapeAction::LoseAnswer(_) => Part::Whole {
                    is_silent: true,
                    after_write: true,
                },
                ShapeAction::EditPage(_) => Part::Page,
                ShapeAction::Delay(_) => Part::Start,
                ShapeAction::Gzip => Part::Coding,
                ShapeAction::Pace(Pace::Coalesce { .. }) => Part::Events,
                ShapeAction::Pace(Pace::Drip { .. } | Pace::SplitUtf8) => Part::Body,
            }),
            Self::Rule(RuleAction::Truncate { cut, .. }) => Some(Part::Cut {
                by_events: matches!(cut, Cut::AfterEvents { .. }),
            }),
            Self::Rule(RuleAction::EndAfter { .. }) => Some(Part::Body),
            Self::Stream(StreamAction::End(_)) => Some(Part::End),
            Self::Rule(_) | Self::Stream(_) => Some(Part::Events),
        }
    }

    /// Returns the field for the name of what the action writes.
    pub(crate) fn binds_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Store(StoreAction::Apply(objects)) => objects.last_mut().map(|object| &mut object.binds),
            Self::Store(StoreAction::Delete { binds, .. } | StoreAction::Relabel { binds, .. })
            | Self::Stream(StreamAction::SendBookmark { binds, .. }) => Some(binds),
            Self::Store(_) | Self::Shape(_) | Self::Rule(_) | Self::Stream(_) | Self::Refuse(_) => None,
        }
    }
}

impl StoreAction {
    /// Returns whether the action writes objects, as any client may.
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Apply(_) | Self::Delete { .. } | Self::Relabel { .. })
    }

    fn needs_model(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Apply(_) | Self::Delete { .. } | Self::Relabel { .. } => Some((
                "a proxy writes to the upstream only where that is allowed",
                "start it with --allow-writes, or write with kubectl, through the proxy or beside it",
            )),
            Self::Compact => Some((
                "only the upstream's etcd can be compacted, and a proxy never changes it",
                "expire watches (`ctl expire`, `ctl expire --status`), and continue tokens: \
                 `when: {page: 2}, do: {reply: {status: 410, reason: Expired}}`",
            )),
            Self::Restore { .. } => Some((
                "a proxy cannot take the upstream back to an older revision",
                "replay the scenario on `fake-apiserver serve`, or make reads stale: freeze_watch_cache",
            )),
            Self::JumpClock { .. } => Some((
                "the upstream's clock is not the proxy's",
                "use `fake-apiserver serve`",
            )),
            Self::ClearWatchCache(_) => Some((
                "the watch caches of the upstream are its own",
                "end watches (`ctl cut`), and answer the next with 410 (`ctl expire --status`)",
            )),
            Self::Restart(Restart { filling_ms: 1.., .. }) => Some((
                "the watch caches of the upstream are its own, and do not fill again",
                "restart without `filling`, and answer the next requests with 429 (`ctl fail 429`)",
            )),
            Self::Restart(_)
            | Self::FreezeWatchCache(_)
            | Self::LagWatchCache { .. }
            | Self::ThawWatchCache(_) => None,
        }
    }
}

/// What an action has of objects and resources.
#[derive(Debug, PartialEq)]
pub enum Content<'a> {
    /// An object that is written.
    Written(&'a mut Manifest),
    /// The name of an object.
    Named(&'a mut ObjectName),
    /// An object that is sent.
    Sent {
        /// The object.
        object: &'a mut Value,
        /// In a bookmark.
        is_bookmark: bool,
    },
    /// Changes to a page.
    Page(&'a mut PageEdit),
    /// A text that is sent as it is.
    Verbatim(String),
}

/// The part of a response that an action changes, which decides where it may stand in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole {
        /// Nothing is sent.
        is_silent: bool,
        /// The request is carried out first.
        after_write: bool,
    },
    /// The page of a list.
    Page,
    /// When it starts.
    Start,
    /// Its content coding.
    Coding,
    /// Events of a watch.
    Events,
    /// How its body is written.
    Body,
    /// The length of its body.
    Cut {
        /// Counted in events of a watch.
        by_events: bool,
    },
    /// Its end.
    End,
}

/// A scripted response.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Additional headers; a `Content-Type` replaces the default one.
    pub headers: Vec<(String, String)>,
    /// `Retry-After` header, verbatim (seconds or a date).
    pub retry_after: Option<String>,
    /// The body.
    pub body: ReplyBody,
    /// Whether the request is carried out first, so that a write is stored although the response is this one.
    pub after_write: bool,
}

impl Reply {
    /// Returns a response without additional headers, for a request that is not carried out.
    pub fn new(status: u16, body: ReplyBody) -> Self {
        Self {
            status,
            headers: Vec::new(),
            retry_after: None,
            body,
            after_write: false,
        }
    }
}

/// The body of a scripted response.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyBody {
    /// A Status.
    Status(StatusSpec),
    /// Text, sent verbatim.
    Raw(String),
    /// JSON.
    Json(Value),
    /// The body of the normal response (with a different status or headers).
    Unmodified,
}

/// A scripted Kubernetes Status. `None` fields are omitted from the JSON.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusSpec {
    /// `code`.
    pub code: Option<u16>,
    /// `reason`.
    pub reason: Option<String>,
    /// `message`.
    pub message: Option<String>,
    /// `details.retryAfterSeconds`.
    pub retry_after_seconds: Option<u32>,
    /// `details.causes[].reason`.
    pub causes: Vec<String>,
    /// Adds `metadata.continue`: an inconsistent token derived from the one in the request.
    pub inconsistent_token: bool,
}

/// Changes to a LIST response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageEdit {
    /// `metadata.resourceVersion`; `Expected::Absent` removes it.
    pub resource_version: Option<Expected>,
    /// `metadata.continue`; `Expected::Absent` removes it. Any other text is an alias: a request with it is handled
    /// as if it had sent the original token.
    pub continue_token: Option<Expected>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// Names of items to remove (`*`: all).
    pub without: Vec<String>,
    /// Items to append, verbatim.
    pub add: Vec<Value>,
    /// Writes `items` as `null` instead of `[]`, or omits it.
    pub items: Option<ItemsShape>,
    /// Replaces the list's `kind`.
    pub kind: Option<String>,
}

/// How an empty `items` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemsShape {
    /// `"items":null`.
    Null,
    /// No `items` key.
    Missing,
}

/// Raw bytes for a watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    /// The bytes; not necessarily UTF-8.
    pub bytes: Vec<u8>,
    /// Whether to append `\n`. Default true.
    pub newline: bool,
}
