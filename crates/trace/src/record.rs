//! What happened, in one append-only order: the wire as the server saw it, the truth as it changed, the script's
//! steps, and what the client reported. Transcript, checks and invariants are read off these records alone.
//!
//! A record carries an object's identity and version, and its content only where a run compares the client's cache with
//! the store (`sim`, `live`): never on a server that is served, and never of a Secret. Reports of such a client carry it
//! too.

pub mod line;

use std::sync::Arc;
use std::time::Duration;

pub use apimachinery::ObjectRef;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::fault::Ending;
use crate::report::Report;

/// A connection, numbered in order of acceptance from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u64);

/// A request and its answer, numbered in order of arrival from 1 over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamId(pub u64);

/// One of the apiservers on the same store, each with its port and its watch caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replica {
    /// The first, which always exists.
    #[default]
    Primary,
    /// The second (`serve --secondary`).
    Secondary,
}

impl Replica {
    /// The word for it: `primary`, `secondary`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

/// One entry of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the trace, from 0.
    pub seq: u64,
    /// Time since the server started (virtual in `sim`, real in `live`).
    pub at: Duration,
    /// What happened.
    pub what: What,
}

/// What kind of read a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A collection read without `watch`.
    List,
    /// A collection read with a truthy `watch`, without `sendInitialEvents=true`.
    Watch,
    /// A watch with `sendInitialEvents=true` (streaming list).
    WatchList,
    /// Everything else: single objects, writes, discovery, unknown paths.
    Other,
}

impl Verb {
    /// The word for it in transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::WatchList => "WATCH-LIST",
            Self::Other => "OTHER",
        }
    }
}

/// The `type` of a watch event, or what stood in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameType {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
    /// `BOOKMARK`; the value of the `k8s.io/initial-events-end` annotation if present.
    Bookmark {
        /// The annotation's value, verbatim.
        initial_events_end: Option<String>,
    },
    /// `ERROR` with the code and reason of its Status (0 and empty where absent).
    Error {
        /// `code`.
        code: u16,
        /// `reason`.
        reason: String,
    },
    /// Bytes that are no watch event of a known type.
    Raw,
}

impl FrameType {
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark { .. } | Self::Error { .. } | Self::Raw => false,
        }
    }
}

/// One line of a watch stream as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The event's type.
    pub kind: FrameType,
    /// The object's identity; `None` for `ERROR` and raw frames. Every watch that is shown the event shares it.
    pub object: Option<Arc<ObjectRef>>,
    /// Length of the line in bytes, the newline included.
    pub bytes: u64,
    /// Bytes of it that were sent. Less than `bytes`: the line was torn.
    pub sent: u64,
    /// True when the script made, changed, repeated or moved this frame: the server lied here.
    pub scripted: bool,
}

impl Frame {
    /// Every byte of the line was sent.
    pub fn whole(&self) -> bool {
        self.sent == self.bytes
    }
}

/// How the truth changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteOp {
    /// The object is new.
    Create,
    /// The object changed.
    Update,
    /// The object is gone.
    Delete,
}

/// A truthful object state, kept so that a trace can be judged without asking the model again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Resource (plural, e.g. `configmaps`).
    pub resource: String,
    /// The object's identity and the resourceVersion of this write.
    pub object: ObjectRef,
    /// What the write did.
    pub op: WriteOp,
    /// Does the object pass the namespace and selectors of the scenario's client after this write?
    pub selected: bool,
    /// The object as stored after the write (before it, for a delete); `None` where it is not compared with what a client
    /// reports, and for Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// Who ended something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The fake.
    Server,
    /// The client under test.
    Client,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A connection was accepted.
    Connected {
        /// Its number.
        conn: ConnId,
        /// The port it came to.
        #[serde(default)]
        replica: Replica,
        /// The port it came from; `None` where it is no socket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<u16>,
    },
    /// A connection takes no more requests, because the script says so.
    Goaway {
        /// Its number.
        conn: ConnId,
    },
    /// A connection was refused, because the script says the server is down.
    Refused,
    /// A connection is gone.
    Disconnected {
        /// Its number.
        conn: ConnId,
        /// Who ended it.
        by: Side,
    },
    /// A request arrived whole.
    Request {
        /// Its number.
        stream: StreamId,
        /// The connection it came on.
        conn: ConnId,
        /// LIST, WATCH, streaming list or something else.
        verb: Verb,
        /// HTTP method.
        method: String,
        /// Path without the query.
        path: String,
        /// Query parameters, decoded, in the order sent.
        query: Vec<(String, String)>,
        /// The `Accept` header, verbatim.
        accept: Option<String>,
        /// The `User-Agent` header, verbatim.
        #[serde(default)]
        user_agent: Option<String>,
        /// The port its connection came to.
        #[serde(default)]
        replica: Replica,
        /// Which option rules of the API the request breaks (INV-15); empty for a legal request.
        violations: Vec<String>,
    },
    /// The head of an answer was sent.
    Head {
        /// The request it answers.
        stream: StreamId,
        /// HTTP status.
        status: u16,
        /// `Retry-After`, verbatim.
        retry_after: Option<String>,
        /// True when the script wrote this answer.
        scripted: bool,
    },
    /// A LIST body was sent whole.
    Page {
        /// The request it answers.
        stream: StreamId,
        /// `metadata.resourceVersion`.
        resource_version: String,
        /// `metadata.continue`; empty on the last page.
        continue_token: String,
        /// `metadata.remainingItemCount`.
        remaining: Option<i64>,
        /// The items, in order.
        items: Vec<ObjectRef>,
        /// True when the script changed it.
        scripted: bool,
    },
    /// Another body was sent whole: a Status, a single object, anything scripted.
    Body {
        /// The request it answers.
        stream: StreamId,
        /// Length in bytes.
        bytes: u64,
        /// `reason` if the body is a Status.
        reason: Option<String>,
        /// `message` if the body is a Status.
        message: Option<String>,
        /// `metadata.continue` of an Expired Status that offers an inconsistent token.
        continue_token: Option<String>,
    },
    /// A body that should have been sent whole was cut.
    Torn {
        /// The request it answers.
        stream: StreamId,
        /// Bytes sent.
        sent: u64,
        /// Bytes it would have had.
        bytes: u64,
    },
    /// A line of a watch stream was sent, whole or in part.
    Frame {
        /// The watch.
        stream: StreamId,
        /// The line.
        frame: Frame,
    },
    /// An answer is over.
    End {
        /// The request it answered.
        stream: StreamId,
        /// How.
        how: Ending,
        /// Who ended it.
        by: Side,
    },
    /// A truthful event was due on a watch and the script kept it back for good.
    Withheld {
        /// The watch.
        stream: StreamId,
        /// The event's object.
        object: ObjectRef,
    },
    /// The truth changed.
    Wrote(Truth),
    /// The store went back to an earlier revision, as after restoring a backup: later writes never happened.
    Restored {
        /// The revision it is at now.
        to: u64,
    },
    /// The truth changed in another way: compaction, watch cache cleared, frozen, thawed.
    Turned {
        /// In words, e.g. `compacted below 1007`.
        how: String,
        /// The server's current resourceVersion after it.
        resource_version: u64,
    },
    /// A step's trigger was met and its actions are decided.
    Step {
        /// Index in the scenario, from 0.
        step: usize,
        /// In words, for the transcript.
        how: String,
    },
    /// A rule was met, or something was done at once from outside, and its actions are decided.
    Rule {
        /// Its name, or its number.
        rule: String,
        /// The request that met it; `None` for what was done at once.
        stream: Option<StreamId>,
        /// In words.
        how: String,
    },
    /// A name of the scenario file got its value.
    Bound {
        /// The name, without the `$`.
        name: String,
        /// What `$name` stands for: a resourceVersion.
        value: String,
        /// What `$name.continue` stands for.
        continue_token: Option<String>,
    },
    /// Every step is done.
    ScriptDone,
    /// The client reported something.
    Reported(Report),
    /// The harness told the client to stop.
    StopRequested,
    /// The time a stopped client has to close its connections ran out, and so many are still open.
    LeftOpen {
        /// How many.
        connections: u64,
    },
    /// The run is over.
    RunEnded(RunEnd),
}

impl What {
    /// The request it is about; `None` for what concerns a connection, the truth, the script or the client.
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Request { stream, .. }
            | Self::Head { stream, .. }
            | Self::Page { stream, .. }
            | Self::Body { stream, .. }
            | Self::Torn { stream, .. }
            | Self::Frame { stream, .. }
            | Self::Withheld { stream, .. }
            | Self::End { stream, .. } => Some(*stream),
            Self::Connected { .. }
            | Self::Goaway { .. }
            | Self::Refused
            | Self::Disconnected { .. }
            | Self::Wrote(_)
            | Self::Restored { .. }
            | Self::Turned { .. }
            | Self::Step { .. }
            | Self::Rule { .. }
            | Self::Bound { .. }
            | Self::ScriptDone
            | Self::Reported(_)
            | Self::StopRequested
            | Self::LeftOpen { .. }
            | Self::RunEnded(_) => None,
        }
    }

    /// The name of its kind, for logs: nothing of its content.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Goaway { .. } => "goaway",
            Self::Refused => "refused",
            Self::Disconnected { .. } => "disconnected",
            Self::Request { .. } => "request",
            Self::Head { .. } => "head",
            Self::Page { .. } => "page",
            Self::Body { .. } => "body",
            Self::Torn { .. } => "torn",
            Self::Frame { .. } => "frame",
            Self::End { .. } => "end",
            Self::Withheld { .. } => "withheld",
            Self::Wrote(_) => "wrote",
            Self::Restored { .. } => "restored",
            Self::Turned { .. } => "turned",
            Self::Step { .. } => "step",
            Self::Rule { .. } => "rule",
            Self::Bound { .. } => "bound",
            Self::ScriptDone => "script_done",
            Self::Reported(_) => "reported",
            Self::StopRequested => "stop_requested",
            Self::LeftOpen { .. } => "left_open",
            Self::RunEnded(_) => "run_ended",
        }
    }
}

/// Why a run is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Every step is done, and the cache equals the truth (or need not) and stayed so for the settle time.
    Complete,
    /// Every step is done, but the cache never came to equal the truth in time.
    NotConverged {
        /// How long was waited, in milliseconds.
        waited_ms: u64,
    },
    /// A step's trigger was not met in time.
    Stuck {
        /// Index of the step, from 0.
        step: usize,
        /// How long was waited, in milliseconds.
        waited_ms: u64,
        /// What was waited for, in words.
        waiting_for: String,
    },
    /// A step can no longer be met, e.g. it waits for the 2nd WATCH and the 3rd just came.
    Missed {
        /// Index of the step, from 0.
        step: usize,
        /// What came instead, in words.
        because: String,
    },
    /// The client's stream ended or it crashed; nothing more can happen.
    ClientGone,
    /// The bound on records or requests was hit: a hot loop.
    Runaway {
        /// How many requests had come.
        requests: u64,
    },
    /// The harness itself is at fault.
    Harness {
        /// What went wrong.
        message: String,
    },
}
