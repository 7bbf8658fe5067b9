//! Counts the requirements that a client satisfies and violates, by its tests.
//!
//! Pure. It must not know how tests are run or printed.

use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::catalogue::{self, Level};
use fake_apiserver::scenario::edition::{self, Edition};
use judge::verdict::Verdict;

/// Number of requirements of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Covered by a judged test, and violated in none.
    pub kept: usize,
    /// Covered by a judged test.
    pub judged: usize,
}

/// Counts the requirements of a level. `judged`: scenarios with their verdicts. With an edition, only its requirements and the
/// scenarios that it lists for them count.
pub fn tally(level: Level, judged: &[(&Scenario, &Verdict)], edition: Option<&Edition>) -> Tally {
    let mut tally = Tally::default();
    for requirement in catalogue::requirements() {
        if edition::level(edition, &requirement.id) != Some(level) {
            continue;
        }
        let id = requirement.id.as_str();
        let mut covering = judged
            .iter()
            .filter(|(scenario, _)| scenario.is_about(id))
            .filter(|(scenario, _)| edition.is_none_or(|edition| edition.tests(id, &scenario.id)))
            .filter(|(scenario, _)| scenario.counts(level) == Some(level))
            .peekable();
        if covering.peek().is_none() {
            continue;
        }
        tally.judged += 1;
        tally.kept += usize::from(!covering.any(|(_, verdict)| verdict.breaks(id)));
    }
    tally
}

#[cfg(test)]
mod tests {
    use fake_apiserver::scenario::{Covered, Place, edition};
    use judge::trace::sample::scenario;
    use judge::verdict::{Check, Contradiction, Outcome};

    use super::*;

    #[test]
    fn a_requirement_is_kept_if_no_test_violates_it() {
        let requirement = &catalogue::requirements()[0];
        let kept = Verdict {
            outcome: Outcome::Pass,
            contradictions: Vec::new(),
        };
        let broken = Verdict {
            outcome: Outcome::Mismatch,
            contradictions: vec![Contradiction {
                check: Check::Expected("requests[0]".to_owned()),
                requirements: vec![requirement.id.clone()],
                sentence: String::new(),
                place: None,
                evidence: Vec::new(),
                expected: String::new(),
                actual: String::new(),
            }],
        };
        let level = requirement.level;
        let mut scenario = scenario();
        scenario.covers = vec![Covered {
            id: requirement.id.clone(),
            at: Place::default(),
        }];
        let of = |verdicts: &[&Verdict]| {
            let judged: Vec<(&Scenario, &Verdict)> =
                verdicts.iter().map(|verdict| (&scenario, *verdict)).collect();
            let Tally { kept, judged } = tally(level, &judged, None);
            (kept > 0, judged)
        };
        assert_eq!(of(&[]), (false, 0));
        let (is_kept, number) = of(&[&kept]);
        assert!(is_kept && number > 0);
        assert_eq!(of(&[&kept, &broken]), (false, number));
    }

    #[test]
    fn only_scenarios_of_the_edition_count() {
        let edition = edition::edition(edition::LATEST).unwrap();
        let mut scored = edition.requirements.iter();
        let (id, scored) = scored
            .find(|(id, scored)| {
                let first = scored.scenarios.first().unwrap();
                edition.tests(id, first) && edition.level(id) == Some(scored.level)
            })
            .unwrap();
        let passed = Verdict {
            outcome: Outcome::Pass,
            contradictions: Vec::new(),
        };
        let mut scenario = scenario();
        scenario.covers = vec![Covered {
            id: id.clone(),
            at: Place::default(),
        }];
        let counted = |scenario: &Scenario| tally(scored.level, &[(scenario, &passed)], Some(edition)).judged;
        assert_eq!(counted(&scenario), 0, "the edition does not have {}", scenario.id);
        scenario.id = scored.scenarios.first().unwrap().clone();
        assert_eq!(counted(&scenario), 1);
    }
}
