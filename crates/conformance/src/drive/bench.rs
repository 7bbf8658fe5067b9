//! Measures `sim`, for `cargo xtask bench sim`.

use std::time::{Duration, Instant};

use fake_apiserver::scenario::SharedScenario;

use super::Run;

/// Measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Number of runs.
    pub runs: u64,
    /// Number of records.
    pub records: u64,
    /// Real time.
    pub elapsed: Duration,
}

impl Measured {
    /// Returns the runs per second of real time.
    pub fn runs_per_second(&self) -> f64 {
        self.runs as f64 / self.elapsed.as_secs_f64()
    }
}

/// Runs `scenarios` in this thread, in order and repeatedly, for at least `at_least`. `play` is measured: a run with its checks and
/// its transcript.
pub fn measure(
    scenarios: &[SharedScenario],
    at_least: Duration,
    mut play: impl FnMut(&SharedScenario) -> Run,
) -> Measured {
    let start = clock();
    let mut measured = Measured {
        runs: 0,
        records: 0,
        elapsed: Duration::ZERO,
    };
    while measured.elapsed < at_least && !scenarios.is_empty() {
        for scenario in scenarios {
            measured.runs += 1;
            measured.records += play(scenario).records.len() as u64;
        }
        measured.elapsed = start.elapsed();
    }
    measured
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures real time, and no decision depends on it"
)]
fn clock() -> Instant {
    Instant::now()
}
