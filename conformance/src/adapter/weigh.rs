//! What the trace of a test proves, and how the test came out. Pure: it is asked again of old evidence.

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::report::{Fold, ReportedObject};
use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::edition::Edition;
use judge::judge;
use judge::verdict::{Contradiction, Outcome as Judgement, Verdict};

use super::outcome::{Outcome, cache_differs};

/// Check of a contradiction that comes from the end of a run.
const RUN: &str = "run";

/// An outcome with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// How the test came out.
    pub outcome: Outcome,
    /// Why, in a sentence; empty if it passed.
    pub why: String,
    /// What the trace proves; `None`: nothing.
    pub verdict: Option<Verdict>,
}

/// Judges a trace. `dump`: the content of the library's cache at its end, where it is known; `cut`: the time limit ended it;
/// `edition`: what counts of a scenario that it has, else all does.
pub fn weigh(
    scenario: &Scenario,
    records: &[Record],
    dump: Option<&[ReportedObject]>,
    cut: bool,
    edition: Option<&Edition>,
) -> Weighed {
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
        if let Some(found) = cache_differs(&fold, items) {
            verdict.contradictions.push(found);
            if verdict.outcome == Judgement::Pass {
                verdict.outcome = Judgement::Mismatch;
            }
        }
    }
    // That a step is still waiting proves nothing; where the client is wrong anyway, it belongs to the story.
    if let (true, Some(RunEnd::Stuck { waiting_for, .. })) = (cut, end)
        && verdict.contradictions.iter().all(|found| found.check == RUN)
    {
        return Weighed {
            outcome: Outcome::NotPlayed,
            why: format!(
                "the time limit passed when the client was still active, and the scenario waited for {waiting_for}; use a longer --timeout"
            ),
            verdict: None,
        };
    }
    // How many requests a client in a loop got to send depends on the machine, and its outcome must not: it failed, and did not
    // do what the scenario is about.
    let found = &mut verdict.contradictions;
    let is_unfinished = cut || matches!(end, Some(RunEnd::Runaway { .. }));
    if is_unfinished && found.iter().any(|found| found.check == "INV-16") {
        found.retain(|found| found.check != RUN);
        found.push(unfinished());
        if verdict.outcome == Judgement::Stuck {
            verdict.outcome = Judgement::Mismatch;
        }
    }
    Weighed {
        outcome: Outcome::of(&verdict, edition),
        why: verdict.message().to_owned(),
        verdict: Some(verdict),
    }
}

/// The client kept failing until the run was ended.
fn unfinished() -> Contradiction {
    Contradiction {
        check: RUN.to_owned(),
        requirements: Vec::new(),
        sentence: "the client kept failing until the run was ended".to_owned(),
        place: None,
        evidence: Vec::new(),
        expected: "the scenario comes to its end".to_owned(),
        actual: "a retry storm".to_owned(),
    }
}

/// Takes out what contradicts only requirements that are newer than the edition.
fn restrict(verdict: &mut Verdict, edition: &Edition) {
    let found = &mut verdict.contradictions;
    found.retain(|found| {
        let ids = &found.requirements;
        ids.is_empty() || ids.iter().any(|id| edition.level(id).is_some())
    });
    if found.is_empty() && verdict.outcome == Judgement::Mismatch {
        verdict.outcome = Judgement::Pass;
    }
}

/// The end of a run.
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
    fn a_run_that_was_cut_while_the_client_was_active_proves_nothing() {
        let mut sample = Sample::new();
        sample.list(&[]).push(What::RunEnded(RunEnd::Stuck {
            step: 0,
            waited_ms: 90_000,
            waiting_for: "the next WATCH".to_owned(),
        }));
        let records = sample.records();
        let weighed = weigh(&scenario(), &records, None, true, None);
        assert_eq!((weighed.outcome, weighed.verdict), (Outcome::NotPlayed, None));
        assert!(weighed.why.contains("the next WATCH"), "{}", weighed.why);
        let weighed = weigh(&scenario(), &records, None, false, None);
        assert_eq!(weighed.outcome, Outcome::Hang);
    }

    /// How many requests a retry storm has by the time limit depends on the machine, and its outcome must not.
    #[test]
    fn a_retry_storm_comes_out_the_same_on_any_machine() {
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
        let cut = weigh(&scenario(), &ended(stuck), None, true, None);
        let storm = ended(RunEnd::Runaway { requests: 60 });
        let storm = weigh(&scenario(), &storm, None, false, None);
        assert_eq!(cut.outcome, Outcome::Fail);
        let checks = |weighed: &Weighed| {
            let found = weighed.verdict.iter().flat_map(|verdict| &verdict.contradictions);
            found.map(|found| found.check.clone()).collect::<Vec<_>>()
        };
        assert_eq!((cut.outcome, checks(&cut)), (storm.outcome, checks(&storm)));
        assert!(
            checks(&cut).contains(&RUN.to_owned()),
            "what it did not do counts"
        );
    }

    fn found(requirements: &[&str]) -> Contradiction {
        Contradiction {
            check: "expect.cache".to_owned(),
            requirements: requirements.iter().map(|id| (*id).to_owned()).collect(),
            sentence: String::new(),
            place: None,
            evidence: Vec::new(),
            expected: String::new(),
            actual: String::new(),
        }
    }

    #[test]
    fn what_is_newer_than_the_edition_is_taken_out() {
        let text =
            "{edition: '1.1', requirements: {LIST-01: {level: SHOULD, scenarios: [sample/hand-written]}}}";
        let edition = Edition::parse(text).unwrap();
        let outcome = |requirements: &[&[&str]]| {
            let mut verdict = Verdict {
                outcome: Judgement::Mismatch,
                contradictions: requirements.iter().map(|ids| found(ids)).collect(),
            };
            restrict(&mut verdict, &edition);
            Outcome::of(&verdict, Some(&edition))
        };
        assert_eq!(outcome(&[&["LIST-02"]]), Outcome::Pass);
        assert_eq!(outcome(&[&["LIST-02"], &[]]), Outcome::Fail);
        // At MUST in the catalogue, and a warning by the edition.
        assert_eq!(outcome(&[&["LIST-01"]]), Outcome::Warn);
        assert_eq!(outcome(&[&["LIST-01", "LIST-02"], &["LIST-03"]]), Outcome::Warn);
    }
}
