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

/// Changes to the store's events on a stream.
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

    /// Returns the word in scenario files and transcripts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Store(action) => match action {
                StoreAction::Apply(_) => "apply",
                StoreAction::Delete { .. } => "delete",
                StoreAction::Relabel { .. } => "relabel",
                StoreAction::Compact => "compact",
                StoreAction::ClearWatchCache(_) => "clear_watch_cache",
                StoreAction::FreezeWatchCache(_) => "freeze_watch_cache",
                StoreAction::LagWatchCache { .. } => "lag_watch_cache",
                StoreAction::ThawWatchCache(_) => "thaw_watch_cache",
                StoreAction::Restore { .. } => "restore",
                StoreAction::Restart(_) => "restart",
                StoreAction::JumpClock { .. } => "jump_clock",
            },
            Self::Shape(action) => match action {
                ShapeAction::Reply(_) => "reply",
                ShapeAction::EditPage(_) => "edit_page",
                ShapeAction::Delay(_) => "delay",
                ShapeAction::Pace(Pace::Drip { .. }) => "drip",
                ShapeAction::Pace(Pace::SplitUtf8) => "split_utf8",
                ShapeAction::Pace(Pace::Coalesce { .. }) => "coalesce",
                ShapeAction::Gzip => "gzip",
                ShapeAction::NoAnswer(_) => "no_answer",
                ShapeAction::LoseAnswer(_) => "lose_answer",
            },
            Self::Rule(action) => match action {
                RuleAction::DropEvents(_) => "drop_events",
                RuleAction::RepeatEvent(_) => "repeat_event",
                RuleAction::ReorderEvents(_) => "reorder_events",
                RuleAction::NoBookmarks => "no_bookmarks",
                RuleAction::EndMarker(_) => "end_marker",
                RuleAction::Truncate { .. } => "truncate",
            },
            Self::Stream(action) => match action {
                StreamAction::Send(_) => "send",
                StreamAction::SendEvent { .. } => "event",
                StreamAction::SendError(_) => "error",
                StreamAction::SendBookmark { .. } => "bookmark",
                StreamAction::Goaway => "goaway",
                StreamAction::End(_) => "end",
            },
            Self::Refuse(_) => "refuse",
        }
    }
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
