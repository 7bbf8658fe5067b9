//! When a run is over, and why: every step done and the cache in step with the truth, or a bound hit.
//!
//! It compares what the client reported with what the store holds. It knows nothing of HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::SharedScenario;
use trace::record::{RunEnd, What};
use trace::report::{Fold, Report, Version};

use crate::script::{Script, Standing};

/// How long a run and its parts may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A step may wait so long unless it says otherwise.
    pub step: Duration,
    /// The cache may take so long to come to equal the truth after the last step, unless the scenario says otherwise.
    pub convergence: Duration,
    /// The run goes on for at least so long after convergence, so that what must not happen could.
    pub settle: Duration,
    /// More requests than this are a hot loop.
    pub requests: u64,
    /// Does the client report what it does? Without reports a run is complete once the client is at rest: it holds a watch,
    /// and neither side did anything for the settle time; and what a step waits for is taken as reported soon after the
    /// bytes have left that tell it.
    pub reports: bool,
    /// Does the run end by itself? False while a scenario is served to any client.
    pub ends: bool,
}

impl Limits {
    /// Virtual time: minutes cost nothing.
    pub fn sim() -> Self {
        Self {
            step: Duration::from_secs(600),
            convergence: Duration::from_secs(180),
            settle: Duration::from_secs(1),
            requests: 3_000,
            reports: true,
            ends: true,
        }
    }

    /// Real time: convergence is the fence, and only a failing run waits for long.
    pub fn live() -> Self {
        Self {
            step: Duration::from_secs(20),
            convergence: Duration::from_secs(20),
            settle: Duration::from_millis(20),
            requests: 20_000,
            reports: true,
            ends: true,
        }
    }

    /// Real time, and a client that reports nothing: it may sit out its own delays between retries.
    pub fn wire() -> Self {
        Self {
            step: Duration::from_secs(60),
            convergence: Duration::from_secs(60),
            settle: Duration::from_secs(1),
            reports: false,
            ..Self::live()
        }
    }

    /// Serving: nothing is ever stuck or over, and nobody reports.
    pub fn endless() -> Self {
        Self {
            ends: false,
            ..Self::wire()
        }
    }
}

/// What the run is after.
#[derive(Debug)]
pub(super) struct Goal {
    scenario: SharedScenario,
    limits: Limits,
    fold: Fold,
    /// What the cache has to be: the selected objects, by `namespace/name`.
    truth: BTreeMap<String, Version>,
    /// Since when the cache equals the truth.
    equal_since: Option<Duration>,
    /// Since when the client is at rest, as far as the wire shows.
    at_rest_since: Option<Duration>,
    said_done: bool,
    client_gone: bool,
    runaway: Option<u64>,
    end: Option<RunEnd>,
}

impl Goal {
    pub(super) fn new(scenario: SharedScenario, limits: Limits) -> Self {
        Self {
            scenario,
            limits,
            fold: Fold::default(),
            truth: BTreeMap::new(),
            equal_since: None,
            at_rest_since: None,
            said_done: false,
            client_gone: false,
            runaway: None,
            end: None,
        }
    }

    /// Does the client report what it does?
    pub(super) fn hears_reports(&self) -> bool {
        self.limits.reports
    }

    pub(super) fn finished(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    pub(super) fn on_report(&mut self, now: Duration, report: &Report) {
        self.fold.take(report);
        self.client_gone |= matches!(report, Report::Ended | Report::Crashed { .. });
        self.compare(now);
    }

    /// Is there anything that this run can end by?
    pub(super) fn can_end(&self) -> bool {
        self.limits.ends
    }

    /// Is the truth compared with what the client reports? If not, it need not be told here: it stands in the store.
    pub(super) fn compares(&self) -> bool {
        self.limits.ends && self.limits.reports
    }

    /// Since when the client holds a watch and neither side does anything; `None`: it holds none.
    pub(super) fn on_rest(&mut self, since: Option<Duration>) {
        self.at_rest_since = since;
    }

    /// One object of the truth changed: `Some` is its state, `None` says it is gone or no longer selected.
    pub(super) fn on_write(&mut self, now: Duration, key: &str, state: Option<Version>) {
        match state {
            Some(version) => self.truth.insert(key.to_owned(), version),
            None => self.truth.remove(key),
        };
        self.compare(now);
    }

    /// The whole truth is another one.
    pub(super) fn on_restore(&mut self, now: Duration, truth: BTreeMap<String, Version>) {
        self.truth = truth;
        self.compare(now);
    }

    pub(super) fn on_request(&mut self, requests: u64) {
        if requests > self.limits.requests {
            self.runaway = Some(requests);
        }
    }

    /// Looks whether the run is over at `now`. Gives what is to be recorded.
    pub(super) fn advance(&mut self, now: Duration, script: &Script) -> Vec<What> {
        let mut told = Vec::new();
        if self.end.is_some() {
            return told;
        }
        if !self.said_done && matches!(script.standing(), Standing::Done { .. }) {
            self.said_done = true;
            told.push(What::ScriptDone);
        }
        if self.limits.ends
            && let Some(end) = self.judge(now, script)
        {
            told.push(What::RunEnded(end.clone()));
            self.end = Some(end);
        }
        told
    }

    /// Since when the client follows the truth, if it has a watch open and nobody did anything since `quiet_since`.
    pub(super) fn synced_since(&self, quiet_since: Duration) -> Option<Duration> {
        if self.limits.reports {
            self.equal_since
        } else {
            Some(quiet_since + self.limits.settle)
        }
    }

    pub(super) fn poll_timeout(&self, script: &Script) -> Option<Duration> {
        if self.end.is_some() || !self.limits.ends {
            return None;
        }
        match script.standing() {
            Standing::Armed { step, since } => {
                Some(*since + self.step_limit(script.required().unwrap_or(*step)))
            }
            Standing::Missed { .. } => None,
            Standing::Done { since } => Some(match self.settled_at(*since) {
                Some(at) => at,
                None => *since + self.convergence_limit(),
            }),
        }
    }

    fn judge(&self, now: Duration, script: &Script) -> Option<RunEnd> {
        if let Some(requests) = self.runaway {
            return Some(RunEnd::Runaway { requests });
        }
        if self.client_gone {
            return Some(RunEnd::ClientGone);
        }
        match script.standing() {
            Standing::Missed { step, because } => Some(RunEnd::Missed {
                step: *step,
                because: because.clone(),
            }),
            Standing::Armed { step, since } => {
                let step = script.required().unwrap_or(*step);
                let limit = self.step_limit(step);
                (now >= *since + limit).then(|| RunEnd::Stuck {
                    step,
                    waited_ms: millis(limit),
                    waiting_for: script.waiting_for(),
                })
            }
            Standing::Done { since } => {
                if self.settled_at(*since).is_some_and(|at| now >= at) {
                    return Some(RunEnd::Complete);
                }
                let limit = self.convergence_limit();
                (self.settled_at(*since).is_none() && now >= *since + limit).then(|| RunEnd::NotConverged {
                    waited_ms: millis(limit),
                })
            }
        }
    }

    /// When the run is complete if nothing changes any more; `None` while the cache differs from the truth.
    fn settled_at(&self, done: Duration) -> Option<Duration> {
        let settle = self
            .limits
            .settle
            .max(Duration::from_millis(self.scenario.expect.settle_ms));
        if self.scenario.expect.not_converged_because.is_some() {
            return Some(done + settle);
        }
        let since = if self.limits.reports {
            self.equal_since
        } else {
            self.at_rest_since
        };
        since.map(|since| since.max(done) + settle)
    }

    fn step_limit(&self, step: usize) -> Duration {
        let step = &self.scenario.steps[step];
        let own = match step.when {
            scenario::Trigger::After(ms) | scenario::Trigger::Quiet(ms) => Duration::from_millis(ms),
            scenario::Trigger::Now
            | scenario::Trigger::Request(_)
            | scenario::Trigger::Synced
            | scenario::Trigger::Emitted(_) => Duration::ZERO,
        };
        let held = match step.times {
            scenario::Times::For(ms) => Duration::from_millis(ms),
            scenario::Times::Count(_) => Duration::ZERO,
        };
        own + held + step.within_ms.map_or(self.limits.step, Duration::from_millis)
    }

    fn convergence_limit(&self) -> Duration {
        self.scenario
            .expect
            .within_ms
            .map_or(self.limits.convergence, Duration::from_millis)
    }

    fn compare(&mut self, now: Duration) {
        if self.fold.synced() && *self.fold.cache() == self.truth {
            self.equal_since.get_or_insert(now);
        } else {
            self.equal_since = None;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
