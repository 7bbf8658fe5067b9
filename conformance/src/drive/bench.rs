//! How fast `sim` is: the measuring core of `cargo xtask bench sim`.

use std::time::{Duration, Instant};

use fake_apiserver::scenario::SharedScenario;

use super::Run;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Scenarios played.
    pub runs: u64,
    /// Records they left.
    pub records: u64,
    /// Real time all of it took.
    pub elapsed: Duration,
}

impl Measured {
    /// Scenarios a second of real time.
    pub fn runs_per_second(&self) -> f64 {
        self.runs as f64 / self.elapsed.as_secs_f64()
    }
}

/// Plays all of `scenarios`, in order and again from the first, in this thread, for at least `at_least`. `play` is what
/// is measured: one run, with whatever belongs to it (checks, transcript).
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
    reason = "a benchmark measures real time, and decides nothing by it"
)]
fn clock() -> Instant {
    Instant::now()
}
