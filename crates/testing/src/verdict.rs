//! Verdict on every client, as a printable value. `judge::wire` decides what is a violation.

use std::fmt;
use std::time::Duration;

use fake_apiserver::record::Record;
use judge::wire::{ClientVerdict, Loops, Violation, WireJudge, WireVerdict};

/// What requests and responses prove about every client; docs/judge.md lists the invariants, and what is not evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict(WireVerdict);

impl Verdict {
    /// Judges a trace, as if nothing happened between its last record and `now`.
    pub(crate) fn of(records: &[Record], now: Duration) -> Self {
        let mut judge = WireJudge::new(Loops::Many);
        for record in records {
            judge.take(record);
        }
        judge.pass_time(now);
        Self(judge.verdict())
    }

    /// Whether no client violated an invariant; true also if no client listed or watched.
    pub fn is_pass(&self) -> bool {
        self.0.clients.iter().all(|client| client.violations.is_empty())
    }

    /// Returns the violations, at most 200.
    pub fn violations(&self) -> Vec<&Violation> {
        let clients = self.0.clients.iter();
        clients.flat_map(|client| &client.contradictions).collect()
    }

    /// Returns the verdict on each client, by its User-Agent.
    pub fn clients(&self) -> &[ClientVerdict] {
        &self.0.clients
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verdict: {}", self.0.outcome)?;
        for violation in self.violations() {
            let Violation { client, reading, .. } = violation;
            write!(
                f,
                "\n  {} {client} reading {reading}: {}\n    proof: {}",
                violation.found.check, violation.found.sentence, violation.proof
            )?;
        }
        Ok(())
    }
}
