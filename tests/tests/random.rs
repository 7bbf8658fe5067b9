//! Random scenarios, played in `sim` by our watcher: it converges in each, and neither the judge of reports nor that of the
//! wire accuses it.
//!
//! `RANDOM_SEEDS=20000 cargo test --release -p tests --test random` plays more of them; `RANDOM_FROM` is the first seed.

use adapter_watcher::WatcherClient;
use conformance::wire::{Loops, WireJudge};
use conformance::{drive, judge};
use tests::parallel;
use tests::random::Draft;

/// Seeds in the gate.
const SEEDS: u64 = 300;
/// Verdicts shown in full.
const SHOWN: usize = 5;

#[test]
fn a_random_scenario_flags_nothing() {
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

/// The file and what was found, if anything was: by the reports, or by the wire alone.
fn flag(seed: u64) -> Option<String> {
    let draft = Draft::of(seed);
    let scenario = draft.load();
    let records = drive::sim(&scenario, &WatcherClient, seed).records;
    let verdict = judge::judge(&scenario, &records);
    let mut found: Vec<String> = verdict
        .contradictions
        .iter()
        .map(|found| format!("{}: {} {:?}", found.check, found.sentence, found.evidence))
        .collect();
    for loops in [Loops::One, Loops::Many] {
        let excused = scenario
            .expect
            .excused
            .iter()
            .map(|excuse| excuse.invariant.clone());
        let mut judge = WireJudge::new(loops).excusing(excused.collect());
        let told = records.iter().flat_map(|record| judge.take(record));
        found.extend(told.map(|told| {
            format!(
                "on the wire loops: {loops:?} {}: {}",
                told.found.check, told.found.sentence
            )
        }));
    }
    (!found.is_empty()).then(|| format!("{draft}\n{}\n", found.join("\n")))
}
