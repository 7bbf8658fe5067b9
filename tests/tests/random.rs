//! Random honest scenarios, played in `sim` by our watcher: it converges in each, and no invariant is broken.
//!
//! `RANDOM_SEEDS=20000 cargo test --release -p tests --test random` plays more of them; `RANDOM_FROM` is the first seed.

use adapter_watcher::WatcherClient;
use conformance::{drive, judge};
use fake_apiserver::record::{Record, RunEnd, What};
use tests::parallel;
use tests::random::Draft;

/// Seeds in the gate.
const SEEDS: u64 = 500;
/// Verdicts shown in full.
const SHOWN: usize = 5;

#[test]
fn an_honest_scenario_flags_nothing() {
    let from = number("RANDOM_FROM").unwrap_or(0);
    let seeds: Vec<u64> = (from..from + number("RANDOM_SEEDS").unwrap_or(SEEDS)).collect();
    let flagged: Vec<String> = parallel::map(&seeds, |seed| flag(*seed))
        .into_iter()
        .flatten()
        .collect();
    let shown: Vec<&str> = flagged.iter().take(SHOWN).map(String::as_str).collect();
    assert!(
        flagged.is_empty(),
        "{} of {} flagged\n{}",
        flagged.len(),
        seeds.len(),
        shown.join("\n")
    );
}

/// The same seed draws the same scenario, and another seed another.
#[test]
fn a_seed_is_a_scenario() {
    assert_eq!(Draft::of(7), Draft::of(7));
    assert_ne!(Draft::of(7).to_string(), Draft::of(8).to_string());
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The file and what was found, if anything was.
fn flag(seed: u64) -> Option<String> {
    let draft = Draft::of(seed);
    let scenario = draft.load();
    let records = drive::sim(&scenario, &WatcherClient, seed).records;
    let verdict = judge::judge(&scenario, &records);
    // A step that can no longer come was drawn in vain.
    if verdict.passed() || records.iter().any(missed) {
        return None;
    }
    let found: Vec<String> = verdict
        .contradictions
        .iter()
        .map(|found| format!("{}: {} {:?}", found.check, found.sentence, found.evidence))
        .collect();
    Some(format!("{draft}\n{}\n", found.join("\n")))
}

fn missed(record: &Record) -> bool {
    matches!(record.what, What::RunEnded(RunEnd::Missed { .. }))
}
