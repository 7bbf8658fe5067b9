//! A client program, and what it says. Every program of this package speaks the same few lines of JSON:
//!
//! ```text
//! {"event":"synced"}                               the first set is whole, and the client goes on from there
//! {"event":"added","name":"a","value":"1"}         an object is there; its value is its label `v`
//! {"event":"updated","name":"a","value":"2"}       it has changed
//! {"event":"reconcile","name":"a","value":"2"}     one of the two, from a client that does not say which
//! {"event":"deleted","name":"a"}                   it is gone
//! {"event":"error","message":"…"}                  something went wrong, and the client goes on
//! ```
//!
//! and ends with its standard input.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::lines::Lines;
use crate::server::Server;

/// A running client. It is ended with the test.
#[derive(Debug)]
pub struct Client {
    child: Child,
    said: Lines,
    complained: Lines,
    /// The first line that was not waited for yet.
    next: usize,
}

/// What a client says of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told<'a> {
    /// The first set is whole.
    Synced,
    /// An object is there, with this value.
    Added(&'a str, &'a str),
    /// An object has this value now.
    Updated(&'a str, &'a str),
    /// An object is gone.
    Deleted(&'a str),
}

impl Client {
    /// Waits until the client says so so many times, after what was waited for last: once for each of its loops.
    ///
    /// # Panics
    /// As [`Client::expect`].
    pub fn expect_times(&mut self, times: usize, told: Told<'_>) {
        for _ in 0..times {
            self.expect(told);
        }
    }

    /// Starts a program against a server.
    ///
    /// # Panics
    /// When the system does not start it.
    pub fn start(mut program: Command, server: &Server) -> Self {
        program
            .env("KUBECONFIG", server.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = program
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} does not start: {error}"));
        let said = Lines::of(child.stdout.take().expect("piped above"));
        let complained = Lines::of(child.stderr.take().expect("piped above"));
        Self {
            child,
            said,
            complained,
            next: 0,
        }
    }

    /// Waits until the client says so, after what was waited for last.
    ///
    /// # Panics
    /// When it says other things until it ends or patience does; what, the message tells.
    pub fn expect(&mut self, told: Told<'_>) {
        let found = self.said.find(self.next, |line| told.is(line).then_some(()));
        match found {
            Ok((number, ())) => self.next = number + 1,
            Err(instead) => panic!("waited for {told:?}, and the client said {instead:#?}"),
        }
    }
}

impl Told<'_> {
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
        // It may be over already.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("the client complained: {:#?}", self.complained.since(0));
        }
    }
}
