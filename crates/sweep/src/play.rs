//! Runs a scenario in `sim`, and judges runs by the reports and by the wire alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use conformance::client::Client;
use conformance::drive::sim::{Link, sim_over};
use conformance::judge;
use conformance::wire::{Loops, WireJudge};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, SharedScenario};
use fake_apiserver::server::Server;

use crate::cause::Cause;

/// A contradiction found in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its cause.
    pub cause: Cause,
    /// Description in one sentence.
    pub sentence: String,
}

/// A run with its findings.
#[derive(Debug, Clone)]
pub struct Played {
    /// The trace; empty if the run panicked.
    pub records: Vec<Record>,
    /// Findings, most important first.
    pub found: Vec<Found>,
}

impl Played {
    /// Returns the cause the run is counted under; `None`: no findings.
    pub fn cause(&self) -> Option<&Cause> {
        self.found.first().map(|found| &found.cause)
    }

    /// Returns true if one of the findings has this cause.
    pub fn has(&self, cause: &Cause) -> bool {
        self.found.iter().any(|found| found.cause == *cause)
    }
}

/// Cause and sentence of the most important finding; `None`: no findings.
pub type Verdict = Option<(Cause, String)>;

/// A seed whose verdicts differ between two ways to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The seed.
    pub seed: u64,
    /// The first verdict: in `sim`, over pipes.
    pub one: Verdict,
    /// The other verdict.
    pub other: Verdict,
}

impl Difference {
    /// Compares the causes of two verdicts; `None`: they are equal.
    pub(crate) fn of(seed: u64, one: Verdict, other: Verdict) -> Option<Self> {
        let cause = |verdict: &Verdict| verdict.as_ref().map(|(cause, _)| cause.clone());
        (cause(&one) != cause(&other)).then_some(Self { seed, one, other })
    }
}

/// Returns the verdict on a run.
pub(crate) fn verdict(played: Played) -> Verdict {
    let first = played.found.into_iter().next();
    first.map(|found| (found.cause, found.sentence))
}

/// Runs a scenario over `link` and judges it. A panic of the fake or of a judge is a finding too.
pub fn play(link: Link, scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Played {
    play_and(link, scenario, client, seed, || {})
}

/// Like [`play`]; `played` is called between the run and its judgement.
pub fn play_and(
    link: Link,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
    played: impl FnOnce(),
) -> Played {
    judged_run(scenario, || {
        let server = Server::new(Arc::clone(scenario), seed);
        let records = sim_over(link, server, scenario, client, seed).records;
        played();
        records
    })
}

/// Judges the trace that `run` returns. A panic of `run` or of a judge is a finding too.
pub(crate) fn judged_run(scenario: &Scenario, run: impl FnOnce() -> Vec<Record>) -> Played {
    let run = catch_unwind(AssertUnwindSafe(|| {
        let records = run();
        let found = judged(scenario, &records);
        Played { records, found }
    }));
    run.unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let sentence = format!("the fake or a judge panicked: {message}");
        Played {
            records: Vec::new(),
            found: vec![Found {
                cause: Cause::of("panic", &sentence),
                sentence,
            }],
        }
    })
}

fn judged(scenario: &Scenario, records: &[Record]) -> Vec<Found> {
    let verdict = judge::judge(scenario, records);
    let mut found: Vec<Found> = verdict
        .contradictions
        .into_iter()
        .map(|found| Found {
            cause: Cause::of(&found.check.to_string(), &found.sentence),
            sentence: found.sentence,
        })
        .collect();
    for loops in [Loops::One, Loops::Many] {
        let excused = scenario.expect.excused.iter();
        let excused = excused.map(|excuse| excuse.invariant.clone()).collect();
        let mut judge = WireJudge::new(loops).excusing(excused);
        let violations = records.iter().flat_map(|record| judge.take(record));
        found.extend(violations.map(|violation| Found {
            cause: Cause::of(
                &format!("wire {}", violation.found.check),
                &violation.found.sentence,
            ),
            sentence: violation.found.sentence,
        }));
    }
    found
}
