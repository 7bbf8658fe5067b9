//! Outcome of a test from its trace. Pure: `recheck` repeats it for old evidence.

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::report::{Fold, ReportedObject};
use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::edition::Edition;
use judge::judge;
use judge::verdict::{Check, Contradiction, Outcome as Judgement, Verdict};

use super::outcome::{Outcome, cache_differs};

/// An outcome with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Outcome of the test.
    pub outcome: Outcome,
    /// Reason, in one sentence; empty if it passed.
    pub why: String,
    /// Verdict; `None`: the trace proves nothing.
    pub verdict: Option<Verdict>,
}

/// Judges a trace. `dump`: content of the library's cache at the end, if known. `cut`: the time limit ended the run.
/// `edition`: for a scenario that it lists, only its requirements count.
pub fn assess(
    scenario: &Scenario,
    records: &[Record],
    dump: Option<&[ReportedObject]>,
    cut: bool,
    edition: Option<&Edition>,
) -> Assessment {
    let edition = edition.filter(|edition| edition.has(&scenario.id));
    let mut verdict = judge(scenario, records);
    if let Some(edition) = edition {
        restrict(&mut verdict, edition);
    }
    let end = end_of(records);
    if let (Some(items), Some(RunEnd::Complete)) = (dump, end) {
        let mut fold = Fold::default();
        for record in records {
            if let What::Reported(report) = &record.what {
                fold.take(report);
            }
        }
        if let Some(found) = cache_differs(&fold, items, &scenario.expect.converges) {
            verdict.contradictions.push(found);
            if verdict.outcome == Judgement::Pass {
                verdict.outcome = Judgement::Mismatch;
            }
        }
    }
    // A waiting step alone proves nothing. If another check failed, it is reported with it.
    if let (true, Some(RunEnd::Stuck { waiting_for, .. })) = (cut, end)
        && verdict
            .contradictions
            .iter()
            .all(|found| found.check == Check::Run)
    {
        return Assessment {
            outcome: Outcome::NotPlayed,
            why: format!(
                "the time limit passed when the client was still active, and the scenario waited for {waiting_for}; use a longer --timeout"
            ),
            verdict: None,
        };
    }
    // The number of requests of a retry loop depends on the machine, and the outcome must not: it failed, and the scenario is
    // unfinished.
    let found = &mut verdict.contradictions;
    let is_unfinished = cut || matches!(end, Some(RunEnd::Runaway { .. }));
    let storm = found
        .iter()
        .find(|found| is_unfinished && found.check.is("INV-16"));
    if let Some(requirements) = storm.map(|storm| storm.requirements.clone()) {
        found.retain(|found| found.check != Check::Run);
        found.push(unfinished(requirements));
        if verdict.outcome == Judgement::Stuck {
            verdict.outcome = Judgement::Mismatch;
        }
    }
    Assessment {
        outcome: Outcome::of(scenario, &verdict, edition),
        why: verdict.message().to_owned(),
        verdict: Some(verdict),
    }
}

/// Contradiction of a client that retried until the run was ended. `requirements`: those that the retries violate; a machine
/// that is fast enough to end the run must not make it worse.
fn unfinished(requirements: Vec<String>) -> Contradiction {
    Contradiction {
        check: Check::Run,
        requirements,
        sentence: "the client kept failing until the run was ended".to_owned(),
        place: None,
        evidence: Vec::new(),
        expected: "the scenario completes".to_owned(),
        actual: "a retry storm".to_owned(),
    }
}

/// Removes contradictions whose requirements are all newer than the edition.
pub fn restrict(verdict: &mut Verdict, edition: &Edition) {
    let found = &mut verdict.contradictions;
    found.retain(|found| {
        let ids = &found.requirements;
        ids.is_empty() || ids.iter().any(|id| edition.level(id).is_some())
    });
    if found.is_empty() && verdict.outcome == Judgement::Mismatch {
        verdict.outcome = Judgement::Pass;
    }
}

/// Returns the end of a run.
fn end_of(records: &[Record]) -> Option<&RunEnd> {
    records.iter().rev().find_map(|record| {
        let What::RunEnded(end) = &record.what else {
            return None;
        };
        Some(end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge::trace::sample::{Sample, scenario};

    #[test]
    fn a_run_cut_while_the_client_is_active_proves_nothing() {
        let mut sample = Sample::new();
        sample.list(&[]).push(What::RunEnded(RunEnd::Stuck {
            step: 0,
            waited_ms: 90_000,
            waiting_for: "the next WATCH".to_owned(),
        }));
        let records = sample.records();
        let assessment = assess(&scenario(), &records, None, true, None);
        assert_eq!(
            (assessment.outcome, assessment.verdict),
            (Outcome::NotPlayed, None)
        );
        assert!(assessment.why.contains("the next WATCH"), "{}", assessment.why);
        let assessment = assess(&scenario(), &records, None, false, None);
        assert_eq!(assessment.outcome, Outcome::Hang);
    }

    /// The number of requests of a retry storm depends on the machine, and the outcome must not.
    #[test]
    fn a_retry_storm_has_one_outcome_on_any_machine() {
        let ended = |end: RunEnd| {
            let mut sample = Sample::new();
            for _ in 0..60 {
                sample.list(&[]).status(500, "").after(10);
            }
            sample.push(What::RunEnded(end)).records()
        };
        let stuck = RunEnd::Stuck {
            step: 0,
            waited_ms: 90_000,
            waiting_for: "the next WATCH".to_owned(),
        };
        let cut = assess(&scenario(), &ended(stuck), None, true, None);
        let storm = ended(RunEnd::Runaway { requests: 60 });
        let storm = assess(&scenario(), &storm, None, false, None);
        assert_eq!(cut.outcome, Outcome::Fail);
        let checks = |assessment: &Assessment| {
            let found = assessment
                .verdict
                .iter()
                .flat_map(|verdict| &verdict.contradictions);
            found.map(|found| found.check.clone()).collect::<Vec<_>>()
        };
        assert_eq!((cut.outcome, checks(&cut)), (storm.outcome, checks(&storm)));
        assert!(
            checks(&cut).contains(&Check::Run),
            "the unfinished scenario counts"
        );
        let named = |assessment: &Assessment| {
            let verdict = assessment.verdict.as_ref();
            let found = verdict.into_iter().flat_map(|verdict| &verdict.contradictions);
            found.map(|found| found.requirements.clone()).collect::<Vec<_>>()
        };
        assert!(
            named(&cut).iter().all(|ids| !ids.is_empty()),
            "the end of the run is no further defect: {:?}",
            named(&cut)
        );
    }

    fn found(requirements: &[&str]) -> Contradiction {
        Contradiction {
            check: Check::Expected("cache".to_owned()),
            requirements: requirements.iter().map(|id| (*id).to_owned()).collect(),
            sentence: String::new(),
            place: None,
            evidence: Vec::new(),
            expected: String::new(),
            actual: String::new(),
        }
    }

    #[test]
    fn requirements_newer_than_the_edition_are_ignored() {
        let text =
            "{edition: '1.1', requirements: {LIST-01: {level: SHOULD, scenarios: [sample/hand-written]}}}";
        let edition = Edition::parse(text).unwrap();
        let outcome = |requirements: &[&[&str]]| {
            let mut verdict = Verdict {
                outcome: Judgement::Mismatch,
                contradictions: requirements.iter().map(|ids| found(ids)).collect(),
            };
            restrict(&mut verdict, &edition);
            Outcome::of(&scenario(), &verdict, Some(&edition))
        };
        assert_eq!(outcome(&[&["LIST-02"]]), Outcome::Pass);
        assert_eq!(outcome(&[&["LIST-02"], &[]]), Outcome::Fail);
        // At MUST in the catalogue, and a warning by the edition.
        assert_eq!(outcome(&[&["LIST-01"]]), Outcome::Warn);
        assert_eq!(outcome(&[&["LIST-01", "LIST-02"], &["LIST-03"]]), Outcome::Warn);
    }
}
