//! The append-only trace of a run: the wire as the server saw it, writes to the store, the script's steps, and the
//! client's reports. Transcripts, checks and invariants are computed from these records alone.
//!
//! A record contains an object's identity and version, which stand for its content. It contains content only if the run
//! compares the client's cache with the store (`sim`, `live`), or if a recording keeps it ([`Kept`](crate::content::Kept));
//! never of a Secret. The reports of such a client contain it too.

pub use self::turn::{CacheTurn, Turn};
pub use self::what::{ConnectionRecord, ExchangeRecord, Group, RunRecord, ScriptRecord, StoreRecord, What};

pub mod line;
mod turn;
mod what;

use std::sync::Arc;
use std::time::Duration;

pub use apimachinery::ObjectRef;
use serde::{Deserialize, Serialize};

use crate::content::Content;

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
    pub const fn word(self) -> &'static str {
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
    /// Returns the `type` of the event; empty for bytes that are none.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark { .. } => "BOOKMARK",
            Self::Error { .. } => "ERROR",
            Self::Raw => "",
        }
    }

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
    /// Returns `metadata.resourceVersion` of the object; `None` for `ERROR` and raw frames.
    pub fn resource_version(&self) -> Option<&str> {
        self.object
            .as_deref()
            .map(|object| object.resource_version.as_str())
    }

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
