//! How much memory a server that runs for long may take for what clients cause, beside the objects it stores: the budget,
//! and what of it is in use.
//!
//! It must not know how a part gives up what is too much: history is compacted (`compaction.rs`), events leave the watch
//! caches, the trace forgets its oldest records (`log.rs`), and readers that take nothing are cut (`net`).

use serde::Serialize;

use super::ApiServer;
use crate::api::{Answer, HttpRequest};

const MIB: usize = 1024 * 1024;

/// Bytes of superseded object versions that etcd keeps until compaction.
pub(super) const HISTORY_BYTES_MAX: usize = 64 * MIB;

/// Bytes of events in the watch caches.
pub(super) const EVENT_BYTES_MAX: usize = 64 * MIB;

/// Bytes of records in the trace.
pub(super) const TRACE_BYTES_MAX: usize = 64 * MIB;

/// Bytes of answers that are made and not yet taken by their connections.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * MIB;

/// Bytes of queries of open requests. What is made of a query, of a list of values above all, is many times its size.
const QUERY_BYTES_MAX: usize = 16 * MIB;

/// Bytes of a query that is always read, however many others are open.
const QUERY_BYTES_ALWAYS: usize = 1024;

/// Memory that a server holds beside its objects, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryView {
    /// Superseded versions of objects, until compaction.
    pub history: usize,
    /// Events in the watch caches.
    pub events: usize,
    /// The trace.
    pub trace: usize,
    /// Answers that are made and not yet taken by their connections; filled in by [`Edge::memory`](crate::net::Edge).
    pub answers: usize,
    /// Queries of open requests.
    pub queries: usize,
    /// What all of it may take together.
    pub budget: usize,
}

impl ApiServer {
    /// Memory in use beside the objects, without what connections hold.
    pub(crate) fn memory(&self) -> MemoryView {
        MemoryView {
            history: self.model.storage().history_bytes(),
            events: self.model.storage().event_bytes(),
            trace: self.log.bytes(),
            answers: 0,
            queries: self.query_bytes,
            budget: HISTORY_BYTES_MAX
                + EVENT_BYTES_MAX
                + TRACE_BYTES_MAX
                + ANSWER_BYTES_MAX
                + QUERY_BYTES_MAX,
        }
    }

    /// Long queries are taken until there are too many of them.
    ///
    /// # Errors
    /// What a real server answers when it has too many requests.
    pub(super) fn takes_query(&self, request: &HttpRequest) -> Result<(), Answer> {
        let bytes = request.query.len();
        if bytes <= QUERY_BYTES_ALWAYS || self.query_bytes + bytes <= QUERY_BYTES_MAX {
            return Ok(());
        }
        let mut answer = Answer::text(429, "Too many requests, please try again later.\n");
        answer.headers.push(("Retry-After".to_owned(), "1".to_owned()));
        Err(answer)
    }

    /// Bytes of one answer that may be handed over before its connection took some: less where many are open, so that all
    /// of them together stay well below what cuts readers.
    pub(super) fn answer_share(&self) -> usize {
        (ANSWER_BYTES_MAX / 2 / self.open.len().max(1)).clamp(SHARE_MIN, SHARE_MAX)
    }
}

/// Bytes of one answer that are handed over at most before its connection took some.
pub(super) const SHARE_MAX: usize = MIB;

/// The same, however many answers are open.
const SHARE_MIN: usize = 16 * 1024;
