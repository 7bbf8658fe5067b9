//! `e2e/suites/expected.yaml`: known failures with reasons, and the verdict of a run by that list.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::report::{Outcome, Outcomes};

/// Tests of a suite that fail for one reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Reason, as a sentence for `docs/fidelity.md`.
    pub reason: String,
    /// Whether they fail on a real server without controllers and kubelets too. [default: false]
    #[serde(default)]
    pub real: bool,
    /// Full names of the tests.
    pub specs: Vec<String>,
}

/// Known failures by suite.
pub type KnownFailures = BTreeMap<String, Vec<Expected>>;

/// The server a suite was run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// `fake-apiserver serve`.
    Fake,
    /// The oracle.
    Real,
}

/// Verdict of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of tests that passed.
    pub passed: usize,
    /// Number of tests that were run, or should have been.
    pub of: usize,
    /// Tests that passed at the second attempt.
    pub again: Vec<String>,
    /// Unlisted failures: name and message.
    pub unexpected: Vec<(String, String)>,
    /// Listed failures that passed, or that are not in the suite.
    pub stale: Vec<String>,
    /// Tests of the suite that were not run.
    pub missing: Vec<String>,
}

impl Verdict {
    /// Returns whether the results are as listed.
    pub fn is_as_expected(&self) -> bool {
        self.unexpected.is_empty() && self.stale.is_empty() && self.missing.is_empty()
    }
}

/// Returns the known failures.
///
/// # Errors
///
/// The file cannot be read.
pub fn known_failures() -> Result<KnownFailures, String> {
    let file = super::folder().join("expected.yaml");
    let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
    serde_saphyr::from_str(&text).map_err(|why| format!("{}: {why}", file.display()))
}

/// Compares `outcomes` with the `known` failures. `required` are the tests that must have been run.
pub fn judge(outcomes: &Outcomes, known: &[Expected], required: &[String], against: Against) -> Verdict {
    let listed: Vec<&String> = known
        .iter()
        .filter(|expected| against == Against::Fake || expected.real)
        .flat_map(|expected| &expected.specs)
        .collect();
    let missing: Vec<String> = required
        .iter()
        .filter(|spec| !outcomes.contains_key(*spec))
        .cloned()
        .collect();
    let mut verdict = Verdict {
        of: outcomes.len() + missing.len(),
        missing,
        ..Verdict::default()
    };
    for (spec, outcome) in outcomes {
        match outcome {
            Outcome::Passed => verdict.passed += 1,
            Outcome::PassedAgain => {
                verdict.passed += 1;
                verdict.again.push(spec.clone());
            }
            Outcome::Failed(message) if !listed.contains(&spec) => {
                verdict.unexpected.push((spec.clone(), message.clone()));
            }
            Outcome::Failed(_) => {}
        }
    }
    let fails = |spec: &&String| matches!(outcomes.get(*spec), Some(Outcome::Failed(_)));
    let stale = listed.into_iter().filter(|spec| !fails(spec));
    verdict.stale = stale.cloned().collect();
    verdict
}

#[cfg(test)]
mod tests {
    use super::{Against, Expected, Outcome, Outcomes, Verdict, judge, known_failures};
    use crate::suites::Suite;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn expected(real: bool, specs: &[&str]) -> Expected {
        Expected {
            reason: "A reason.".to_owned(),
            real,
            specs: names(specs),
        }
    }

    fn ran(passed: &[&str], failed: &[&str]) -> Outcomes {
        let passed = passed.iter().map(|name| ((*name).to_owned(), Outcome::Passed));
        let failed = failed
            .iter()
            .map(|name| ((*name).to_owned(), Outcome::Failed("why".to_owned())));
        passed.chain(failed).collect()
    }

    #[test]
    fn failures_are_expected_unexpected_stale_or_missing() {
        let known = [expected(false, &["known", "fixed", "renamed"])];
        let mut outcomes = ran(&["fine", "fixed"], &["known", "new"]);
        outcomes.insert("racy".to_owned(), Outcome::PassedAgain);
        let verdict = judge(&outcomes, &known, &names(&["fine", "unrun"]), Against::Fake);
        let wanted = Verdict {
            passed: 3,
            of: 6,
            again: names(&["racy"]),
            unexpected: vec![("new".to_owned(), "why".to_owned())],
            stale: names(&["fixed", "renamed"]),
            missing: names(&["unrun"]),
        };
        assert_eq!(verdict, wanted);
        assert!(!verdict.is_as_expected());
    }

    #[test]
    fn failures_of_the_fake_are_not_expected_of_a_real_server() {
        let known = [expected(false, &["fake"]), expected(true, &["both"])];
        let verdict = judge(&ran(&["fake"], &["both"]), &known, &[], Against::Real);
        assert!(verdict.is_as_expected(), "{verdict:?}");
        let verdict = judge(&ran(&[], &["both", "fake"]), &known, &[], Against::Real);
        assert_eq!(verdict.unexpected.len(), 1);
        let verdict = judge(&ran(&[], &["both", "fake"]), &known, &[], Against::Fake);
        assert!(verdict.is_as_expected(), "{verdict:?}");
    }

    #[test]
    fn known_failures_name_suites_and_listed_specs() {
        for (name, known) in known_failures().unwrap_or_else(|why| panic!("{why}")) {
            let suite = Suite::named(&name).unwrap_or_else(|| panic!("there is no suite {name}"));
            let Some(specs) = suite.specs().unwrap_or_else(|why| panic!("{why}")) else {
                continue;
            };
            for spec in known.iter().flat_map(|expected| &expected.specs) {
                assert!(specs.contains(spec), "{name} has no spec {spec:?}");
            }
        }
    }
}
