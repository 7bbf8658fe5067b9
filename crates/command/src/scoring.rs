//! Options by which `run` and `conformance` score alike. It must not know how tests are run.

use std::collections::BTreeMap;

use clap::ValueEnum;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::tally::tally;
use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::catalogue::Level;
use fake_apiserver::scenario::edition::{self, Edition};
use judge::verdict::Verdict;
use report::results::Kept;

/// What a flaky test is: one that fails in one attempt and passes in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flaky {
    /// A failure.
    Fail,
    /// Reported only.
    Report,
}

/// Parses the name of an edition.
///
/// # Errors
///
/// This version has no such edition; the message lists those that it has.
pub(crate) fn edition_of(name: &str) -> Result<&'static Edition, String> {
    edition::edition(name).ok_or_else(|| {
        let names = edition::editions()
            .iter()
            .rev()
            .map(|edition| edition.name.as_str());
        let names: Vec<&str> = names.chain([edition::LATEST]).collect();
        format!("this version has: {}", names.join(", "))
    })
}

/// Returns the number of tests by the word of their outcome.
pub(crate) fn outcomes(of_tests: impl Iterator<Item = Outcome>) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = Outcome::ALL
        .into_iter()
        .map(|outcome| (outcome.word().to_owned(), 0))
        .collect();
    for outcome in of_tests {
        *counts.entry(outcome.word().to_owned()).or_default() += 1;
    }
    counts
}

/// Returns how many requirements were judged and kept, by the word of their level.
pub(crate) fn requirements(
    judged: &[(&Scenario, &Verdict)],
    edition: Option<&Edition>,
) -> BTreeMap<String, Kept> {
    let kept = |level: Level| {
        let tally = tally(level, judged, edition);
        let (kept, judged) = (tally.kept, tally.judged);
        (level.word().to_lowercase(), Kept { kept, judged })
    };
    [Level::Must, Level::Should].map(kept).into()
}
