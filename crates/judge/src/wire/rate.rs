//! How often may those fail who share a name (INV-16)?
//!
//! A budget is one loop's. Of how many loops requests come is known only once they got through, and until then as many
//! as can hide behind the name are granted theirs. A request that comes before `Retry-After` is over may be another
//! loop's: it is held against its sender only after a time in which that other loop would have come back.

use std::collections::VecDeque;
use std::time::Duration;

use ::trace::record::{ConnId, StreamId};

/// Requests that may fail in [`WINDOW`], of each loop: five, and 1.5 a second.
const BUDGET: usize = 50;
const WINDOW: Duration = Duration::from_secs(30);

/// Loops that may hide behind one name though nothing shows them yet.
const HIDDEN: usize = 20;

/// Failures remembered.
const FAILURES_MAX: usize = 10_000;

/// How much earlier than `Retry-After` a request may come.
const SLACK: Duration = Duration::from_millis(50);

/// A loop that was refused comes back in this time after `Retry-After`: twice the longest backoff of client-go.
const COMES_BACK: Duration = Duration::from_secs(60);

/// Refusals and early requests remembered.
const PENDING_MAX: usize = 64;

/// The failures of the loops of one name that read one collection.
#[derive(Debug)]
pub(super) struct Rate {
    /// So many loops may be there though nothing shows them.
    hidden: usize,
    /// So many were there for certain, at once.
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

/// A request that came before the time a refusal had set.
#[derive(Debug)]
struct Early {
    seq: u64,
    /// The connections of the refusal and of the request.
    conns: (ConnId, ConnId),
    until: Duration,
}

impl Rate {
    /// `alone`: nobody hides behind the name.
    pub(super) fn new(alone: bool) -> Self {
        Self {
            hidden: if alone { 1 } else { HIDDEN },
            loops: 1,
            failures: VecDeque::new(),
            refusals: VecDeque::new(),
            early: VecDeque::new(),
        }
    }

    /// A request failed. Are there too many?
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
            // One story, told once a window.
            self.failures.clear();
        }
        too_many
    }

    /// The server asked for patience.
    pub(super) fn refuse(&mut self, stream: StreamId, conn: ConnId, now: Duration, after: Duration) {
        if self.refusals.len() == PENDING_MAX {
            self.refusals.pop_front();
        }
        let until = now.saturating_add(after).saturating_sub(SLACK);
        self.refusals.push_back(Refusal { stream, conn, until });
    }

    /// The refusal may not have arrived.
    pub(super) fn lose(&mut self, stream: StreamId) {
        self.refusals.retain(|refusal| refusal.stream != stream);
    }

    /// A request came.
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

    /// There was more than one loop at once.
    pub(super) fn see(&mut self, loops: usize) {
        self.loops = self.loops.max(loops);
        if self.loops > 1 {
            self.refusals.clear();
            self.early.clear();
        }
    }

    /// A client closed a connection. Who was refused on it may be gone.
    pub(super) fn leave(&mut self, conn: ConnId) {
        self.refusals.retain(|refusal| refusal.conn != conn);
        self.early
            .retain(|early| early.conns.0 != conn || early.conns.1 == conn);
    }

    /// Requests that no other loop can have sent: one has been watching alone since `alone`.
    pub(super) fn early(&mut self, alone: Option<Duration>, now: Duration) -> Vec<u64> {
        let Some(alone) = alone else { return Vec::new() };
        let is_due = |early: &Early| early.until.max(alone).saturating_add(COMES_BACK) <= now;
        let due = self.early.iter().filter(|early| is_due(early));
        let due: Vec<u64> = due.map(|early| early.seq).collect();
        self.early.retain(|early| !is_due(early));
        due
    }

    /// Nobody comes back any more.
    pub(super) fn conclude(&mut self) -> Vec<u64> {
        self.early.drain(..).map(|early| early.seq).collect()
    }

    /// Entries remembered.
    pub(super) fn held(&self) -> usize {
        self.failures.len() / 4 + self.refusals.len() + self.early.len()
    }

    /// Is a request held that came early?
    pub(super) fn is_waiting(&self) -> bool {
        !self.early.is_empty()
    }

    /// How long it is held at least, once somebody watches.
    pub(super) fn patience() -> Duration {
        COMES_BACK
    }
}
