//! What every protocol shares of a connection: its limits, its end, and requests as the server takes them.

use bytes::Bytes;
use trace::record::{ConnId, Side};

use super::Edge;
use crate::api::HttpRequest;

/// Largest request head (Go `http.DefaultMaxHeaderBytes` is 1 MiB; no client under test needs a tenth of this).
pub(crate) const HEAD_BYTES_MAX: usize = 128 * 1024;

/// A connection the server knows of. Dropped however the connection ends, and after its answers.
pub(crate) struct Open {
    pub(crate) edge: Edge,
    pub(crate) conn: ConnId,
    /// Who ends it.
    pub(crate) by: Side,
    pub(crate) closed: bool,
}

impl Open {
    /// Tells the server at once that the connection is over.
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

/// A request as the server takes it.
pub(crate) fn whole(head: http::request::Parts, body: Bytes) -> HttpRequest {
    HttpRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
    }
}
