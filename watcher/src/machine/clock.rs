//! Listened time: elapsed time without the periods in which the stream was not polled. No wall clock; time is an
//! argument.
//!
//! A stream does nothing while it is not polled: while its consumer is busy, received bytes stay unread. A deadline
//! that counted such time would treat a server that responded immediately as dead.

use std::time::Duration;

/// A point in listened time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Listened(Duration);

impl Listened {
    /// Later than every other point.
    pub(super) const NEVER: Self = Self(Duration::MAX);

    /// Returns the point `time` later.
    pub(super) fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// Returns the listened time since an earlier point.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Converts between the driver's time and listened time.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Total time since the start in which the stream was not polled.
    unattended: Duration,
}

impl Clock {
    /// Excludes a period in which the stream was not polled.
    pub(super) fn skip(&mut self, unattended: Duration) {
        self.unattended += unattended;
    }

    /// Returns the listened time at the driver's `now`.
    pub(super) fn listened(&self, now: Duration) -> Listened {
        Listened(now.saturating_sub(self.unattended))
    }

    /// Returns the driver's time at which `moment` is reached if the stream is polled from now on; `None`: never.
    pub(super) fn due(&self, moment: Listened) -> Option<Duration> {
        (moment < Listened::NEVER).then(|| moment.0.saturating_add(self.unattended))
    }
}
