//! A client program and its output. Every client program of this package prints the same lines of JSON:
//!
//! ```text
//! {"event":"synced"}                               the initial list is complete
//! {"event":"added","name":"a","value":"1"}         an object was added; its value is its label `v`
//! {"event":"updated","name":"a","value":"2"}       it was updated
//! {"event":"reconcile","name":"a","value":"2"}     one of the two, from a client that does not distinguish them
//! {"event":"deleted","name":"a"}                   it was deleted
//! {"event":"error","message":"…"}                  an error, after which the client continues
//! ```
//!
//! and exits when its standard input ends.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::lines::Lines;
use crate::server::Server;

/// A running client, killed on drop.
#[derive(Debug)]
pub struct Client {
    child: Child,
    lines: Lines,
    errors: Lines,
    /// Index of the first line after the last match.
    next: usize,
}

/// A report of a client about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The initial list is complete.
    Synced,
    /// An object was added, with this value.
    Added(&'a str, &'a str),
    /// An object was updated to this value.
    Updated(&'a str, &'a str),
    /// An object was deleted.
    Deleted(&'a str),
}

impl Client {
    /// Waits until the client has printed this `times` times after the last match: once for each of its loops.
    ///
    /// # Panics
    ///
    /// As [`Client::expect`].
    pub fn expect_times(&mut self, times: usize, event: ClientEvent<'_>) {
        for _ in 0..times {
            self.expect(event);
        }
    }

    /// Starts a program as client of a server.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(mut program: Command, server: &Server) -> Self {
        program
            .env("KUBECONFIG", server.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = program
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let lines = Lines::of(child.stdout.take().expect("piped above"));
        let errors = Lines::of(child.stderr.take().expect("piped above"));
        Self {
            child,
            lines,
            errors,
            next: 0,
        }
    }

    /// Waits until the client prints this after the last match.
    ///
    /// # Panics
    ///
    /// If the client ends or the timeout expires; the message has the lines printed instead.
    pub fn expect(&mut self, event: ClientEvent<'_>) {
        let found = self.lines.find(self.next, |line| event.is(line).then_some(()));
        match found {
            Ok((number, ())) => self.next = number + 1,
            Err(instead) => panic!("waited for {event:?}, and the client printed {instead:#?}"),
        }
    }
}

impl ClientEvent<'_> {
    fn is(self, line: &str) -> bool {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            return false;
        };
        let is = |event: &str| line["event"] == event;
        let about = |name: &str| line["name"] == name;
        match self {
            Self::Synced => is("synced"),
            Self::Added(name, value) => {
                (is("added") || is("reconcile")) && about(name) && line["value"] == value
            }
            Self::Updated(name, value) => {
                (is("updated") || is("reconcile")) && about(name) && line["value"] == value
            }
            Self::Deleted(name) => is("deleted") && about(name),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("the client's standard error: {:#?}", self.errors.since(0));
        }
    }
}
