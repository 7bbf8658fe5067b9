//! Crowds of correct clients in virtual time: the wire judge reports none. A crowd with one incorrect client: it is
//! reported.
//!
//! `CROWD_SEEDS=500 cargo test --release -p tests --test crowds` runs more of them; `CROWD_FROM` is the first seed,
//! and `CROWD_MINUTES` the duration of each.

use std::time::Duration;

use conformance::wire::Violation;
use rstest::rstest;
use tests::crowd::{Crowd, KUBE_RUNTIME, MISTAKEN, Outcome};
use tests::parallel;
use tests::reference::Mistake;

/// Virtual minutes per crowd.
const MINUTES: u64 = 5;
/// Virtual minutes of a crowd with an incorrect client, whose mistake has to occur.
const MINUTES_WITH_A_WRONG_CLIENT: u64 = 20;

/// Violations correctly reported for kube-runtime (docs/kube-runtime-defects.md).
const KNOWN: [(&str, &str); 2] = [
    ("INV-04", "it watches from the same version again after HTTP 410"),
    ("INV-16", "it does not read Retry-After"),
];

#[rstest]
#[case::of_two(2, 8)]
#[case::of_ten(10, 4)]
#[case::of_a_hundred(100, 2)]
fn a_crowd_of_right_clients_is_not_accused(#[case] loops: usize, #[case] seeds: u64) {
    let from = number("CROWD_FROM").unwrap_or(0);
    let seeds = number("CROWD_SEEDS").unwrap_or(seeds);
    let minutes = number("CROWD_MINUTES").unwrap_or(MINUTES);
    let seeds: Vec<u64> = (from..from + seeds).collect();
    let played = parallel::map(&seeds, |seed| {
        let outcome = crowd(*seed, loops, minutes, None).play();
        let reads: u64 = outcome.verdict.clients.iter().map(|client| client.reads).sum();
        assert!(outcome.faults > 0 && reads > loops as u64, "nothing happened");
        println!(
            "seed {seed}: {reads} lists and watches, {} faults",
            outcome.faults
        );
        accusations(*seed, &outcome)
    });
    let accused: Vec<String> = played.into_iter().flatten().collect();
    assert!(
        accused.is_empty(),
        "{} accusations\n{}",
        accused.len(),
        accused.join("\n")
    );
}

/// If no client were ever reported, the test above would prove nothing.
#[rstest]
#[case(Mistake::IgnoresGoneEvent)]
#[case(Mistake::PinsLaterPages)]
#[case(Mistake::WatchesBeforeLastPage)]
#[case(Mistake::ForgetsLimit)]
fn a_wrong_client_in_a_crowd_is_accused(#[case] mistake: Mistake) {
    let outcome = crowd(1, 10, MINUTES_WITH_A_WRONG_CLIENT, Some(mistake)).play();
    let accused: Vec<String> = accusations(1, &outcome);
    assert!(
        accused.iter().any(|line| line.contains(MISTAKEN)),
        "{mistake:?} went unnoticed: {:#?}",
        outcome.verdict.clients
    );
    assert!(accused.iter().all(|line| line.contains(MISTAKEN)), "{accused:#?}");
}

fn crowd(seed: u64, loops: usize, minutes: u64, mistaken: Option<Mistake>) -> Crowd {
    Crowd {
        seed,
        loops,
        time: Duration::from_secs(60 * minutes),
        mistaken,
    }
}

/// Returns the violations reported, except correct ones.
fn accusations(seed: u64, outcome: &Outcome) -> Vec<String> {
    let violations = outcome.violations.iter();
    let false_ones = violations.filter(|violation| {
        let is_known = KNOWN.iter().any(|(check, _)| violation.found.check.is(check));
        !(is_known && violation.client == KUBE_RUNTIME)
    });
    false_ones.map(|violation| describe(seed, violation)).collect()
}

fn describe(seed: u64, violation: &Violation) -> String {
    format!(
        "seed {seed}: {} {} reading {}: {}\n    {}",
        violation.found.check, violation.client, violation.reading, violation.found.sentence, violation.proof
    )
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
