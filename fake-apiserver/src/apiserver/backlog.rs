//! Backpressure of one response: counts the bytes handed to its connection that are not flushed yet, so that a client that
//! does not read cannot make the server buffer without bound.
//!
//! The server produces no bytes while the backlog is full; a watch that falls too far behind meanwhile is ended, as
//! kube-apiserver ends a watcher with a full buffer (`storage/cacher/cache_watcher.go`).

use super::memory::SHARE_MAX;

/// Flush barriers per share.
const FENCES: usize = 4;

/// Backlog of one response.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Most bytes in flight.
    share: usize,
    /// Bytes before the pending flush barrier.
    fenced: usize,
    /// Bytes after it.
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
    /// Sets the most bytes in flight.
    pub(super) fn set_share(&mut self, share: usize) {
        self.share = share;
    }

    /// Counts bytes handed over. Returns true if a flush barrier must follow, to be confirmed by [`Backlog::flushed`].
    pub(super) fn gave(&mut self, bytes: usize) -> bool {
        self.since += bytes;
        if self.fenced > 0 || self.since < self.share / FENCES {
            return false;
        }
        self.fenced = std::mem::take(&mut self.since);
        true
    }

    /// The bytes before the barrier were flushed. Returns true if another barrier must follow at once.
    pub(super) fn flushed(&mut self) -> bool {
        self.fenced = 0;
        self.gave(0)
    }

    /// Bytes that may still be handed over.
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
        assert!(backlog.flushed(), "a fence behind the rest");
        assert_eq!(backlog.room(), FENCE_AFTER);
        assert!(!backlog.flushed());
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
