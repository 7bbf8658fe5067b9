//! Compares the verdicts of random scenarios in `sim` and over sockets.
//!
//! Real time does not jump: only scenarios whose run in `sim` takes little virtual time are run over sockets. The run
//! decides that, not the generator, so that a seed stays the same scenario. Traces differ in times, chunks and the
//! order of unrelated events; the cause of the verdict must not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformance::client::Client;
use conformance::drive;
use conformance::drive::live::{LiveError, live_against};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{Scenario, SharedScenario};
use fake_apiserver::server::{Limits, Server};

use crate::cause::Cause;
use crate::generate::{Draft, Profile};
use crate::play::{Difference, Played, Verdict, judged_run, verdict};

/// Time limit of a step and of convergence in both drivers: the hours that random scenarios allow would be real ones.
const LIMIT: Duration = Duration::from_secs(30);

/// Seeds per compared seed after which the search for short runs ends.
const SEEDS_PER_SHORT_MAX: u64 = 1_000;

/// Parameters of a comparison.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The client under test, in `sim`.
    pub client: &'a dyn Client,
    /// The client under test, over sockets: the same one, unless a test shows that a difference is found.
    pub client_over_sockets: &'a dyn Client,
    /// Profile of the faults.
    pub profile: Profile,
    /// The first seed.
    pub first: u64,
    /// Number of seeds to compare.
    pub seeds: u64,
    /// Longest run in `sim`, in virtual time, that is run over sockets too. At most 30 s.
    pub longest: Duration,
    /// Number of runs over sockets at the same time.
    pub jobs: usize,
}

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parity {
    /// Number of seeds run in both drivers.
    pub compared: u64,
    /// Number of seeds whose run in `sim` took too long, or was a storm of requests.
    pub too_long: u64,
    /// Number of seeds flagged in `sim`, of the compared ones, by cause.
    pub flagged: BTreeMap<Cause, u64>,
    /// Seeds with another verdict over sockets, in order.
    pub differences: Vec<Difference>,
}

/// A short run in `sim`.
struct Short {
    seed: u64,
    scenario: SharedScenario,
    sim: Verdict,
}

/// Runs and compares the seeds of a plan. `progress` receives the number of compared seeds.
pub fn run(plan: &Plan<'_>, progress: &(dyn Fn(u64) + Sync)) -> Parity {
    let (short, too_long) = short_runs(plan);
    let next = AtomicUsize::new(0);
    let found = Mutex::new((0, Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..plan.jobs.clamp(1, short.len().max(1)) {
            threads.spawn(|| {
                while let Some(short) = short.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let live = over_sockets(&short.scenario, plan.client_over_sockets, short.seed);
                    let difference = Difference::of(short.seed, short.sim.clone(), verdict(live));
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.0 += 1;
                    found.1.extend(difference);
                    progress(found.0);
                }
            });
        }
    });
    let (compared, mut differences) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    differences.sort_by_key(|difference| difference.seed);
    let mut flagged = BTreeMap::new();
    for (cause, _) in short.into_iter().filter_map(|short| short.sim) {
        *flagged.entry(cause).or_default() += 1;
    }
    Parity {
        compared,
        too_long,
        flagged,
        differences,
    }
}

/// Returns the first short runs, and how many were too long.
fn short_runs(plan: &Plan<'_>) -> (Vec<Short>, u64) {
    let (mut short, mut too_long) = (Vec::new(), 0);
    let seeds = plan.first..plan.first + plan.seeds.saturating_mul(SEEDS_PER_SHORT_MAX);
    for seed in seeds {
        if short.len() as u64 == plan.seeds {
            break;
        }
        let scenario = Arc::new(bounded(Draft::of(seed, plan.profile).scenario()));
        let mut is_short = true;
        // A panic leaves no records, and is compared.
        let sim = judged_run(&scenario, || {
            let server = Server::with_limits(Arc::clone(&scenario), seed, limits());
            let mut records = drive::sim::sim_against(server, &scenario, plan.client, seed).records;
            is_short = records.last().is_none_or(|last| is_short_run(last, plan.longest));
            if !is_short {
                // Thousands of requests in a row take seconds to judge.
                records.clear();
            }
            records
        });
        if !is_short {
            too_long += 1;
            continue;
        }
        short.push(Short {
            seed,
            scenario,
            sim: verdict(sim),
        });
    }
    (short, too_long)
}

/// Whether a run with this last record is played over sockets. A storm of requests takes no virtual time, and real time over
/// sockets, in which steps come that `sim` does not reach.
fn is_short_run(last: &Record, longest: Duration) -> bool {
    last.at <= longest && !matches!(last.what, What::RunEnded(RunEnd::Runaway { .. }))
}

/// Bounds what waits for the client by real time. A run that needs more is too long anyway.
fn bounded(mut scenario: Scenario) -> Scenario {
    let limit = Some(u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX));
    scenario.expect.within_ms = limit;
    for step in &mut scenario.steps {
        step.within_ms = limit;
    }
    scenario
}

fn over_sockets(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Played {
    judged_run(scenario, || {
        let server = Server::with_limits(Arc::clone(scenario), seed, limits());
        live_against(server, scenario, client, seed).map_or_else(not_begun, |run| run.records)
    })
}

/// Returns the trace of a run that could not begin: the harness is at fault.
fn not_begun(error: LiveError) -> Vec<Record> {
    let message = error.to_string();
    vec![Record {
        seq: 0,
        at: Duration::ZERO,
        what: What::RunEnded(RunEnd::Harness { message }),
    }]
}

/// Limits of both drivers: the defaults of `live` settle for 20 ms, in which less is found than in `sim`.
fn limits() -> Limits {
    Limits {
        step: LIMIT,
        convergence: LIMIT,
        ..Limits::sim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_and_storms_of_requests_are_left_out() {
        let is_short = |seconds: u64, end: RunEnd| {
            let last = Record {
                seq: 9,
                at: Duration::from_secs(seconds),
                what: What::RunEnded(end),
            };
            is_short_run(&last, Duration::from_secs(5))
        };
        assert!(is_short(5, RunEnd::Complete));
        assert!(!is_short(6, RunEnd::Complete));
        assert!(!is_short(1, RunEnd::Runaway { requests: 3_001 }));
    }
}
