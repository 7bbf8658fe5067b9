//! Outputs of the sans-IO server, as values.

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::{ConnId, StreamId};

use super::hooks::CallId;
use crate::api::Header;
use crate::model::HookCall;
use crate::upstream::{Order, Outbound};

/// Output, to be carried out in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the head of a response. Body bytes follow as [`Output::Data`].
    Head {
        /// Request.
        stream: StreamId,
        /// HTTP status.
        status: u16,
        /// Headers without `Date` and framing, which the edge adds (`Content-Length` if `length` is known, else chunked).
        headers: Vec<Header>,
        /// Length of the body, if it is sent whole.
        length: Option<u64>,
    },
    /// Send body bytes in a separate write.
    Data {
        /// Request.
        stream: StreamId,
        /// Bytes.
        bytes: Bytes,
    },
    /// Report [`Input::Flushed`](crate::server::Input::Flushed) once everything before this was flushed. Until then few bytes
    /// follow.
    FlushBarrier {
        /// Request.
        stream: StreamId,
    },
    /// Accept no more requests on this connection; open responses continue to their end. HTTP/2: GOAWAY with NO_ERROR.
    /// HTTP/1.1: the connection closes after the response.
    Goaway {
        /// Request.
        stream: StreamId,
    },
    /// Close this connection once everything before this is flushed: no request is open on it but those that stalled.
    Close {
        /// Connection.
        conn: ConnId,
    },
    /// End the response once everything before it is flushed. Without a head before it, the request is never answered and the
    /// ending applies to the connection.
    End {
        /// Request.
        stream: StreamId,
        /// Kind of end.
        how: Ending,
    },
    /// Call a webhook, and report [`Input::HookAnswered`](crate::server::Input::HookAnswered) when its timeout is over at the
    /// latest.
    Call {
        /// Number.
        id: CallId,
        /// What to send where.
        call: HookCall,
    },
    /// Forward a request, or ask for more of its response; report each part as
    /// [`Input::Upstream`](crate::server::Input::Upstream). With the end of the response, the upstream's is given up.
    Upstream {
        /// Request.
        stream: StreamId,
        /// What to do.
        order: Order,
    },
    /// Send a request of the proxy itself, and report [`Input::UpstreamWritten`](crate::server::Input::UpstreamWritten).
    UpstreamWrite {
        /// Number.
        write: u64,
        /// What to send.
        request: Box<Outbound>,
    },
}
