//! The time in which somebody listened: what silence is measured in. No wall clock; time comes in as an argument.
//!
//! A stream does nothing while it is not polled, so bytes may lie unread, and nothing can be heard, while its consumer is
//! busy. A deadline that counted such time would take a server that answered at once for a dead one.

use std::time::Duration;

/// A moment of the time in which somebody listened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Listened(Duration);

impl Listened {
    /// Later than any other.
    pub(super) const NEVER: Self = Self(Duration::MAX);

    /// The moment so much later.
    pub(super) fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How much was listened since an earlier moment.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// From the driver's time to the time listened, and back.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// How long nobody listened, since the start.
    unattended: Duration,
}

impl Clock {
    /// Nobody listened for so long.
    pub(super) fn skip(&mut self, unattended: Duration) {
        self.unattended += unattended;
    }

    /// The moment that the driver's `now` is.
    pub(super) fn listened(&self, now: Duration) -> Listened {
        Listened(now.saturating_sub(self.unattended))
    }

    /// When a moment comes in the driver's time if it listens from now on; `None`: never.
    pub(super) fn due(&self, moment: Listened) -> Option<Duration> {
        (moment < Listened::NEVER).then(|| moment.0.saturating_add(self.unattended))
    }
}
