//! Compares runs of random scenarios over both links of `sim`: verdicts must be the same, and traces nearly always are.
//!
//! HTTP libraries read ahead, so that a consumer which is slower than the server is at another byte when a connection ends;
//! and their errors have other texts, which are left out of the comparison.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use conformance::client::Client;
use conformance::drive::sim::{Link, sim_over};
use fake_apiserver::record::{Record, What};
use fake_apiserver::report::Report;
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::server::Server;

use crate::generate::{Draft, Profile};
use crate::play::{Difference, judged_run, verdict};

/// Parameters of a comparison.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The client under test, over pipes.
    pub client: &'a dyn Client,
    /// The client under test, in process: the same one, unless a test shows that a difference is found.
    pub client_in_process: &'a dyn Client,
    /// Profile of the faults.
    pub profile: Profile,
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// Number of threads.
    pub jobs: usize,
}

/// Result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Number of seeds compared.
    pub compared: u64,
    /// Number of these that left the same trace, except for the texts of errors.
    pub same_traces: u64,
    /// Number of these that were flagged over pipes.
    pub flagged: u64,
    /// Seeds with another verdict in process, in order.
    pub differences: Vec<Difference>,
}

/// Runs and compares the seeds of a plan. `progress` receives the number of seeds done.
pub fn run(plan: &Plan<'_>, progress: &(dyn Fn(u64) + Sync)) -> Compared {
    let next = AtomicU64::new(0);
    let whole = Mutex::new((0, Compared::default()));
    std::thread::scope(|threads| {
        for _ in 0..plan.jobs.max(1) {
            threads.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= plan.seeds {
                        return;
                    }
                    let one = compare(plan, plan.first + nth);
                    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    whole.0 += 1;
                    whole.1.add(one);
                    progress(whole.0);
                }
            });
        }
    });
    let (_, mut compared) = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
    compared.differences.sort_by_key(|difference| difference.seed);
    compared
}

/// Compares one seed.
fn compare(plan: &Plan<'_>, seed: u64) -> Compared {
    let scenario: SharedScenario = Arc::new(Draft::of(seed, plan.profile).scenario());
    let play = |link, client: &dyn Client| {
        judged_run(&scenario, || {
            let server = Server::new(Arc::clone(&scenario), seed);
            sim_over(link, server, &scenario, client, seed).records
        })
    };
    let piped = play(Link::Pipe, plan.client);
    let in_process = play(Link::InProcess, plan.client_in_process);
    Compared {
        compared: 1,
        same_traces: u64::from(
            without_texts(piped.records.clone()) == without_texts(in_process.records.clone()),
        ),
        flagged: u64::from(!piped.found.is_empty()),
        differences: Vec::from_iter(Difference::of(seed, verdict(piped), verdict(in_process))),
    }
}

/// Removes the texts of errors, which name the library that reports them.
fn without_texts(mut records: Vec<Record>) -> Vec<Record> {
    for record in &mut records {
        if let What::Reported(Report::Error { message, .. }) = &mut record.what {
            message.clear();
        }
    }
    records
}

impl Compared {
    fn add(&mut self, one: Self) {
        self.compared += one.compared;
        self.same_traces += one.same_traces;
        self.flagged += one.flagged;
        self.differences.extend(one.differences);
    }
}
