//! Shared by HTTP/1.1 and HTTP/2: limits, the end of a connection, and conversion of requests.

use bytes::Bytes;
use trace::record::{ConnId, Side};

use super::Edge;
use crate::api::HttpRequest;

/// Largest request head (Go `http.DefaultMaxHeaderBytes` is 1 MiB; no client under test needs a tenth of this).
pub(crate) const HEAD_BYTES_MAX: usize = 128 * 1024;

/// A connection registered with the server. Dropped at the end of the connection, after its responses.
pub(crate) struct Open {
    pub(crate) edge: Edge,
    pub(crate) conn: ConnId,
    /// Side that closes it.
    pub(crate) by: Side,
    pub(crate) closed: bool,
}

impl Open {
    /// Reports the end of the connection at once.
    pub(crate) fn close(&mut self, by: Side) {
        if !std::mem::replace(&mut self.closed, true) {
            self.by = by;
            self.edge.disconnected(self.conn, by);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close(self.by);
    }
}

/// Converts a request for the server.
pub(crate) fn whole(head: http::request::Parts, body: Bytes) -> HttpRequest {
    HttpRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().into(),
        headers: head.headers,
        body,
    }
}
