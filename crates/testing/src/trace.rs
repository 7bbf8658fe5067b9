//! The trace as a value: one line per record.

use std::fmt;

use fake_apiserver::record::Record;
use fake_apiserver::record::line::line;

/// Everything that happened so far, in one order: requests, responses, watch events, writes, rules, connections. Prints
/// as the log of `fake-apiserver serve`; in memory with paused time it is the same in every run, so it can be a
/// snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(pub(crate) Vec<Record>);

impl Trace {
    /// Returns the records.
    pub fn records(&self) -> &[Record] {
        &self.0
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|record| writeln!(f, "{}", line(record)))
    }
}
