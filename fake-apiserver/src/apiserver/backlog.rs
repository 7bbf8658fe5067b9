//! What of an answer was handed over and is not known to be taken by its connection: a client that does not read must not
//! make the server hold more and more for it.
//!
//! It must not know what the bytes say. The server stops making them while the backlog is full; a watch that falls too
//! far behind meanwhile is ended, as a real apiserver ends a watcher whose buffer is full (`storage/cacher/cache_watcher.go`).

use super::memory::SHARE_MAX;

/// So many times within its share it is asked whether what was handed over was taken.
const FENCES: usize = 4;

/// Of one answer.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Bytes that are handed over at most before the connection took some.
    share: usize,
    /// Bytes before the fence that was handed over.
    fenced: usize,
    /// Bytes since then.
    since: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            share: SHARE_MAX,
            fenced: 0,
            since: 0,
        }
    }
}

impl Backlog {
    /// From now on so many bytes are handed over at most before the connection took some.
    pub(super) fn set_share(&mut self, share: usize) {
        self.share = share;
    }

    /// So many bytes are handed over. True if a fence is to follow, which [`Backlog::taken`] answers.
    pub(super) fn gave(&mut self, bytes: usize) -> bool {
        self.since += bytes;
        if self.fenced > 0 || self.since < self.share / FENCES {
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
        self.share.saturating_sub(self.fenced + self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, FENCES, SHARE_MAX};

    const FENCE_AFTER: usize = SHARE_MAX / FENCES;

    #[test]
    fn there_is_room_again_when_what_was_handed_over_is_taken() {
        let mut backlog = Backlog::default();
        assert!(!backlog.gave(FENCE_AFTER - 1));
        assert!(backlog.gave(1), "a fence after so many bytes");
        assert!(!backlog.gave(SHARE_MAX - FENCE_AFTER), "one fence at a time");
        assert_eq!(backlog.room(), 0);
        assert!(backlog.taken(), "a fence behind the rest");
        assert_eq!(backlog.room(), FENCE_AFTER);
        assert!(!backlog.taken());
        assert_eq!(backlog.room(), SHARE_MAX);
    }

    #[test]
    fn a_smaller_share_leaves_less_room_and_is_asked_about_earlier() {
        let mut backlog = Backlog::default();
        backlog.set_share(4096);
        assert_eq!(backlog.room(), 4096);
        assert!(backlog.gave(1024), "a fence after a quarter");
        assert_eq!(backlog.room(), 3072);
    }
}
