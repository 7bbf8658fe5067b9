//! How fast `sim` is: the measuring core of `cargo xtask bench sim`.

use std::time::{Duration, Instant};

use fake_apiserver::scenario::SharedScenario;

use super::{Run, sim};
use crate::client::Client;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Scenarios played.
    pub runs: u64,
    /// Records they left.
    pub records: u64,
    /// Real time all of it took, `then` included.
    pub elapsed: Duration,
}

impl Measured {
    /// Scenarios a second of real time.
    pub fn runs_per_second(&self) -> f64 {
        self.runs as f64 / self.elapsed.as_secs_f64()
    }
}

/// Plays all of `scenarios` with `client`, in order and again from the first, in this thread, for at least
/// `at_least`; every run is handed to `then`, so that checks and transcript can be part of what is measured.
pub fn measure(
    scenarios: &[SharedScenario],
    client: &dyn Client,
    seed: u64,
    at_least: Duration,
    mut then: impl FnMut(&SharedScenario, Run),
) -> Measured {
    let start = clock();
    let mut measured = Measured { runs: 0, records: 0, elapsed: Duration::ZERO };
    while measured.elapsed < at_least && !scenarios.is_empty() {
        for scenario in scenarios {
            let run = sim(scenario, client, seed);
            measured.runs += 1;
            measured.records += run.records.len() as u64;
            then(scenario, run);
        }
        measured.elapsed = start.elapsed();
    }
    measured
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time, and decides nothing by it")]
fn clock() -> Instant {
    Instant::now()
}
