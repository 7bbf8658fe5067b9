//! What goes into the server, as values. It must not know what becomes of them.

use trace::record::{ConnId, Replica, Side, StreamId};
use trace::report::Report;

use crate::api::{HttpRequest, User};
use crate::apiserver::Control;

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
    /// The connection took all that was handed over before an [`Output::Fence`](super::Output::Fence) of this request.
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
