//! What the trace of a test proves, and how the test came out. Pure: it is asked again of old evidence.

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::report::{Fold, ReportedObject};
use fake_apiserver::scenario::Scenario;
use judge::judge;
use judge::verdict::{Outcome as Judgement, Verdict};

use super::outcome::{Outcome, cache_differs};

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

/// Judges a trace. `dump`: the content of the library's cache at its end, where it is known; `cut`: the time limit ended it.
pub fn weigh(scenario: &Scenario, records: &[Record], dump: Option<&[ReportedObject]>, cut: bool) -> Weighed {
    let mut verdict = judge(scenario, records);
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
        && verdict.contradictions.iter().all(|found| found.check == "run")
    {
        return Weighed {
            outcome: Outcome::NotPlayed,
            why: format!(
                "the time limit passed when the client was still active, and the scenario waited for {waiting_for}; use a longer --timeout"
            ),
            verdict: None,
        };
    }
    Weighed {
        outcome: Outcome::of(&verdict),
        why: verdict.message().to_owned(),
        verdict: Some(verdict),
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
    use judge::trace::sample::{Sample, scenario};

    use super::*;

    #[test]
    fn a_run_that_was_cut_while_the_client_was_active_proves_nothing() {
        let mut sample = Sample::new();
        sample.list(&[]).push(What::RunEnded(RunEnd::Stuck {
            step: 0,
            waited_ms: 90_000,
            waiting_for: "the next WATCH".to_owned(),
        }));
        let records = sample.records();
        let weighed = weigh(&scenario(), &records, None, true);
        assert_eq!((weighed.outcome, weighed.verdict), (Outcome::NotPlayed, None));
        assert!(weighed.why.contains("the next WATCH"), "{}", weighed.why);
        assert_eq!(weigh(&scenario(), &records, None, false).outcome, Outcome::Hang);
    }
}
