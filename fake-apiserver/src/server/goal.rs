//! End of a run: every step done and the client's cache equal to the store, or a limit exceeded.
//!
//! Compares the client's reports with the store. No HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::{Contract, SharedScenario};
use trace::record::{RunEnd, What};
use trace::report::{Fold, Report, Version};

use crate::script::{Script, Standing};

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Timeout of a step, unless it sets its own.
    pub step: Duration,
    /// Timeout of convergence after the last step, unless the scenario sets its own.
    pub convergence: Duration,
    /// Least time that the run continues after convergence, to catch what must not happen.
    pub settle: Duration,
    /// Least time that the run continues after convergence while the client has no watch open: a slow one is between its list
    /// and its next watch.
    pub rewatch: Duration,
    /// Most requests, plus `requests_per_second` since the start: more are a hot loop.
    pub requests: u64,
    /// Requests for each second of the run: above the 1.5 of the budget (INV-16).
    pub requests_per_second: u64,
    /// Whether the client reports events. Without reports a run is complete once the client has a watch and neither side was
    /// active for the settle time; and steps that wait for a report are met soon after the bytes with that event were sent.
    pub reports: bool,
    /// Whether the run ends by itself. False while a scenario is served to any client.
    pub ends: bool,
}

impl Limits {
    /// Limits in virtual time, where minutes cost nothing.
    pub fn sim() -> Self {
        Self {
            step: Duration::from_secs(600),
            convergence: Duration::from_secs(180),
            settle: Duration::from_secs(1),
            rewatch: Duration::ZERO,
            requests: 3_000,
            requests_per_second: 2,
            reports: true,
            ends: true,
        }
    }

    /// Limits in real time, where only a failing run waits for long.
    pub fn live() -> Self {
        Self {
            step: Duration::from_secs(20),
            convergence: Duration::from_secs(20),
            settle: Duration::from_millis(20),
            rewatch: Duration::ZERO,
            requests: 20_000,
            requests_per_second: 2,
            reports: true,
            ends: true,
        }
    }

    /// Limits in real time for a client without reports, which needs time for its backoff.
    pub fn wire() -> Self {
        Self {
            step: Duration::from_secs(60),
            convergence: Duration::from_secs(60),
            settle: Duration::from_secs(1),
            reports: false,
            ..Self::live()
        }
    }

    /// No limits: for `serve`.
    pub fn endless() -> Self {
        Self {
            ends: false,
            ..Self::wire()
        }
    }
}

/// State of the end condition.
#[derive(Debug)]
pub(super) struct Goal {
    scenario: SharedScenario,
    limits: Limits,
    fold: Fold,
    /// Expected cache: the selected objects, by `namespace/name`.
    stored: BTreeMap<String, Version>,
    /// Time since which the cache equals the store.
    equal_since: Option<Duration>,
    /// Time since which the client is quiet on the wire.
    at_rest_since: Option<Duration>,
    /// Whether its watch gives it no reason to do anything.
    is_sound: bool,
    /// Whether every expected request and event has come.
    has_all: bool,
    said_done: bool,
    client_gone: bool,
    crashed: bool,
    /// Since when a client that is one watch or one list is over.
    ended_since: Option<Duration>,
    runaway: Option<u64>,
    end: Option<RunEnd>,
}

impl Goal {
    pub(super) fn new(scenario: SharedScenario, limits: Limits) -> Self {
        Self {
            scenario,
            limits,
            fold: Fold::default(),
            stored: BTreeMap::new(),
            equal_since: None,
            at_rest_since: None,
            is_sound: false,
            has_all: true,
            said_done: false,
            client_gone: false,
            crashed: false,
            ended_since: None,
            runaway: None,
            end: None,
        }
    }

    /// Whether the client reports events.
    pub(super) fn hears_reports(&self) -> bool {
        self.limits.reports
    }

    pub(super) fn finished(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    pub(super) fn on_report(&mut self, now: Duration, report: &Report) {
        self.fold.take(report);
        self.client_gone |= matches!(report, Report::Ended | Report::Crashed { .. });
        self.crashed |= matches!(report, Report::Crashed { .. });
        if matches!(report, Report::Ended) {
            self.ended_since.get_or_insert(now);
        }
        self.compare(now);
    }

    /// Whether this run ends by itself.
    pub(super) fn can_end(&self) -> bool {
        self.limits.ends
    }

    /// Whether the store is compared with the client's reports, which needs [`Goal::on_write`].
    pub(super) fn compares(&self) -> bool {
        self.limits.ends && self.limits.reports
    }

    /// Sets the time since which the client has a watch and neither side is active; `None`: no watch. `is_sound`: whether nothing
    /// was sent on it after which a client may leave it later.
    pub(super) fn on_rest(&mut self, since: Option<Duration>, is_sound: bool) {
        (self.at_rest_since, self.is_sound) = (since, is_sound);
    }

    /// Sets whether every expected request and event has come.
    pub(super) fn on_awaited(&mut self, has_all: bool) {
        self.has_all = has_all;
    }

    /// A selected object changed: `Some` is its state; `None`: deleted or no longer selected.
    pub(super) fn on_write(&mut self, now: Duration, key: &str, state: Option<Version>) {
        match state {
            Some(version) => self.stored.insert(key.to_owned(), version),
            None => self.stored.remove(key),
        };
        self.compare(now);
    }

    /// The store was restored: `stored` are the selected objects.
    pub(super) fn on_restore(&mut self, now: Duration, stored: BTreeMap<String, Version>) {
        self.stored = stored;
        self.compare(now);
    }

    pub(super) fn on_request(&mut self, now: Duration, requests: u64) {
        let earned = self.limits.requests_per_second.saturating_mul(now.as_secs());
        if requests > self.limits.requests.saturating_add(earned) {
            self.runaway = Some(requests);
        }
    }

    /// Checks whether the run is over at `now`. Returns records to append.
    pub(super) fn advance(&mut self, now: Duration, script: &Script) -> Vec<What> {
        let mut records = Vec::new();
        if self.end.is_some() {
            return records;
        }
        if !self.said_done && matches!(script.standing(), Standing::Done { .. }) {
            self.said_done = true;
            records.push(What::ScriptDone);
        }
        if self.limits.ends
            && let Some(end) = self.judge(now, script)
        {
            records.push(What::RunEnded(end.clone()));
            self.end = Some(end);
        }
        records
    }

    /// Time since which the client is in sync, if it has a watch open and neither side was active since `quiet_since`.
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
        if self.client_gone && !self.ends_by_itself() {
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
                let is_over = self.settled_at(*since).is_none() && now >= *since + limit;
                // Only something expected is missing.
                let is_equal = self.converged_at(*since, Duration::ZERO).is_some();
                is_over.then(|| match is_equal {
                    true => RunEnd::Complete,
                    false => RunEnd::NotConverged {
                        waited_ms: millis(limit),
                    },
                })
            }
        }
    }

    /// Time at which the run completes if nothing changes; `None` while the cache differs from the store, or while something
    /// expected is missing and the client has no watch, or one that it may be about to leave.
    fn settled_at(&self, done: Duration) -> Option<Duration> {
        let settle = self
            .limits
            .settle
            .max(Duration::from_millis(self.scenario.expect.settle_ms));
        let at_rest = self.at_rest_since.map(|since| since.max(done) + settle);
        let settled = self.converged_at(done, settle)?;
        if self.has_all || self.ends_by_itself() {
            return Some(settled);
        }
        at_rest.filter(|_| self.is_sound).map(|at| at.max(settled))
    }

    fn converged_at(&self, done: Duration, settle: Duration) -> Option<Duration> {
        if self.scenario.expect.not_converged_because.is_some() {
            return Some(done + settle);
        }
        let (since, settle) = if self.ends_by_itself() {
            (self.ended_since, settle)
        } else if !self.limits.reports {
            (self.at_rest_since, settle)
        } else if self.at_rest_since.is_none() {
            (self.equal_since, settle.max(self.limits.rewatch))
        } else {
            (self.equal_since, settle)
        };
        since.map(|since| since.max(done) + settle)
    }

    /// Whether the client is one watch or one list, which ends with the client's report.
    fn ends_by_itself(&self) -> bool {
        match self.scenario.client.contract {
            Contract::Informer => false,
            Contract::Watch | Contract::List => !self.crashed,
        }
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
        if self.fold.synced() && *self.fold.cache() == self.stored {
            self.equal_since.get_or_insert(now);
        } else {
            self.equal_since = None;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// When a run of a scenario without steps and objects is over, whose client is in sync at 1 s.
    fn over_at(watches: bool) -> Option<Duration> {
        let text = "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\nsteps: []\nexpect: {}\n";
        let scenario = Arc::new(scenario::parse("a/b", Path::new("b.yaml"), text).unwrap());
        let limits = Limits {
            settle: ms(500),
            rewatch: ms(10_000),
            ..Limits::live()
        };
        let script = Script::new(scenario.clone());
        let mut goal = Goal::new(scenario, limits);
        goal.on_report(ms(1000), &Report::Init);
        goal.on_report(ms(1000), &Report::InitDone);
        goal.on_rest(watches.then_some(ms(1000)), true);
        let at = goal.poll_timeout(&script)?;
        assert!(
            goal.advance(at - ms(1), &script)
                .iter()
                .all(|what| !matches!(what, What::RunEnded(_)))
        );
        goal.advance(at, &script);
        assert_eq!(goal.finished(), Some(&RunEnd::Complete));
        Some(at)
    }

    #[rstest]
    #[case::with_a_watch(true, 1500)]
    #[case::between_list_and_watch(false, 11_000)]
    fn a_client_that_is_in_sync_has_time_to_open_its_watch(#[case] watches: bool, #[case] expected: u64) {
        assert_eq!(over_at(watches), Some(ms(expected)));
    }

    #[rstest]
    #[case::within_the_number(0, 3_000, false)]
    #[case::all_at_once(0, 3_001, true)]
    #[case::a_watch_a_second_for_an_hour(3_600, 3_601, false)]
    #[case::more_than_the_budget_for_an_hour(3_600, 10_201, true)]
    fn a_hot_loop_is_a_rate(#[case] seconds: u64, #[case] requests: u64, #[case] is_one: bool) {
        let text = "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\nsteps: []\nexpect: {}\n";
        let scenario = Arc::new(scenario::parse("a/b", Path::new("b.yaml"), text).unwrap());
        let script = Script::new(scenario.clone());
        let mut goal = Goal::new(scenario, Limits::sim());
        let now = Duration::from_secs(seconds);
        goal.on_request(now, requests);
        goal.advance(now, &script);
        let is_runaway = matches!(goal.finished(), Some(RunEnd::Runaway { .. }));
        assert_eq!(is_runaway, is_one);
    }
}
