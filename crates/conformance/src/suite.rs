//! Runs many scenarios: loads them, runs them in parallel, judges each, and compares with the baseline.
//!
//! It prints nothing and reads no clock; the command lines do.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::SharedScenario;
use judge::judge;
use judge::verdict::{Outcome, Verdict};
use serde::Serialize;

use crate::baseline::{Baseline, Known};
use crate::client::Client;
use crate::drive;

/// Driver of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// In memory, under virtual time.
    Sim,
    /// Real sockets, real time.
    Live,
}

impl Driver {
    /// Returns the word used on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Live => "live",
        }
    }

    /// Runs one scenario and returns its trace. A run that cannot start is a harness error in the trace.
    pub fn play(self, scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Vec<Record> {
        match self {
            Self::Sim => drive::sim(scenario, client, seed).records,
            Self::Live => match drive::live(scenario, client, seed) {
                Ok(run) => run.records,
                Err(error) => {
                    let what = What::RunEnded(RunEnd::Harness {
                        message: error.to_string(),
                    });
                    vec![Record {
                        seq: 0,
                        at: std::time::Duration::ZERO,
                        what,
                    }]
                }
            },
        }
    }
}

/// How to run a set of scenarios.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Driver of the runs.
    pub driver: Driver,
    /// Seed for all randomness.
    pub seed: u64,
    /// Scenarios run at the same time.
    pub jobs: usize,
}

/// A scenario, its run and its verdict.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The scenario.
    pub scenario: SharedScenario,
    /// Name of the client.
    pub client: &'static str,
    /// Version of the client.
    pub version: &'static str,
    /// Driver of the run.
    pub driver: Driver,
    /// Seed of the run.
    pub seed: u64,
    /// Trace of the run.
    pub records: Vec<Record>,
    /// Verdict on the run.
    pub verdict: Verdict,
    /// Verdict compared with the baseline.
    pub standing: Standing,
    /// Entry of the scenario in the client's known failures.
    pub known: Option<Known>,
}

/// Verdict compared with the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Passed, and no failure is listed.
    Passed,
    /// Failed, and no failure or another outcome is listed.
    Failed,
    /// Failed as listed.
    Known,
    /// Passed although a failure is listed.
    Stale,
}

impl Standing {
    fn of(outcome: Outcome, known: Option<&Known>) -> Self {
        match (outcome, known) {
            (Outcome::Pass, None) => Self::Passed,
            (Outcome::Pass, Some(_)) => Self::Stale,
            (outcome, Some(known)) if outcome == known.outcome.judgement() => Self::Known,
            (Outcome::Mismatch | Outcome::Stuck | Outcome::Crash | Outcome::HarnessError, Some(_) | None) => {
                Self::Failed
            }
        }
    }
}

/// Number of scenarios per standing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All scenarios.
    pub scenarios: usize,
    /// Passed.
    pub passed: usize,
    /// Failed, not as listed.
    pub failed: usize,
    /// Failed as listed.
    pub known: usize,
    /// Passed although listed as failing.
    pub stale: usize,
    /// Of the failed, those with a harness error.
    pub harness_errors: usize,
}

impl Counts {
    /// Counts `results`.
    pub fn of(results: &[Judged]) -> Self {
        let mut counts = Self::default();
        for judged in results {
            counts.add(judged);
        }
        counts
    }

    /// Counts one result.
    pub fn add(&mut self, judged: &Judged) {
        self.scenarios += 1;
        match judged.standing {
            Standing::Passed => self.passed += 1,
            Standing::Failed => self.failed += 1,
            Standing::Known => self.known += 1,
            Standing::Stale => self.stale += 1,
        }
        self.harness_errors += usize::from(judged.verdict.outcome == Outcome::HarnessError);
    }
}

/// Returns all scenario files below `<root>/scenarios`, sorted by path.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the scenarios whose id begins with one of `prefixes`; all if there is none.
pub fn select(scenarios: &[SharedScenario], prefixes: &[String]) -> Vec<SharedScenario> {
    let chosen =
        |id: &str| prefixes.is_empty() || prefixes.iter().any(|prefix| id.starts_with(prefix.as_str()));
    scenarios
        .iter()
        .filter(|scenario| chosen(&scenario.id))
        .map(Arc::clone)
        .collect()
}

/// Runs and judges `scenarios` in parallel and returns them in their order. Calls `done` for each as it is judged, on
/// the worker's thread.
pub fn run(
    scenarios: &[SharedScenario],
    client: &dyn Client,
    plan: Plan,
    baseline: &Baseline,
    done: &(dyn Fn(&Judged) + Sync),
) -> Vec<Judged> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Judged)>> = Mutex::new(Vec::with_capacity(scenarios.len()));
    std::thread::scope(|threads| {
        for _ in 0..plan.jobs.clamp(1, scenarios.len().max(1)) {
            threads.spawn(|| {
                while let Some((index, scenario)) = take(&next, scenarios) {
                    let judged = one(scenario, client, plan, baseline);
                    done(&judged);
                    results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((index, judged));
                }
            });
        }
    });
    let mut results = results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, judged)| judged).collect()
}

/// Runs and judges one scenario.
pub fn one(scenario: &SharedScenario, client: &dyn Client, plan: Plan, baseline: &Baseline) -> Judged {
    let records = plan.driver.play(scenario, client, plan.seed);
    let verdict = judge(scenario, &records);
    let known = baseline.of(&scenario.id).cloned();
    Judged {
        scenario: Arc::clone(scenario),
        client: client.name(),
        version: client.version(),
        driver: plan.driver,
        seed: plan.seed,
        standing: Standing::of(verdict.outcome, known.as_ref()),
        records,
        verdict,
        known,
    }
}

fn take<'s>(next: &AtomicUsize, scenarios: &'s [SharedScenario]) -> Option<(usize, &'s SharedScenario)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    scenarios.get(index).map(|scenario| (index, scenario))
}

#[cfg(test)]
mod tests {
    use judge::trace::sample::scenario;
    use rstest::rstest;

    use super::*;
    use crate::baseline::Failure;

    #[rstest]
    #[case(Outcome::Pass, None, Standing::Passed)]
    #[case(Outcome::Stuck, None, Standing::Failed)]
    #[case(Outcome::Stuck, Some(Failure::Stuck), Standing::Known)]
    #[case(Outcome::Crash, Some(Failure::Stuck), Standing::Failed)]
    #[case(Outcome::Pass, Some(Failure::Stuck), Standing::Stale)]
    fn against_what_is_known(
        #[case] outcome: Outcome,
        #[case] listed: Option<Failure>,
        #[case] standing: Standing,
    ) {
        let known = listed.map(|outcome| Known {
            breaks: None,
            scenario: "a/b".to_owned(),
            outcome,
            reason: "r".to_owned(),
            issue: "none public".to_owned(),
            source: None,
            line: 1,
        });
        assert_eq!(Standing::of(outcome, known.as_ref()), standing);
    }

    #[rstest]
    #[case(&[], 2)]
    #[case(&["gone/"], 1)]
    #[case(&["gone/x", "page"], 2)]
    #[case(&["conn"], 0)]
    fn prefixes_select(#[case] prefixes: &[&str], #[case] number: usize) {
        let named = |id: &str| {
            let mut scenario = scenario();
            scenario.id = id.to_owned();
            Arc::new(scenario)
        };
        let all = [named("gone/x"), named("page/y")];
        let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        assert_eq!(select(&all, &prefixes).len(), number);
    }
}
