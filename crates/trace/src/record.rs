//! The append-only trace of a run: the wire as the server saw it, writes to the store, the script's steps, and the
//! client's reports. Transcripts, checks and invariants are computed from these records alone.
//!
//! A record contains an object's identity and version. It contains content only if the run compares the client's
//! cache with the store (`sim`, `live`); never for a server started with `serve`, and never for a Secret. The reports
//! of such a client contain it too.

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

/// A request and its response, numbered in order of arrival from 1 over all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StreamId(pub u64);

/// One of the apiservers on the same store, each with its own port and watch caches.
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
    /// Returns the word in transcripts: `primary`, `secondary`.
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
    /// The event.
    pub what: What,
}

/// The read verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A GET of a collection without `watch`.
    List,
    /// A GET of a collection with a truthy `watch`, without `sendInitialEvents=true`.
    Watch,
    /// A watch with `sendInitialEvents=true` (streaming list).
    WatchList,
    /// Everything else: single objects, writes, discovery, unknown paths.
    Other,
}

impl Verb {
    /// Returns the word in transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::WatchList => "WATCH-LIST",
            Self::Other => "OTHER",
        }
    }
}

/// The `type` of a watch event, or `Raw` for bytes that are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrameType {
    /// `ADDED`.
    Added,
    /// `MODIFIED`.
    Modified,
    /// `DELETED`.
    Deleted,
    /// `BOOKMARK`, with the value of the `k8s.io/initial-events-end` annotation if present.
    Bookmark {
        /// The annotation's value, verbatim.
        initial_events_end: Option<String>,
    },
    /// `ERROR`, with code and reason of its Status (0 and empty if absent).
    Error {
        /// `code`.
        code: u16,
        /// `reason`.
        reason: String,
    },
    /// Bytes that are not a watch event of a known type.
    Raw,
}

impl FrameType {
    /// Returns true for `ADDED`, `MODIFIED` and `DELETED`.
    pub fn is_change(&self) -> bool {
        match self {
            Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark { .. } | Self::Error { .. } | Self::Raw => false,
        }
    }
}

/// A line of a watch stream as sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The event's type.
    pub kind: FrameType,
    /// Identity of the object; `None` for `ERROR` and raw frames. Shared by all watches that receive the event.
    pub object: Option<Arc<ObjectRef>>,
    /// Length of the line in bytes, including the newline.
    pub bytes: u64,
    /// Number of its bytes that were sent; less than `bytes` if the line was truncated.
    pub sent: u64,
    /// True if the script created, changed, repeated or moved this frame, so that it differs from the store's events.
    pub scripted: bool,
}

impl Frame {
    /// Returns true if every byte of the line was sent.
    pub fn whole(&self) -> bool {
        self.sent == self.bytes
    }
}

/// The type of a write to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteOp {
    /// The object was created.
    Create,
    /// The object was updated.
    Update,
    /// The object was deleted.
    Delete,
}

/// A write to the store, recorded so that a trace can be judged without the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreWrite {
    /// Resource (plural, e.g. `configmaps`).
    pub resource: String,
    /// The object's identity and the resourceVersion of this write.
    pub object: ObjectRef,
    /// The type of write.
    pub op: WriteOp,
    /// Whether the object matches the namespace and selectors of the scenario's client after this write.
    pub selected: bool,
    /// The request that made the write, or led to it; `None` for a write of the script or of the control API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<StreamId>,
    /// The object as stored after the write (before it, for a delete); `None` for Secrets, and if content is not
    /// compared with the client's reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// The side that ended a connection or response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The fake apiserver.
    Server,
    /// The client under test.
    Client,
}

/// What a record describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A connection was accepted.
    Connected {
        /// Number of the connection.
        conn: ConnId,
        /// The replica whose port was connected to.
        #[serde(default)]
        replica: Replica,
        /// The client's port; `None` if the connection is not a socket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<u16>,
    },
    /// The script made a connection refuse further requests (HTTP/2 GOAWAY).
    Goaway {
        /// Number of the connection.
        conn: ConnId,
    },
    /// A connection was refused because the script simulates a server that is down.
    Refused,
    /// A connection was closed.
    Disconnected {
        /// Number of the connection.
        conn: ConnId,
        /// The side that closed it.
        by: Side,
    },
    /// A complete request arrived.
    Request {
        /// Number of the request.
        stream: StreamId,
        /// The connection it came on.
        conn: ConnId,
        /// LIST, WATCH, streaming list or other.
        verb: Verb,
        /// HTTP method.
        method: String,
        /// Path without the query.
        path: String,
        /// Query parameters, decoded, in the order sent.
        query: Vec<(String, String)>,
        /// `Accept` header, verbatim.
        accept: Option<String>,
        /// `User-Agent` header, verbatim.
        #[serde(default)]
        user_agent: Option<String>,
        /// The replica whose port it was sent to.
        #[serde(default)]
        replica: Replica,
        /// List option rules of the API that the request violates (INV-15); empty for a valid request.
        violations: Vec<String>,
    },
    /// The head of a response was sent.
    Head {
        /// The request it belongs to.
        stream: StreamId,
        /// HTTP status.
        status: u16,
        /// `Retry-After` header, verbatim.
        retry_after: Option<String>,
        /// True if the script wrote this response.
        scripted: bool,
    },
    /// A complete LIST body was sent.
    Page {
        /// The request it belongs to.
        stream: StreamId,
        /// `metadata.resourceVersion`.
        resource_version: String,
        /// `metadata.continue`; empty on the last page.
        continue_token: String,
        /// `metadata.remainingItemCount`.
        remaining: Option<i64>,
        /// The items, in order.
        items: Vec<ObjectRef>,
        /// True if the script changed it.
        scripted: bool,
    },
    /// Another complete body was sent: a Status, a single object, or anything scripted.
    Body {
        /// The request it belongs to.
        stream: StreamId,
        /// Length in bytes.
        bytes: u64,
        /// `reason` if the body is a Status.
        reason: Option<String>,
        /// `message` if the body is a Status.
        message: Option<String>,
        /// `metadata.continue` of an Expired Status with an inconsistent token.
        continue_token: Option<String>,
    },
    /// A body was truncated.
    Torn {
        /// The request it belongs to.
        stream: StreamId,
        /// Number of bytes sent.
        sent: u64,
        /// Full length in bytes.
        bytes: u64,
    },
    /// A line of a watch stream was sent, completely or in part.
    Frame {
        /// The watch.
        stream: StreamId,
        /// The line.
        frame: Frame,
    },
    /// A response ended.
    End {
        /// The request it belongs to.
        stream: StreamId,
        /// How it ended.
        how: Ending,
        /// The side that ended it.
        by: Side,
    },
    /// The script dropped an event of the store that was due on a watch.
    Withheld {
        /// The watch.
        stream: StreamId,
        /// The object of the event.
        object: ObjectRef,
    },
    /// An object was written to the store.
    Wrote(StoreWrite),
    /// The store was restored to an earlier revision, as from a backup; later writes are undone.
    Restored {
        /// The revision after the restore.
        to: u64,
    },
    /// Another change of store or watch cache: compaction; watch cache cleared, frozen or thawed.
    Turned {
        /// Description, e.g. `compacted below 1007`.
        how: String,
        /// The server's resourceVersion after the change.
        resource_version: u64,
    },
    /// A step's trigger was met; its actions are decided.
    Step {
        /// Index in the scenario, from 0.
        step: usize,
        /// Description for the transcript.
        how: String,
    },
    /// A rule matched, or a rule without trigger was applied; its actions are decided.
    Rule {
        /// Name or number of the rule.
        rule: String,
        /// The request that matched; `None` for a rule without trigger.
        stream: Option<StreamId>,
        /// Description.
        how: String,
    },
    /// A name of the scenario file was bound to a value.
    Bound {
        /// The name, without the `$`.
        name: String,
        /// Value of `$name`: a resourceVersion.
        value: String,
        /// Value of `$name.continue`.
        continue_token: Option<String>,
    },
    /// Every step is done.
    ScriptDone,
    /// A webhook was called, and there is an outcome.
    Webhook {
        /// The request that waited for it.
        stream: StreamId,
        /// Name of the webhook.
        webhook: String,
        /// URL that was POSTed to.
        url: String,
        /// `allowed`, `denied`, `patched`, `converted`, `rejected`, the HTTP status of an error, or why there was no response.
        verdict: String,
        /// Time from call to outcome.
        took: Duration,
    },
    /// The client reported something.
    Reported(Report),
    /// The process of the client exited by itself.
    ClientExited {
        /// Exit code; `None` if a signal killed it.
        code: Option<i32>,
        /// Number of the signal that killed it.
        signal: Option<i32>,
    },
    /// The harness started the client again after it exited with an error, as a kubelet does. The new process has an empty
    /// cache.
    ClientRestarted {
        /// Number of the restart, from 1.
        restart: u32,
    },
    /// The harness asked the client to stop.
    StopRequested,
    /// The time for a stopped client to close its connections is over, and some are still open.
    LeftOpen {
        /// Number of open connections.
        connections: u64,
    },
    /// The run ended.
    RunEnded(RunEnd),
}

impl What {
    /// Returns the request that the record belongs to; `None` for connections, writes, the script and the client.
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Self::Request { stream, .. }
            | Self::Head { stream, .. }
            | Self::Page { stream, .. }
            | Self::Body { stream, .. }
            | Self::Torn { stream, .. }
            | Self::Frame { stream, .. }
            | Self::Withheld { stream, .. }
            | Self::Webhook { stream, .. }
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
            | Self::ClientExited { .. }
            | Self::ClientRestarted { .. }
            | Self::StopRequested
            | Self::LeftOpen { .. }
            | Self::RunEnded(_) => None,
        }
    }

    /// Returns the name of the variant, for logs.
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
            Self::Webhook { .. } => "webhook",
            Self::Reported(_) => "reported",
            Self::ClientExited { .. } => "client_exited",
            Self::ClientRestarted { .. } => "client_restarted",
            Self::StopRequested => "stop_requested",
            Self::LeftOpen { .. } => "left_open",
            Self::RunEnded(_) => "run_ended",
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// All steps are done, and the cache equals the store (or need not) and stayed equal for the settle time.
    Complete,
    /// All steps are done, but the cache did not equal the store in time.
    NotConverged {
        /// How long the run waited, in milliseconds.
        waited_ms: u64,
    },
    /// A step's trigger was not met in time.
    Stuck {
        /// Index of the step, from 0.
        step: usize,
        /// How long the step waited, in milliseconds.
        waited_ms: u64,
        /// Description of the trigger.
        waiting_for: String,
    },
    /// A step can no longer be met, e.g. it waits for the 2nd WATCH and the 3rd just arrived.
    Missed {
        /// Index of the step, from 0.
        step: usize,
        /// Description of what happened instead.
        because: String,
    },
    /// The client's stream ended or the client crashed; nothing more can happen.
    ClientGone,
    /// The limit on records or requests was exceeded: a hot loop.
    Runaway {
        /// Number of requests received.
        requests: u64,
    },
    /// The harness failed.
    Harness {
        /// The error.
        message: String,
    },
}
