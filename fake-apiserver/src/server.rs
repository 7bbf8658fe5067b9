//! Model, script and faults behind one door in and one door out: no I/O, no clock.
//!
//! The driver hands in what happened ([`Server::handle`]) with the time it happened at, then drains what to do
//! ([`Server::poll_output`]) and learns when to come back ([`Server::poll_timeout`]). Every decision is appended to
//! the trace ([`Server::records`]) at the moment it is carried out.

use std::time::Duration;

use bytes::Bytes;

use crate::api::HttpRequest;
use crate::fault::Ending;
use crate::record::{ConnId, Record, RunEnd, StreamId};
use crate::report::Report;
use crate::scenario::SharedScenario;

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// A connection wants in. Answered by [`Server::accepts`] before anything else is done with it.
    Connected(ConnId),
    /// A connection is gone, by the client's doing or the network's.
    Disconnected(ConnId),
    /// A request arrived whole.
    Request {
        /// Its number: the driver counts from 1 in order of arrival.
        stream: StreamId,
        /// The connection it came on.
        conn: ConnId,
        /// What was asked.
        request: HttpRequest,
    },
    /// The client gave an answer up before its end.
    Abandoned(StreamId),
    /// The client under test reported something.
    Report(Report),
    /// The client was told to stop.
    StopRequested,
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
    /// End the answer so, once everything before it is flushed.
    End {
        /// The request.
        stream: StreamId,
        /// How.
        how: Ending,
    },
}

/// A fake apiserver without its sockets.
#[derive(Debug)]
pub struct Server {}

impl Server {
    /// A server that plays `scenario`. `seed` decides what chance decides on a real server (watch lifetimes).
    pub fn new(scenario: SharedScenario, seed: u64) -> Self {
        let _ = (scenario, seed);
        Self {}
    }

    /// May a connection come in at `now`? False while the script refuses connections.
    pub fn accepts(&self, now: Duration) -> bool {
        let _ = now;
        true
    }

    /// Takes in what happened at `now`. Times never go back.
    pub fn handle(&mut self, now: Duration, input: Input) {
        let _ = (now, input);
    }

    /// The next thing to do, if any. Call until `None` after every [`Server::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        None
    }

    /// When to hand in [`Input::Tick`], if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    /// Why the run is over, once it is.
    pub fn finished(&self) -> Option<&RunEnd> {
        None
    }

    /// The trace so far.
    pub fn records(&self) -> &[Record] {
        &[]
    }

    /// The trace, taken out.
    pub fn into_records(self) -> Vec<Record> {
        Vec::new()
    }
}
