//! Schedule of automatic compaction: every five minutes up to the revision of five minutes before, as kube-apiserver does
//! (`storage/etcd3/compact.go`), and earlier when history takes too much memory.
//!
//! It computes revisions and touches no storage.

use std::time::Duration;

/// Half of this limit is kept when history exceeds it.
use super::memory::HISTORY_BYTES_MAX as BYTES_MAX;

/// Interval (kube-apiserver `--etcd-compaction-interval`).
const EVERY: Duration = Duration::from_secs(300);

/// State of the schedule.
#[derive(Debug)]
pub(super) struct Compaction {
    next: Duration,
    /// Revision at the previous interval.
    seen: u64,
    /// Revision since which history takes at most half of the limit.
    half: u64,
}

impl Compaction {
    /// Returns the schedule of a server that starts at `revision`.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            next: EVERY,
            seen: revision,
            half: revision,
        }
    }

    /// When to look again.
    pub(super) fn poll_timeout(&self) -> Duration {
        self.next
    }

    /// Returns the revision to compact to at `now`, if a compaction is due. `revision`: the newest one; `history_bytes`: memory
    /// taken by history; `None`: it was not measured.
    pub(super) fn due(&mut self, now: Duration, revision: u64, history_bytes: Option<usize>) -> Option<u64> {
        if now >= self.next {
            self.next = now + EVERY;
            return Some(std::mem::replace(&mut self.seen, revision));
        }
        let history_bytes = history_bytes?;
        if history_bytes > BYTES_MAX {
            return Some(std::mem::replace(&mut self.half, revision));
        }
        if history_bytes < BYTES_MAX / 2 {
            self.half = revision;
        }
        None
    }

    /// Accounts for the write of the compaction itself, which raised the newest revision from `before` to `after`.
    ///
    /// kube-apiserver remembers the revision that it wrote itself (`storage/etcd3/compact.go`), so that on an idle server the next
    /// compaction removes everything this one kept.
    pub(super) fn wrote(&mut self, before: u64, after: u64) {
        if self.seen == before {
            self.seen = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Compaction, Duration};

    #[test]
    fn every_five_minutes_history_is_forgotten_up_to_five_minutes_ago() {
        let mut compaction = Compaction::new(1);
        let at = Duration::from_secs;
        assert_eq!(compaction.due(at(299), 50, Some(0)), None);
        assert_eq!(compaction.due(at(300), 60, Some(0)), Some(1));
        assert_eq!(compaction.due(at(301), 70, Some(0)), None);
        assert_eq!(compaction.due(compaction.poll_timeout(), 80, Some(0)), Some(60));
    }

    #[test]
    fn the_write_of_a_compaction_is_seen_by_it() {
        let mut compaction = Compaction::new(1);
        let at = Duration::from_secs;
        assert_eq!(compaction.due(at(300), 60, Some(0)), Some(1));
        compaction.wrote(60, 61);
        assert_eq!(compaction.due(at(600), 61, Some(0)), Some(61));
    }

    #[test]
    fn history_that_grows_too_large_is_halved() {
        let mut compaction = Compaction::new(1);
        let mut due = |revision, bytes| compaction.due(Duration::ZERO, revision, Some(bytes));
        assert_eq!(due(10, BYTES_MAX / 2 - 1), None);
        assert_eq!(due(20, BYTES_MAX), None);
        assert_eq!(
            due(21, BYTES_MAX + 1),
            Some(10),
            "what came before half was reached"
        );
        assert_eq!(due(30, BYTES_MAX / 2), None);
        assert_eq!(due(40, BYTES_MAX + 1), Some(21));
    }
}
