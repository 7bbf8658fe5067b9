//! Rate of failing requests of clients with one name (INV-16).
//!
//! The budget applies per loop. The number of loops behind a name becomes known only once they get through; until
//! then the budget of the maximum number of hidden loops is granted. A request before the end of `Retry-After` may be
//! from another loop: it counts as a violation only after a time in which that other loop would have returned.

use std::collections::VecDeque;
use std::time::Duration;

use ::trace::record::{ConnId, StreamId};

/// Failing requests allowed in [`WINDOW`], per loop: five, and 1.5 per second.
const BUDGET: usize = 50;
const WINDOW: Duration = Duration::from_secs(30);

/// Maximum number of unseen loops assumed behind a name.
const HIDDEN: usize = 20;

/// Maximum number of failures kept.
const FAILURES_MAX: usize = 10_000;

/// Tolerance for requests before the end of `Retry-After`.
const SLACK: Duration = Duration::from_millis(50);

/// Maximum time after `Retry-After` in which a rejected loop returns: twice client-go's longest backoff.
const COMES_BACK: Duration = Duration::from_secs(60);

/// Maximum number of rejections and early requests kept.
const PENDING_MAX: usize = 64;

/// Failures of the loops of one name that read one collection.
#[derive(Debug)]
pub(super) struct Rate {
    /// Number of loops assumed although unseen.
    hidden: usize,
    /// Minimum number of loops at the same time.
    pub(super) loops: usize,
    failures: VecDeque<Duration>,
    refusals: VecDeque<Refusal>,
    early: VecDeque<Early>,
}

#[derive(Debug)]
struct Refusal {
    stream: StreamId,
    conn: ConnId,
    until: Duration,
}

/// A request before the time set by a rejection.
#[derive(Debug)]
struct Early {
    seq: u64,
    /// Connections of the rejection and of the request.
    conns: (ConnId, ConnId),
    until: Duration,
}

impl Rate {
    /// Creates a rate. `alone`: no other loops share the name.
    pub(super) fn new(alone: bool) -> Self {
        Self {
            hidden: if alone { 1 } else { HIDDEN },
            loops: 1,
            failures: VecDeque::new(),
            refusals: VecDeque::new(),
            early: VecDeque::new(),
        }
    }

    /// Records a failing request; returns true if the budget is exceeded.
    pub(super) fn fail(&mut self, asked: Duration, now: Duration) -> bool {
        self.failures.push_back(asked);
        while self
            .failures
            .front()
            .is_some_and(|first| *first + WINDOW <= now || self.failures.len() > FAILURES_MAX)
        {
            self.failures.pop_front();
        }
        let granted = BUDGET.saturating_mul(self.loops.max(self.hidden));
        let too_many = self.failures.len() > granted;
        if too_many {
            // Reported once per window.
            self.failures.clear();
        }
        too_many
    }

    /// Records a rejection with `Retry-After`.
    pub(super) fn refuse(&mut self, stream: StreamId, conn: ConnId, now: Duration, after: Duration) {
        if self.refusals.len() == PENDING_MAX {
            self.refusals.pop_front();
        }
        let until = now.saturating_add(after).saturating_sub(SLACK);
        self.refusals.push_back(Refusal { stream, conn, until });
    }

    /// Records that the rejection may not have arrived.
    pub(super) fn lose(&mut self, stream: StreamId) {
        self.refusals.retain(|refusal| refusal.stream != stream);
    }

    /// Records a request.
    pub(super) fn ask(&mut self, conn: ConnId, now: Duration, seq: u64) {
        self.refusals.retain(|refusal| refusal.until > now);
        if self.loops > 1 {
            self.refusals.clear();
        }
        if let Some(refusal) = self.refusals.pop_front()
            && self.early.len() < PENDING_MAX
        {
            self.early.push_back(Early {
                seq,
                conns: (refusal.conn, conn),
                until: refusal.until,
            });
        }
    }

    /// Records the number of loops at the same time.
    pub(super) fn see(&mut self, loops: usize) {
        self.loops = self.loops.max(loops);
        if self.loops > 1 {
            self.refusals.clear();
            self.early.clear();
        }
    }

    /// Records that a client closed a connection: a loop rejected on it may be gone.
    pub(super) fn leave(&mut self, conn: ConnId) {
        self.refusals.retain(|refusal| refusal.conn != conn);
        self.early
            .retain(|early| early.conns.0 != conn || early.conns.1 == conn);
    }

    /// Returns early requests that no other loop can have sent, because one has been watching alone since `alone`.
    pub(super) fn early(&mut self, alone: Option<Duration>, now: Duration) -> Vec<u64> {
        let Some(alone) = alone else { return Vec::new() };
        let is_due = |early: &Early| early.until.max(alone).saturating_add(COMES_BACK) <= now;
        let due = self.early.iter().filter(|early| is_due(early));
        let due: Vec<u64> = due.map(|early| early.seq).collect();
        self.early.retain(|early| !is_due(early));
        due
    }

    /// Ends the run: no loop returns. Returns the remaining early requests.
    pub(super) fn conclude(&mut self) -> Vec<u64> {
        self.early.drain(..).map(|early| early.seq).collect()
    }

    /// Returns the number of entries kept.
    pub(super) fn held(&self) -> usize {
        self.failures.len() / 4 + self.refusals.len() + self.early.len()
    }

    /// Returns true if an early request is pending.
    pub(super) fn is_waiting(&self) -> bool {
        !self.early.is_empty()
    }

    /// Returns how long an early request is pending at least, once a loop watches.
    pub(super) fn patience() -> Duration {
        COMES_BACK
    }
}
