//! The trace as the server keeps it: whole, or the newest of it.

use std::time::Duration;

use crate::record::{Record, What};

/// The append-only trace, of which the oldest records may be forgotten.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: Vec<Record>,
    pub(super) forgotten: u64,
    /// Records of this weight at least are kept, the newest; `None`: all.
    pub(super) kept: Option<usize>,
    weight: usize,
}

/// Items of a list that weigh as much as a record.
const ITEMS_A_RECORD: usize = 4;

/// What a record weighs, in records: lists carry their items.
fn weight(what: &What) -> usize {
    match what {
        What::Page { items, .. } => 1 + items.len() / ITEMS_A_RECORD,
        What::Connected { .. }
        | What::Goaway { .. }
        | What::Refused
        | What::Disconnected { .. }
        | What::Request { .. }
        | What::Head { .. }
        | What::Body { .. }
        | What::Torn { .. }
        | What::Frame { .. }
        | What::End { .. }
        | What::Withheld { .. }
        | What::Wrote(_)
        | What::Restored { .. }
        | What::Turned { .. }
        | What::Step { .. }
        | What::Rule { .. }
        | What::Bound { .. }
        | What::ScriptDone
        | What::Reported(_)
        | What::StopRequested
        | What::LeftOpen { .. }
        | What::RunEnded(_) => 1,
    }
}

impl Log {
    /// Appends what happened at `at`.
    pub(super) fn push(&mut self, at: Duration, what: What) {
        tracing::debug!(at_ms = at.as_millis() as u64, what = what.name(), "recorded");
        self.weight += weight(&what);
        self.records.push(Record {
            seq: self.forgotten + self.records.len() as u64,
            at,
            what,
        });
    }

    /// Forgets what need not be kept, now and then: a record at a time would move all others each time.
    pub(super) fn trim(&mut self) {
        let Some(kept) = self.kept.filter(|kept| self.weight > 2 * kept) else {
            return;
        };
        let mut old = 0;
        while self.weight > kept && old < self.records.len() {
            self.weight -= weight(&self.records[old].what);
            old += 1;
        }
        self.records.drain(..old);
        self.forgotten += old as u64;
    }
}
