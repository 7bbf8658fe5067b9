//! Inputs of the sans-IO server, as values.

use builtin_kinds::webhook::Outcome;
use bytes::Bytes;
use trace::record::{ConnId, Replica, Side, StreamId};
use trace::report::Report;

use crate::api::{HttpRequest, User};
use crate::apiserver::{CallId, Control};
use crate::upstream::{Failure, Inbound};

/// Input.
#[derive(Debug)]
pub enum Input {
    /// A connection was opened. Call [`Server::accepts`](super::Server::accepts) first.
    Connected {
        /// Number.
        conn: ConnId,
        /// Replica it connected to.
        replica: Replica,
        /// Remote port; `None` without a socket.
        peer: Option<u16>,
    },
    /// The client of a connection presented a certificate.
    Authenticated {
        /// Connection.
        conn: ConnId,
        /// User of the certificate.
        user: User,
    },
    /// A connection was closed.
    Disconnected {
        /// Number.
        conn: ConnId,
        /// Side that closed it: the server only for a scripted ending or an idle connection.
        by: Side,
    },
    /// A complete request arrived.
    Request {
        /// Number, counted from 1 in order of arrival.
        stream: StreamId,
        /// Connection.
        conn: ConnId,
        /// Request.
        request: HttpRequest,
    },
    /// Everything before an [`Output::FlushBarrier`](super::Output::FlushBarrier) of this request was flushed.
    Flushed(StreamId),
    /// The client aborted a response.
    Abandoned(StreamId),
    /// The response was aborted because its client did not read.
    CutOff(StreamId),
    /// The client under test reported something.
    Report(Report),
    /// The process of the client exited by itself.
    ClientExited {
        /// Exit code; `None` if a signal killed it.
        code: Option<i32>,
        /// Number of the signal that killed it.
        signal: Option<i32>,
    },
    /// The client was started again. The value is the number of the restart, from 1.
    ClientRestarted(u32),
    /// The client was asked to stop.
    StopRequested,
    /// The stopped client left this number of connections open.
    LeftOpen(u64),
    /// An operation outside of the Kubernetes API.
    Control(Control),
    /// An [`Output::Call`](super::Output::Call) has an outcome.
    HookAnswered {
        /// Number of the call.
        id: CallId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A part of a response of the upstream has come.
    Upstream {
        /// Request.
        stream: StreamId,
        /// The part.
        part: Inbound,
    },
    /// An [`Output::UpstreamWrite`](super::Output::UpstreamWrite) has an outcome.
    UpstreamWritten {
        /// Number of the write.
        write: u64,
        /// Status and body of the response.
        outcome: Result<(u16, Bytes), Failure>,
    },
    /// Time passed.
    Tick,
}
