//! What a step can do: change the truth, shape an answer, set a rule on it, say something the truth would not.
//!
//! The four kinds are told apart by when they take effect on the request that met their step (see `server/act.rs`);
//! what they do is decided there and in `server/exchange.rs`.

use serde_json::Value;
use trace::fault::{Cut, Ending, Pace};

use super::{Expected, Manifest, ObjectName, Ref};

/// One thing a step does.
///
/// All but the first and the last kind concern an answer: that of the request the step waited for, else the newest open
/// watch, and if there is none the step waits for one.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the truth.
    Truth(TruthAction),
    /// Decides what the answer is, before anything of it is sent.
    Shape(ShapeAction),
    /// Holds for what the truth has to say from here on.
    Rule(RuleAction),
    /// Is said now, after what the truth had to say so far.
    Say(SayAction),
    /// New connections are refused for so many milliseconds.
    Refuse(u64),
}

/// How the truth changes.
#[derive(Debug, Clone, PartialEq)]
pub enum TruthAction {
    /// Create the object, or replace it if it exists.
    Apply(Vec<Manifest>),
    /// Delete the objects.
    Delete {
        /// Which objects.
        objects: Vec<ObjectName>,
        /// `as:`: the name bound to the resourceVersion of the last deletion.
        binds: Option<String>,
    },
    /// Change labels; `None` removes one.
    Relabel {
        /// Which object.
        object: ObjectName,
        /// Label to value.
        labels: Vec<(String, Option<String>)>,
        /// `as:`: the name bound to the resourceVersion of this write.
        binds: Option<String>,
    },
    /// Forget history: exact lists and continue tokens below the current revision are 410 from now on, and so are
    /// watches below it (the watch cache is evicted up to now).
    Compact,
    /// Relist the watch cache: every open watch of the target ends cleanly, and older starts are 410.
    ClearWatchCache,
    /// The watch cache stops following the store: cached reads are stale, nothing new reaches watches.
    FreezeWatchCache,
    /// It follows the store, but sees every write so many milliseconds later.
    LagWatchCache {
        /// How many.
        by_ms: u64,
    },
    /// It catches up, and follows at once again.
    ThawWatchCache,
    /// The store goes back to an earlier state and revision, as after restoring a backup.
    Restore {
        /// The resourceVersion to go back to.
        to: Ref,
    },
}

/// What an answer is instead of the truth, or how it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeAction {
    /// Answer the request with this instead of the truth.
    Reply(Reply),
    /// Answer a LIST truthfully but for this.
    EditPage(PageEdit),
    /// The answer's head (and all after it) comes so many milliseconds late.
    Delay(u64),
    /// How the body is cut into writes.
    Pace(Pace),
    /// The body is compressed, where the request takes that.
    Gzip,
    /// The request is never answered, not even with a head: the connection ends so, or stays silent.
    NoAnswer(Ending),
}

/// What is done to the events the truth has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// The next so many truthful events of the stream are never sent, though the truth moved on.
    DropEvents(u32),
    /// The next truthful event is sent so many times.
    RepeatEvent(u32),
    /// The next so many truthful events are held and sent in reverse order.
    ReorderEvents(u32),
    /// The stream sends no bookmarks from now on: neither periodic ones nor the end marker.
    NoBookmarks,
    /// The end marker's annotation has this value instead of `"true"`; `None`: the bookmark comes without it.
    EndMarker(Option<String>),
    /// The body is cut there and ends so.
    Truncate {
        /// Where.
        cut: Cut,
        /// How.
        ending: Ending,
    },
}

/// What the script says on a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum SayAction {
    /// Send these bytes on the watch, each entry with a newline at its end unless it says otherwise.
    Send(Vec<RawFrame>),
    /// Send a watch event the truth knows nothing of.
    SendEvent {
        /// `ADDED`, `MODIFIED`, `DELETED`, or any other word.
        kind: String,
        /// The object.
        object: SentObject,
        /// Overrides `metadata.resourceVersion`; `Expected::Absent` removes it.
        resource_version: Option<Expected>,
    },
    /// Send an ERROR event with this Status. The stream stays open until an `end` says otherwise.
    SendError(StatusSpec),
    /// Send a bookmark now.
    SendBookmark {
        /// Its resourceVersion; `None`: the current one; `Expected::Absent` or `Is("")`: as written.
        resource_version: Option<Expected>,
        /// Value of `k8s.io/initial-events-end`; `None`: no annotation.
        initial_events_end: Option<String>,
        /// `as:`: the name bound to its resourceVersion.
        binds: Option<String>,
    },
    /// The connection of the answer takes no more requests; this answer goes on.
    Goaway,
    /// The answer ends so, now (after its head and what this step already sent).
    End(Ending),
}

/// The object of a scripted event.
#[derive(Debug, Clone, PartialEq)]
pub enum SentObject {
    /// The one of this name as it is in the store at that moment. If there is none, nothing is sent.
    Stored(ObjectName),
    /// This, as is; where an object of its kind and name is in the store and it has no uid, with the uid and the creation
    /// time of that one.
    Given(Value),
}

impl Action {
    /// Does it concern an answer, rather than the truth or the server as a whole?
    pub fn concerns_answer(&self) -> bool {
        match self {
            Self::Truth(_) | Self::Refuse(_) => false,
            Self::Shape(_) | Self::Rule(_) | Self::Say(_) => true,
        }
    }

    /// The word for it in scenario files and transcripts.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Truth(action) => match action {
                TruthAction::Apply(_) => "apply",
                TruthAction::Delete { .. } => "delete",
                TruthAction::Relabel { .. } => "relabel",
                TruthAction::Compact => "compact",
                TruthAction::ClearWatchCache => "clear_watch_cache",
                TruthAction::FreezeWatchCache => "freeze_watch_cache",
                TruthAction::LagWatchCache { .. } => "lag_watch_cache",
                TruthAction::ThawWatchCache => "thaw_watch_cache",
                TruthAction::Restore { .. } => "restore",
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
            },
            Self::Rule(action) => match action {
                RuleAction::DropEvents(_) => "drop_events",
                RuleAction::RepeatEvent(_) => "repeat_event",
                RuleAction::ReorderEvents(_) => "reorder_events",
                RuleAction::NoBookmarks => "no_bookmarks",
                RuleAction::EndMarker(_) => "end_marker",
                RuleAction::Truncate { .. } => "truncate",
            },
            Self::Say(action) => match action {
                SayAction::Send(_) => "send",
                SayAction::SendEvent { .. } => "event",
                SayAction::SendError(_) => "error",
                SayAction::SendBookmark { .. } => "bookmark",
                SayAction::Goaway => "goaway",
                SayAction::End(_) => "end",
            },
            Self::Refuse(_) => "refuse",
        }
    }
}

/// A scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers beside those every answer has; replaces `Content-Type` if given.
    pub headers: Vec<(String, String)>,
    /// `Retry-After`, verbatim (seconds or a date).
    pub retry_after: Option<String>,
    /// The body.
    pub body: ReplyBody,
}

/// The body of a scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyBody {
    /// A Status.
    Status(StatusSpec),
    /// Text, as is.
    Raw(String),
    /// JSON.
    Json(Value),
    /// What the truthful answer would have been (with another status or headers).
    Truth,
}

/// A Kubernetes Status, as scripted. What is `None` is left out of the JSON.
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
    /// `metadata.continue`: offer an inconsistent token made from the one in the request.
    pub inconsistent_token: bool,
}

/// What to change in a truthful LIST answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageEdit {
    /// `metadata.resourceVersion`; `Expected::Absent` removes it.
    pub resource_version: Option<Expected>,
    /// `metadata.continue`; `Expected::Absent` removes it. Any other text is made up: a request that brings it back is
    /// answered as if it had brought the truthful token.
    pub continue_token: Option<Expected>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// Names of items to leave out (`*`: all).
    pub without: Vec<String>,
    /// Items to add at the end, as is.
    pub add: Vec<Value>,
    /// `items` is `null` instead of `[]`, or missing.
    pub items: Option<ItemsShape>,
    /// Replaces `kind` of the list.
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

/// Bytes to put on a watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFrame {
    /// The bytes; not always UTF-8.
    pub bytes: Vec<u8>,
    /// Add `\n`. Default true.
    pub newline: bool,
}
