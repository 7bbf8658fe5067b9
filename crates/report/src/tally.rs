//! Requirements by what the results of one client prove: kept, broken, or nothing. It must not know how they are drawn.

use std::collections::BTreeMap;

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;

use crate::results::{Found, TestResult};

/// The invariant that every scenario expects: it stands for all that the scenario covers.
const CONVERGENCE: &str = "INV-13";

/// What the results prove of a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proven {
    /// Covered by a judged test, and broken in none.
    Kept,
    /// Broken in these tests.
    Broken(Vec<String>),
}

/// What the results prove, by requirement id; a requirement without a judged test is absent.
pub(crate) fn proven(tests: &[TestResult]) -> BTreeMap<String, Proven> {
    let mut proven: BTreeMap<String, Proven> = BTreeMap::new();
    for test in tests {
        // Attempts that differ prove nothing either way.
        if !test.outcome.is_judged() || test.standing == Standing::Flaky {
            continue;
        }
        for id in &test.covers {
            let is_broken =
                test.outcome == Outcome::Crash || test.found().iter().any(|found| breaks(found, id));
            let so_far = proven.entry(id.clone()).or_insert(Proven::Kept);
            match (is_broken, so_far) {
                (false, _) => {}
                (true, Proven::Broken(tests)) => tests.push(test.id.clone()),
                (true, so_far @ Proven::Kept) => *so_far = Proven::Broken(vec![test.id.clone()]),
            }
        }
    }
    proven
}

/// As `judge::verdict::Verdict::breaks`, of one contradiction.
fn breaks(found: &Found, requirement: &str) -> bool {
    let of_an_invariant = found.check.starts_with("INV-") && found.check != CONVERGENCE;
    !of_an_invariant || found.requirements.iter().any(|id| id == requirement)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(proven(std::slice::from_ref(&kept))["LIST-01"], Proven::Kept);
        let of_both = proven(&[broken.clone(), kept.clone()]);
        assert_eq!(of_both["LIST-01"], Proven::Broken(vec!["b/broken".to_owned()]));
        let mut other = broken.clone();
        other.attempts[0].contradictions = Some(vec![Found {
            requirements: vec!["WATCH-01".to_owned()],
            ..found("INV-03", "no")
        }]);
        assert_eq!(proven(&[other])["LIST-01"], Proven::Kept);
        let flaky = TestResult {
            standing: Standing::Flaky,
            ..broken
        };
        assert!(proven(&[flaky]).is_empty());
    }
}
