//! What goes into the server and what comes out of it, as values. It must not know what becomes of either.

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::{ConnId, Replica, Side, StreamId};
use trace::report::Report;

use super::control::Control;
use crate::api::{HttpRequest, User};

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// A connection wants in. Ask [`Server::accepts`](super::Server::accepts) first.
    Connected {
        /// Its number.
        conn: ConnId,
        /// The port it came to.
        replica: Replica,
        /// The port it came from; `None` where it is no socket.
        peer: Option<u16>,
    },
    /// The client of a connection presented a certificate.
    Authenticated {
        /// The connection.
        conn: ConnId,
        /// Whom the certificate names.
        user: User,
    },
    /// A connection is gone.
    Disconnected {
        /// Its number.
        conn: ConnId,
        /// Who ended it: the server only if it did what an ending said, or closed it for being idle.
        by: Side,
    },
    /// A request arrived whole.
    Request {
        /// Its number: the driver counts from 1 in order of arrival.
        stream: StreamId,
        /// The connection it came on.
        conn: ConnId,
        /// What was asked.
        request: HttpRequest,
    },
    /// The connection took all that was handed over before an [`Output::Fence`] of this request.
    Taken(StreamId),
    /// The client gave an answer up before its end.
    Abandoned(StreamId),
    /// The answer was broken off before its end, because its client took nothing of it.
    CutOff(StreamId),
    /// The client under test reported something.
    Report(Report),
    /// The client was told to stop.
    StopRequested,
    /// Nobody waits any longer for the stopped client to close these connections.
    LeftOpen(u64),
    /// Something is done to the server from outside of its API.
    Control(Control),
    /// Nothing happened but time.
    Tick,
}

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
    /// Say [`Input::Taken`] once the connection took all that came before this: until then there is not much more.
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
