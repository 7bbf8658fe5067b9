//! Requirements proven kept or broken by the results of one client. It must not know how they are drawn.

use std::collections::BTreeMap;

use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::catalogue;
use fake_apiserver::scenario::edition::{self, Edition};

use crate::results::TestResult;

/// Proof for a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proven {
    /// Covered by a judged test, and broken in none.
    Kept,
    /// Broken in these tests.
    Broken(Vec<String>),
}

/// Returns the proofs by requirement id; a requirement without a judged test is absent. With an edition, only
/// requirements that it counts.
pub(crate) fn proven(tests: &[TestResult], edition: Option<&Edition>) -> BTreeMap<String, Proven> {
    let mut proven: BTreeMap<String, Proven> = BTreeMap::new();
    for test in tests {
        // Attempts that differ prove nothing.
        if !test.outcome.is_judged() || matches!(test.standing, Standing::Flaky | Standing::NotScored) {
            continue;
        }
        let counts = |id: &&String| {
            edition.is_none_or(|edition| edition.tests(id, &test.id)) && is_of_its_level(test, id, edition)
        };
        for id in test.covers.iter().filter(counts) {
            let so_far = proven.entry(id.clone()).or_insert(Proven::Kept);
            match (test.breaks(id), so_far) {
                (false, _) => {}
                (true, Proven::Broken(tests)) => tests.push(test.id.clone()),
                (true, so_far @ Proven::Kept) => *so_far = Proven::Broken(vec![test.id.clone()]),
            }
        }
    }
    proven
}

/// Whether what a test shows counts at the level of the requirement: what only aggregated or old servers send does not
/// show that a MUST is broken.
fn is_of_its_level(test: &TestResult, id: &str, edition: Option<&Edition>) -> bool {
    let level = edition::level(edition, id);
    level.is_none_or(|level| catalogue::counted(test.provoked_by, level) == Some(level))
}

#[cfg(test)]
mod tests {
    use conformance::adapter::outcome::Outcome;

    use super::*;
    use crate::results::Found;
    use crate::results::tests::{found, result};

    #[test]
    fn a_requirement_is_broken_by_one_test_and_kept_by_all() {
        let kept = result("a/kept", Outcome::Pass, Standing::Passed, Vec::new());
        let broken = result(
            "b/broken",
            Outcome::Fail,
            Standing::Failed,
            vec![found("expect.cache", "no")],
        );
        assert_eq!(proven(std::slice::from_ref(&kept), None)["LIST-01"], Proven::Kept);
        let of_both = proven(&[broken.clone(), kept.clone()], None);
        assert_eq!(of_both["LIST-01"], Proven::Broken(vec!["b/broken".to_owned()]));
        let mut other = broken.clone();
        other.attempts[0].contradictions = Some(vec![Found {
            requirements: vec!["WATCH-01".to_owned()],
            ..found("INV-03", "no")
        }]);
        assert_eq!(proven(&[other], None)["LIST-01"], Proven::Kept);
        let text = "{edition: '1.1', requirements: {LIST-01: {level: MUST, scenarios: [a/kept]}}}";
        let edition = Edition::parse(text);
        let of_edition = proven(&[broken.clone(), kept], edition.as_ref());
        assert_eq!(of_edition["LIST-01"], Proven::Kept);
        let flaky = TestResult {
            standing: Standing::Flaky,
            ..broken
        };
        assert!(proven(&[flaky], None).is_empty());
    }
}
