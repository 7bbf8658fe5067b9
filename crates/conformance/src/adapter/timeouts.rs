//! Timeouts of a run, and whether the client is at fault when one passes.
//!
//! A client that is idle for longer than any delay that the scenario allows hangs. If it is still active when the time limit
//! passes, missing events and requests do not count against it. Pure: times are durations since the start.

use std::time::Duration;

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{ClientView, Scenario};
use fake_apiserver::server::Limits;
use judge::wire::{grants, takes};

/// Timeout of a server whose run is ended by [`Timeouts`].
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Timeouts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Of the whole run.
    pub total: Duration,
    /// Without any activity of the client: a longer pause is a hang.
    pub idle: Duration,
}

/// Time that the client was ready to run and waited for a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuWait {
    /// Since the start.
    pub total: Duration,
    /// Since the client's last activity, or since an earlier one.
    pub since_activity: Duration,
}

/// Result of checking the timeouts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutCheck {
    /// The client hangs: it has been idle for this long.
    Hang(Duration),
    /// The time limit passed while the client was active.
    TimeUp,
    /// Check again at this time.
    Again(Duration),
}

impl Timeouts {
    /// Returns the timeouts for a scenario.
    ///
    /// `reference` is how long our watcher takes because of its delays (zero: unknown); delays of other clients are longer
    /// by a bounded factor. `timeout` is added to the time that the steps take and allow. `idle` is the longest pause of a
    /// working client; it is extended to the duration of the script, of our watcher and of the longest `within`. A client that
    /// hangs in the first third of `timeout` is detected before the limit.
    pub fn of(scenario: &Scenario, reference: Duration, timeout: Duration, idle: Duration) -> Self {
        let script = takes(scenario);
        Self {
            total: timeout.max(idle + timeout / 3) + script + grants(scenario) + 4 * reference,
            idle: (idle + reference.max(script)).max(longest_grant(scenario)),
        }
    }

    /// Checks the timeouts at `now`. The client was active last at `last_activity`. `cpu_wait` is added to the timeouts, up to
    /// half of the time limit.
    pub fn check(&self, now: Duration, last_activity: Duration, cpu_wait: CpuWait) -> TimeoutCheck {
        let quiet = now.saturating_sub(last_activity);
        let total = self.total + cpu_wait.total.min(self.total / 2);
        if quiet.saturating_sub(cpu_wait.since_activity) >= self.idle {
            TimeoutCheck::Hang(quiet)
        } else if now >= total {
            TimeoutCheck::TimeUp
        } else {
            TimeoutCheck::Again((last_activity + self.idle + cpu_wait.since_activity).min(total))
        }
    }
}

/// Returns the time of the client's last activity: its last report, request of the loop under test, or start or end of its process. A client that only
/// renews a lease hangs. Until that loop starts, any request and connection counts.
pub fn last_activity(scenario: &Scenario, records: &[Record]) -> Duration {
    let view = ClientView::after(scenario, records);
    let last = |counts: &dyn Fn(&What) -> bool| {
        let last = records.iter().rev().find(|record| counts(&record.what));
        last.map(|record| record.at)
    };
    let of_loop = last(&|what| {
        let is_of_loop = matches!(what, What::Request { stream, .. } if view.is_of_loop(*stream));
        let is_of_client = matches!(
            what,
            What::Reported(_) | What::ClientExited { .. } | What::ClientRestarted { .. }
        );
        is_of_loop || is_of_client
    });
    let of_any = || last(&|what| matches!(what, What::Request { .. } | What::Connected { .. }));
    of_loop.or_else(of_any).unwrap_or_default()
}

/// Returns the end of a run whose client was idle for `quiet`. `waiting`: the waiting step, and what it waits for.
pub fn hang_end(waiting: Option<(usize, String)>, quiet: Duration) -> RunEnd {
    let waited_ms = quiet.as_millis() as u64;
    match waiting {
        Some((step, waiting_for)) => RunEnd::Stuck {
            step,
            waited_ms,
            waiting_for,
        },
        None => RunEnd::NotConverged { waited_ms },
    }
}

/// Disables the server's own timeouts for a run that [`Timeouts`] ends: they would fail a client that is merely slow. The
/// `within` of a step or of the expectation still ends the run.
pub fn disable(of: Limits) -> Limits {
    Limits {
        step: UNLIMITED,
        convergence: UNLIMITED,
        ..of
    }
}

/// Returns the longest `within` of the steps and the expectation.
fn longest_grant(scenario: &Scenario) -> Duration {
    let steps = scenario.steps.iter().filter_map(|step| step.within_ms);
    let longest = steps.chain(scenario.expect.within_ms).max();
    Duration::from_millis(longest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::{Verb, What};
    use judge::trace::sample::{Sample, scenario};
    use rstest::rstest;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[rstest]
    #[case::active(10, 9, TimeoutCheck::Again(s(69)))]
    #[case::idle(60, 10, TimeoutCheck::Again(s(70)))]
    #[case::idle_for_too_long(90, 30, TimeoutCheck::Hang(s(60)))]
    #[case::up_to_the_limit(80, 70, TimeoutCheck::Again(s(100)))]
    #[case::active_at_the_limit(100, 99, TimeoutCheck::TimeUp)]
    #[case::idle_at_the_limit(100, 40, TimeoutCheck::Hang(s(60)))]
    fn a_client_hangs_when_it_is_idle(
        #[case] now: u64,
        #[case] activity: u64,
        #[case] expected: TimeoutCheck,
    ) {
        let timeouts = Timeouts {
            total: s(100),
            idle: s(60),
        };
        assert_eq!(timeouts.check(s(now), s(activity), CpuWait::default()), expected);
    }

    #[rstest]
    #[case::idle_without_waiting(100, 30, 50, 9, TimeoutCheck::Hang(s(70)))]
    #[case::waiting_while_idle(100, 30, 50, 11, TimeoutCheck::Again(s(101)))]
    #[case::active_and_waiting(120, 119, 50, 0, TimeoutCheck::Again(s(150)))]
    #[case::waiting_for_ever(400, 10, 390, 390, TimeoutCheck::TimeUp)]
    fn waiting_for_a_processor_extends_the_timeouts(
        #[case] now: u64,
        #[case] activity: u64,
        #[case] total: u64,
        #[case] since_activity: u64,
        #[case] expected: TimeoutCheck,
    ) {
        let timeouts = Timeouts {
            total: s(100),
            idle: s(60),
        };
        let cpu_wait = CpuWait {
            total: s(total),
            since_activity: s(since_activity),
        };
        assert_eq!(timeouts.check(s(now), s(activity), cpu_wait), expected);
    }

    #[test]
    fn within_extends_the_timeouts() {
        let plain = scenario();
        let of = |scenario: &Scenario, reference| Timeouts::of(scenario, s(reference), s(90), s(60));
        let timeouts = |total, idle| Timeouts {
            total: s(total),
            idle: s(idle),
        };
        assert_eq!(of(&plain, 0), timeouts(90, 60));
        assert_eq!(of(&plain, 5), timeouts(110, 65));
        let mut granted = plain.clone();
        granted.expect.within_ms = Some(65_000);
        assert_eq!(of(&granted, 0), timeouts(155, 65));
        // A client that hangs in the first third is detected before the limit.
        assert_eq!(Timeouts::of(&plain, s(0), s(90), s(75)), timeouts(105, 75));
    }

    #[test]
    fn activity_is_requests_of_the_loop_and_reports() {
        let scenario = scenario();
        let mut sample = Sample::new();
        sample.after(1000).push(What::Connected {
            conn: fake_apiserver::record::ConnId(1),
            replica: Default::default(),
            peer: None,
        });
        assert_eq!(last_activity(&scenario, &sample.records()), s(1));
        sample.after(1000).list(&[]);
        sample
            .after(1000)
            .request(Verb::Other, &[])
            .after(1000)
            .push(What::StopRequested);
        assert_eq!(last_activity(&scenario, &sample.records()), s(2));
        assert_eq!(last_activity(&scenario, &[]), Duration::ZERO);
    }
}
