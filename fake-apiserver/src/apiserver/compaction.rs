//! The compaction that a server which runs for long does by itself: as often as a real apiserver tells etcd to (every
//! five minutes, up to where it was five minutes before: `storage/etcd3/compact.go`), and earlier when history takes
//! more memory than it is worth.
//!
//! It must not know what is compacted, only when.

use std::time::Duration;

/// Half of it is kept where history takes more.
use super::memory::HISTORY_BYTES_MAX as BYTES_MAX;

/// How long history is kept at least (apiserver `--etcd-compaction-interval`).
const EVERY: Duration = Duration::from_secs(300);

/// When to compact, and up to where.
#[derive(Debug)]
pub(super) struct Compaction {
    next: Duration,
    /// The revision at the last turn.
    seen: u64,
    /// A revision since which history takes at most half of what it may.
    half: u64,
}

impl Compaction {
    /// Of a server that starts at `revision`.
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

    /// The revision up to which history is to be forgotten at `now`, if any is. `revision` is the newest one, and
    /// `history_bytes` the memory that history takes.
    pub(super) fn due(&mut self, now: Duration, revision: u64, history_bytes: usize) -> Option<u64> {
        if now >= self.next {
            self.next = now + EVERY;
            return Some(std::mem::replace(&mut self.seen, revision));
        }
        if history_bytes > BYTES_MAX {
            return Some(std::mem::replace(&mut self.half, revision));
        }
        if history_bytes < BYTES_MAX / 2 {
            self.half = revision;
        }
        None
    }

    /// Notes what a compaction wrote itself: a revision up to `after`, behind `before`, the newest one until then.
    ///
    /// A real apiserver remembers the revision of its own write (`storage/etcd3/compact.go`), so that on an idle server
    /// the next turn forgets all that this one kept.
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
        assert_eq!(compaction.due(at(299), 50, 0), None);
        assert_eq!(compaction.due(at(300), 60, 0), Some(1));
        assert_eq!(compaction.due(at(301), 70, 0), None);
        assert_eq!(compaction.due(compaction.poll_timeout(), 80, 0), Some(60));
    }

    #[test]
    fn the_write_of_a_compaction_is_seen_by_it() {
        let mut compaction = Compaction::new(1);
        let at = Duration::from_secs;
        assert_eq!(compaction.due(at(300), 60, 0), Some(1));
        compaction.wrote(60, 61);
        assert_eq!(compaction.due(at(600), 61, 0), Some(61));
    }

    #[test]
    fn history_that_grows_too_large_is_halved() {
        let mut compaction = Compaction::new(1);
        let mut due = |revision, bytes| compaction.due(Duration::ZERO, revision, bytes);
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
