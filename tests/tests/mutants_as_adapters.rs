//! The results of `tests/tests/mutants.rs` in virtual time hold for adapters too: an incorrect client behind the
//! adapter protocol, in its own process and in real time, fails the scenario that catches its mistake.
//!
//! `cargo test -p tests --test mutants_as_adapters -- --include-ignored` runs every pair of mistake and scenario; it
//! takes four minutes, mostly waiting for idle clients.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tests::programs::{path, program};
use tests::reference::Mistake;
use tests::repository;

/// Mistakes that are caught within seconds.
const QUICK: [Mistake; 9] = [
    Mistake::AnyBookmarkEnds,
    Mistake::DecodesByChunk,
    Mistake::OffersGzipForWatches,
    Mistake::OutlivesStop,
    Mistake::ResumesFromItem,
    Mistake::RoundsIntegers,
    Mistake::SplitsAtLineSeparators,
    Mistake::TrustsTornLine,
    Mistake::WatchesFromLastPage,
];

/// Number of parallel tests: they mostly wait, and need no core for that.
const JOBS: &str = "8";

/// Requirements whose scenario runs here without a result, with reasons.
const NOT_SHOWN: [(&str, &str); 6] = [
    (
        "CLOSE-01",
        "the client is still busy at the time limit, and nothing is held against it",
    ),
    (
        "META-01",
        "the adapter breaks its promise of init events first, and the client is not charged for that",
    ),
    ("SCALE-03", "as META-01"),
    ("WATCH-05", "as META-01"),
    ("WATCH-06", "as META-01"),
    ("WLIST-09", "as META-01"),
];

/// Returns by mistake the scenarios that catch it, with the requirements each is named for, as accepted in
/// `mutants.rs`.
fn pairs() -> BTreeMap<Mistake, BTreeMap<String, BTreeSet<String>>> {
    let file = repository::root().join("tests/tests/snapshots/mutants__requirements.snap");
    let text = std::fs::read_to_string(file).expect("the snapshot of mutants.rs");
    let mut pairs: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
    for line in text.lines() {
        let named = line
            .split_once(": ")
            .and_then(|(id, by)| Some((id, by.split_once(" in ")?)));
        let Some((id, (mistake, scenario))) = named else {
            continue;
        };
        if let Some(mistake) = Mistake::named(mistake) {
            let ids = pairs
                .entry(mistake)
                .or_default()
                .entry(scenario.to_owned())
                .or_default();
            ids.insert(id.to_owned());
        }
    }
    assert!(pairs.len() > 40, "the snapshot of mutants.rs has another form");
    pairs
}

/// Returns the requirements that were shown, and a line for each of the others.
fn play(mistake: Mistake, scenarios: &BTreeMap<String, BTreeSet<String>>) -> (BTreeSet<String>, Vec<String>) {
    // A complete id also selects scenarios that take minutes; a prefix does not.
    let beginnings = scenarios.keys().map(|id| &id[..id.len() - 1]);
    let output = program("fake-apiserver")
        .args(["conformance", "--format", "json", "--jobs", JOBS])
        .args(beginnings)
        .arg("--")
        .arg(path("adapter-reference"))
        .arg(format!("{mistake:?}"))
        .output()
        .expect("it was just built");
    let (mut shown, mut not) = (BTreeSet::new(), Vec::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line).expect(line);
        let Some(ids) = line["id"].as_str().and_then(|id| scenarios.get(id)) else {
            continue;
        };
        match line["outcome"].as_str().unwrap_or_default() {
            "fail" | "warn" | "hang" | "crash" => shown.extend(ids.iter().cloned()),
            "not-played" if line["message"].to_string().contains("--profile full") => {}
            outcome => not.extend(ids.iter().filter(|id| !is_listed(id)).map(|id| {
                format!(
                    "{id}: {mistake:?} in {}: {outcome}: {}",
                    line["id"], line["message"]
                )
            })),
        }
    }
    (shown, not)
}

fn is_listed(id: &str) -> bool {
    NOT_SHOWN.iter().any(|(listed, _)| *listed == id)
}

/// Runs all pairs concurrently, because they mostly wait. Returns the requirements shown, by mistake.
fn play_all(
    pairs: &BTreeMap<Mistake, BTreeMap<String, BTreeSet<String>>>,
) -> BTreeMap<Mistake, BTreeSet<String>> {
    // Built before the threads need it.
    path("adapter-reference");
    let played: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = pairs
            .iter()
            .map(|(mistake, scenarios)| scope.spawn(|| (*mistake, play(*mistake, scenarios))))
            .collect();
        let ended = running
            .into_iter()
            .map(|one| one.join().expect("a mistake is played"));
        ended.collect()
    });
    let not: Vec<&String> = played.iter().flat_map(|(_, (_, not))| not).collect();
    assert!(not.is_empty(), "{not:#?}");
    played
        .into_iter()
        .map(|(mistake, (shown, _))| (mistake, shown))
        .collect()
}

#[test]
fn a_mistake_is_caught_in_a_process_too() {
    let mut pairs = pairs();
    pairs.retain(|mistake, _| QUICK.contains(mistake));
    for (mistake, shown) in play_all(&pairs) {
        assert!(!shown.is_empty(), "{mistake:?} is caught by nothing");
    }
}

#[test]
#[ignore = "takes four minutes of real time"]
fn every_mistake_is_caught_in_a_process_too() {
    let shown: BTreeSet<String> = play_all(&pairs()).into_values().flatten().collect();
    assert!(shown.len() >= 80, "{} requirements only: {shown:?}", shown.len());
}
