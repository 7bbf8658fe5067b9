//! Interface of a server for the edge.

use std::time::Duration;

use trace::record::{Record, RunEnd};

use crate::server::{Input, Output, Server};

/// Interface of a server for the edge: implemented by [`Server`] and by test doubles.
pub trait Core: Send {
    /// As [`Server::accepts`].
    fn accepts(&mut self, now: Duration) -> bool;
    /// As [`Server::refused_until`].
    fn refused_until(&self) -> Duration {
        Duration::ZERO
    }
    /// As [`Server::wall_clock`]; `None`: that of this machine.
    fn wall_clock(&self, _now: Duration) -> Option<Duration> {
        None
    }
    /// As [`Server::handle`].
    fn handle(&mut self, now: Duration, input: Input);
    /// As [`Server::poll_output`].
    fn poll_output(&mut self) -> Option<Output>;
    /// As [`Server::poll_timeout`].
    fn poll_timeout(&self) -> Option<Duration>;
    /// As [`Server::finished`].
    fn finished(&self) -> Option<&RunEnd>;
    /// As [`Server::records`].
    fn records(&self) -> &[Record];
    /// As [`Server::into_records`].
    fn into_records(self: Box<Self>) -> Vec<Record>;
    /// Returns the [`Server`], if it is one.
    fn as_server(&mut self) -> Option<&mut Server> {
        None
    }
}

impl Core for Server {
    fn accepts(&mut self, now: Duration) -> bool {
        Server::accepts(self, now)
    }

    fn refused_until(&self) -> Duration {
        Server::refused_until(self)
    }

    fn wall_clock(&self, now: Duration) -> Option<Duration> {
        // An upstream dates its responses itself.
        (!self.forwards()).then(|| Server::wall_clock(self, now))
    }

    fn handle(&mut self, now: Duration, input: Input) {
        Server::handle(self, now, input);
    }

    fn poll_output(&mut self) -> Option<Output> {
        Server::poll_output(self)
    }

    fn poll_timeout(&self) -> Option<Duration> {
        Server::poll_timeout(self)
    }

    fn finished(&self) -> Option<&RunEnd> {
        Server::finished(self)
    }

    fn records(&self) -> &[Record] {
        Server::records(self)
    }

    fn into_records(self: Box<Self>) -> Vec<Record> {
        Server::into_records(*self)
    }

    fn as_server(&mut self) -> Option<&mut Server> {
        Some(self)
    }
}
