//! What of an answer was handed over and is not known to be taken by its connection: a client that does not read must not
//! make the server hold more and more for it.
//!
//! It must not know what the bytes say. The server stops making them while the backlog is full; a watch that falls too
//! far behind meanwhile is ended, as a real apiserver ends a watcher whose buffer is full (`storage/cacher/cache_watcher.go`).

/// Bytes of one answer that are handed over at most before its connection took some.
const BYTES_MAX: usize = 1024 * 1024;

/// Bytes after which it is asked whether they were taken.
const FENCE_AFTER: usize = 256 * 1024;

/// Of one answer.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Bytes before the fence that was handed over.
    fenced: usize,
    /// Bytes since then.
    since: usize,
}

impl Backlog {
    /// So many bytes are handed over. True if a fence is to follow, which [`Backlog::taken`] answers.
    pub(super) fn gave(&mut self, bytes: usize) -> bool {
        self.since += bytes;
        if self.fenced > 0 || self.since < FENCE_AFTER {
            return false;
        }
        self.fenced = std::mem::take(&mut self.since);
        true
    }

    /// The connection took all that was before the fence. True if another fence is to follow at once.
    pub(super) fn taken(&mut self) -> bool {
        self.fenced = 0;
        self.gave(0)
    }

    /// How many bytes more may be handed over.
    pub(super) fn room(&self) -> usize {
        BYTES_MAX.saturating_sub(self.fenced + self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, Backlog, FENCE_AFTER};

    #[test]
    fn there_is_room_again_when_what_was_handed_over_is_taken() {
        let mut backlog = Backlog::default();
        assert!(!backlog.gave(FENCE_AFTER - 1));
        assert!(backlog.gave(1), "a fence after so many bytes");
        assert!(!backlog.gave(BYTES_MAX - FENCE_AFTER), "one fence at a time");
        assert_eq!(backlog.room(), 0);
        assert!(backlog.taken(), "a fence behind the rest");
        assert_eq!(backlog.room(), FENCE_AFTER);
        assert!(!backlog.taken());
        assert_eq!(backlog.room(), BYTES_MAX);
    }
}
