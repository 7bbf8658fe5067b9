//! What comes out of the server, as values. It must not know what becomes of them.

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::StreamId;

/// What to do, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the head of an answer. Body bytes follow as [`Output::Data`].
    Head {
        /// The request it answers.
        stream: StreamId,
        /// HTTP status.
        status: u16,
        /// Headers; the edge adds `Date` and the framing (`Content-Length` when `length` is known, else chunked).
        headers: Vec<(String, String)>,
        /// Length of the whole body, if it will be sent whole.
        length: Option<u64>,
    },
    /// Send body bytes, in a write of their own.
    Data {
        /// The request they answer.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// Say [`Input::Taken`](crate::server::Input::Taken) once the connection took all that came before this: until then there is not much more.
    Fence {
        /// The request.
        stream: StreamId,
    },
    /// Take no more requests on the connection of this one; answers that are under way go on to their end. HTTP/2: a
    /// GOAWAY with NO_ERROR. HTTP/1.1: the connection closes behind the answer.
    Goaway {
        /// The request.
        stream: StreamId,
    },
    /// End the answer so, once everything before it is flushed. Without a head before it, the request is never
    /// answered and the ending concerns the connection.
    End {
        /// The request.
        stream: StreamId,
        /// How.
        how: Ending,
    },
}
