//! The scenarios that are part of this program.

use std::time::Duration;

/// Id and text of every scenario of this version, and the milliseconds that our watcher needs for it in virtual time.
pub(crate) const SCENARIOS: &[(&str, &str, u64)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Time that our watcher needs for the scenario of this id by its own delays; zero: unknown.
pub(crate) fn reference(id: &str) -> Duration {
    let built_in = SCENARIOS.iter().find(|(built_in, ..)| *built_in == id);
    built_in.map_or(Duration::ZERO, |(_, _, reference_ms)| {
        Duration::from_millis(*reference_ms)
    })
}
