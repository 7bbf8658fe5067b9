//! Memory budget of a long-running server beside its objects, and its use.
//!
//! The parts enforce it: history is compacted (`compaction.rs`), watch caches evict events, the trace is trimmed (`log.rs`),
//! and connections that do not read are closed (`net`).

use http::HeaderValue;
use http::header::RETRY_AFTER;
use serde::Serialize;

use super::ApiServer;
use crate::api::{Answer, HttpRequest};

const MIB: usize = 1024 * 1024;

/// Bytes of superseded object versions that etcd keeps until compaction.
pub(super) const HISTORY_BYTES_MAX: usize = 64 * MIB;

/// Bytes of events in the watch caches.
pub(super) const EVENT_BYTES_MAX: usize = 64 * MIB;

/// Growth of events in bytes between two measurements of their memory, which visit every resource.
pub(super) const GROWTH_BYTES: u64 = MIB as u64;

/// Bytes of records in the trace.
pub(super) const TRACE_BYTES_MAX: usize = 64 * MIB;

/// Bytes of responses that are not flushed yet.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * MIB;

/// Bytes of queries of open requests. A parsed query, above all a list of values, takes many times its size.
const QUERY_BYTES_MAX: usize = 16 * MIB;

/// Bytes of reviews that webhooks are asked about: the requests behind them wait with their bodies.
pub(super) const REVIEW_BYTES_MAX: usize = 64 * MIB;

/// Bytes of a query that is always accepted.
const QUERY_BYTES_ALWAYS: usize = 1024;

/// Memory of a server beside its objects, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryView {
    /// History: superseded versions of objects, until compaction; before an upstream, older answers to lists.
    pub history: usize,
    /// Events in the watch caches; before an upstream, those that they hold back.
    pub events: usize,
    /// Trace.
    pub trace: usize,
    /// Responses that are not flushed yet; set by [`Edge::memory`](crate::net::Edge).
    pub answers: usize,
    /// Queries of open requests.
    pub queries: usize,
    /// Limit of the sum.
    pub budget: usize,
}

impl ApiServer {
    /// Returns the memory in use beside the objects, without buffers of connections.
    pub(crate) fn memory(&self) -> MemoryView {
        let (history, events) = self.memory_of_upstream().unwrap_or_else(|| {
            let storage = self.model.storage();
            (storage.history_bytes(), storage.event_bytes())
        });
        MemoryView {
            history,
            events,
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

    /// Rejects long queries once open requests hold too many bytes of them.
    ///
    /// # Errors
    /// 429 as kube-apiserver sends it.
    pub(super) fn takes_query(&self, request: &HttpRequest) -> Result<(), Answer> {
        let bytes = request.query.as_str().len();
        if bytes <= QUERY_BYTES_ALWAYS || self.query_bytes + bytes <= QUERY_BYTES_MAX {
            return Ok(());
        }
        let mut answer = Answer::text(429, "Too many requests, please try again later.\n");
        answer.headers.push((RETRY_AFTER, HeaderValue::from(1)));
        Err(answer)
    }

    /// Most bytes in flight per response: fewer if many are open, so that their sum stays well below the limit that closes
    /// connections.
    pub(super) fn answer_share(&self) -> usize {
        (ANSWER_BYTES_MAX / 2 / self.open.len().max(1)).clamp(SHARE_MIN, SHARE_MAX)
    }
}

/// Most bytes in flight per response.
pub(super) const SHARE_MAX: usize = MIB;

/// The same with any number of open responses.
const SHARE_MIN: usize = 16 * 1024;
