//! How long a run waits for a client before it is over, and whether the client is at fault then.
//!
//! A client that is silent for longer than any delay that the scenario grants hangs. One that is active when the time limit
//! passes is accused of nothing that is merely missing. Pure: time comes in as durations since the start.

use std::time::Duration;

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::Scenario;
use fake_apiserver::server::Limits;
use judge::wire::{grants, takes};

/// A server whose run is ended from outside waits this long at most.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// All of it.
    pub whole: Duration,
    /// Without any sign of the client.
    pub silence: Duration,
}

/// Time that a busy machine took from the client of a run: it was ready to run and waited for a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delay {
    /// Since the start.
    pub in_all: Duration,
    /// Since a sign of the client, and at least since its last.
    pub since: Duration,
}

/// What a look at a run that is not over comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The client did nothing for this long, and hangs.
    Hang(Duration),
    /// The time limit passed while the client was active.
    Cut,
    /// Look again at this time.
    Again(Duration),
}

impl Patience {
    /// For a scenario that our watcher needs `reference` for by its own delays (zero: unknown): those of other clients exceed
    /// them by a bounded factor. `timeout` is in addition to what the scenario takes and grants. `silence` is the longest
    /// silence of a client that works; what the script takes, our watcher needs or one step grants is silence too. A client
    /// that hangs in the first third of `timeout` is found out before the limit.
    pub fn of(scenario: &Scenario, reference: Duration, timeout: Duration, silence: Duration) -> Self {
        let script = takes(scenario);
        Self {
            whole: timeout.max(silence + timeout / 3) + script + grants(scenario) + 4 * reference,
            silence: (silence + reference.max(script)).max(longest_grant(scenario)),
        }
    }

    /// Looks at a run, `now`, whose client last did something at `last_sign`. The time in `delay` is not the client's: it is
    /// granted in addition, up to half of the time limit, and a run that needs more is cut.
    pub fn look(&self, now: Duration, last_sign: Duration, delay: Delay) -> Look {
        let quiet = now.saturating_sub(last_sign);
        let whole = self.whole + delay.in_all.min(self.whole / 2);
        if quiet.saturating_sub(delay.since) >= self.silence {
            Look::Hang(quiet)
        } else if now >= whole {
            Look::Cut
        } else {
            Look::Again((last_sign + self.silence + delay.since).min(whole))
        }
    }
}

/// When the client last did anything.
pub fn last_sign(records: &[Record]) -> Duration {
    let of_client = |record: &&Record| {
        matches!(
            record.what,
            What::Request { .. } | What::Reported(_) | What::Connected { .. }
        )
    };
    let last = records.iter().rev().find(of_client);
    last.map_or(Duration::ZERO, |record| record.at)
}

/// The end of a run whose client was silent for `quiet`. `waiting`: the step that waits, and for what.
pub fn hung(waiting: Option<(usize, String)>, quiet: Duration) -> RunEnd {
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

/// Limits of a server whose run [`Patience`] ends: its own would accuse a client that is merely slow. What a step or the
/// expectation grants (`within`) still ends it.
pub fn limits(of: Limits) -> Limits {
    Limits {
        step: UNLIMITED,
        convergence: UNLIMITED,
        ..of
    }
}

/// The longest time that a step or the expectation grants.
fn longest_grant(scenario: &Scenario) -> Duration {
    let steps = scenario.steps.iter().filter_map(|step| step.within_ms);
    let longest = steps.chain(scenario.expect.within_ms).max();
    Duration::from_millis(longest.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::What;
    use judge::trace::sample::{Sample, scenario};
    use rstest::rstest;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[rstest]
    #[case::active(10, 9, Look::Again(s(69)))]
    #[case::silent(60, 10, Look::Again(s(70)))]
    #[case::silent_for_too_long(90, 30, Look::Hang(s(60)))]
    #[case::up_to_the_limit(80, 70, Look::Again(s(100)))]
    #[case::active_at_the_limit(100, 99, Look::Cut)]
    #[case::silent_at_the_limit(100, 40, Look::Hang(s(60)))]
    fn only_silence_is_held_against_a_client(#[case] now: u64, #[case] sign: u64, #[case] expected: Look) {
        let patience = Patience {
            whole: s(100),
            silence: s(60),
        };
        assert_eq!(patience.look(s(now), s(sign), Delay::default()), expected);
    }

    #[rstest]
    #[case::silent_in_its_own_time(100, 30, 50, 9, Look::Hang(s(70)))]
    #[case::held_up_while_silent(100, 30, 50, 11, Look::Again(s(101)))]
    #[case::active_and_held_up(120, 119, 50, 0, Look::Again(s(150)))]
    #[case::held_up_for_ever(400, 10, 390, 390, Look::Cut)]
    fn what_a_busy_machine_took_is_not_held_against_a_client(
        #[case] now: u64,
        #[case] sign: u64,
        #[case] in_all: u64,
        #[case] since: u64,
        #[case] expected: Look,
    ) {
        let patience = Patience {
            whole: s(100),
            silence: s(60),
        };
        let delay = Delay {
            in_all: s(in_all),
            since: s(since),
        };
        assert_eq!(patience.look(s(now), s(sign), delay), expected);
    }

    #[test]
    fn what_a_scenario_grants_is_waited_for() {
        let plain = scenario();
        let of = |scenario: &Scenario, reference| Patience::of(scenario, s(reference), s(90), s(60));
        let patience = |whole, silence| Patience {
            whole: s(whole),
            silence: s(silence),
        };
        assert_eq!(of(&plain, 0), patience(90, 60));
        assert_eq!(of(&plain, 5), patience(110, 65));
        let mut granted = plain.clone();
        granted.expect.within_ms = Some(65_000);
        assert_eq!(of(&granted, 0), patience(155, 65));
        // A client that falls silent in the first third is found out before the limit.
        assert_eq!(Patience::of(&plain, s(0), s(90), s(75)), patience(105, 75));
    }

    #[test]
    fn a_sign_is_what_the_client_did() {
        let mut sample = Sample::new();
        sample.after(1000).list(&[]).after(1000).push(What::StopRequested);
        assert_eq!(last_sign(&sample.records()), s(1));
        assert_eq!(last_sign(&[]), Duration::ZERO);
    }
}
