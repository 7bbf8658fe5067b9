//! Verdict on a run of a command, or why there is none.
//!
//! It reads records and starts nothing.

use std::time::Duration;

use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{Scenario, SharedScenario};
use judge::effect::Effects;
use judge::judge_wire;
use judge::verdict::{Check, Contradiction, Outcome, Verdict};
use judge::wire::Violation;

use super::Skipped;
use super::child::Ended;
use crate::judging::Judge;

/// No requests after a stop.
const AFTER_STOP: &str = "INV-18";

/// Time after the stop in which a request may still be read that was sent before the process received SIGTERM: on a busy
/// machine neither the process nor the server runs at once.
const CROSSING: Duration = Duration::from_secs(1);

/// Judges the wire: invariants, expected requests, and how the command ended. `crash`: its end, if that was an error that counts.
pub(super) fn judged(
    scenario: &SharedScenario,
    records: &[Record],
    judge: &Judge,
    ended: Option<&Ended>,
    crash: Option<&Ended>,
) -> (Verdict, Vec<Violation>) {
    let clients = judge.verdict().clients;
    let mut violations: Vec<_> = clients
        .into_iter()
        .flat_map(|client| client.contradictions)
        .collect();
    if let Some(ended) = ended {
        violations.retain(|violation| {
            !violation.found.check.is(AFTER_STOP) || shows_life(violation, records, ended)
        });
    }
    let found: Vec<Contradiction> = violations
        .iter()
        .map(|violation| violation.found.clone())
        .collect();
    let mut verdict = judge_wire(scenario, records, found);
    if let Some(crash) = crash
        && verdict.outcome != Outcome::HarnessError
    {
        verdict.outcome = Outcome::Crash;
        for contradiction in verdict
            .contradictions
            .iter_mut()
            .filter(|found| found.check == Check::Run)
        {
            contradiction.sentence = format!("the command {} before the scenario was over", crash.words());
        }
    }
    (verdict, violations)
}

/// Returns whether a violation after the stop shows that the command did not obey. The end of a process closes its connections,
/// and the server may see that late: only a process that had to be killed left them open.
fn shows_life(violation: &Violation, records: &[Record], ended: &Ended) -> bool {
    if ended.outlived_its_grace() {
        return true;
    }
    if ended.was_dead_at_the_stop() || ended.was_stopped_at_once() {
        return false;
    }
    let at = |is: &dyn Fn(&Record) -> bool| records.iter().find(|record| is(record)).map(|record| record.at);
    let stopped = at(&|record| matches!(record.what, What::StopRequested));
    let proof = violation.found.evidence.iter().max();
    let requested = at(&|record| proof == Some(&record.seq) && matches!(record.what, What::Request { .. }));
    matches!((stopped, requested), (Some(stopped), Some(requested)) if requested > stopped + CROSSING)
}

/// Returns the requests that prove the contradictions, as lines of the trace; empty if no single one does.
pub(super) fn proofs(verdict: &Verdict, violations: &[Violation]) -> Vec<String> {
    let proof = |found: &Contradiction| {
        let proof = violations.iter().find(|violation| violation.found == *found);
        proof.map(|violation| violation.proof.clone()).unwrap_or_default()
    };
    verdict.contradictions.iter().map(proof).collect()
}

/// Returns a verdict, or why there is none: a command that read other resources proves nothing, and a run that was cut proves
/// only violations up to then.
pub(super) fn weighed(
    mut verdict: Verdict,
    missed: Option<String>,
    cut: Option<String>,
) -> Result<Verdict, Skipped> {
    match verdict.outcome {
        Outcome::Crash | Outcome::HarnessError => return Ok(verdict),
        Outcome::Pass | Outcome::Mismatch | Outcome::Stuck => {}
    }
    if let Some(why) = missed {
        return Err(Skipped::NotJudged(why));
    }
    let Some(why) = cut else { return Ok(verdict) };
    verdict.contradictions.retain(|found| found.check != Check::Run);
    if verdict.contradictions.is_empty() {
        return Err(Skipped::NotJudged(why));
    }
    verdict.outcome = Outcome::Mismatch;
    Ok(verdict)
}

/// Returns a verdict on a command that was restarted, or why there is none: what is missing may be missing because the new process
/// took another way through the scenario. What a process must not do, it did. `restarts`: their description, if there were any.
pub(super) fn certain(mut verdict: Verdict, restarts: Option<String>) -> Result<Verdict, Skipped> {
    let Some(restarts) = restarts.filter(|_| !verdict.passed()) else {
        return Ok(verdict);
    };
    if verdict.outcome == Outcome::HarnessError {
        return Ok(verdict);
    }
    let why = format!("the command was {restarts}, and {}", verdict.message());
    verdict.contradictions.retain(|found| found.check.proves_alone());
    if verdict.contradictions.is_empty() {
        return Err(Skipped::NotJudged(why));
    }
    verdict.outcome = Outcome::Mismatch;
    Ok(verdict)
}

/// Returns a verdict on expectations of the scenario, or why there is none: if a fault was not injected as planned, other
/// behaviour of the client may be correct. Invariants apply nevertheless.
pub(super) fn proven(
    scenario: &Scenario,
    mut verdict: Verdict,
    effects: Effects,
) -> Result<Verdict, Skipped> {
    let line = |step: usize| scenario.steps.get(step).map_or(0, |step| step.at.line);
    let why = match (verdict.outcome, effects) {
        (Outcome::Crash | Outcome::HarnessError, _) => return Ok(verdict),
        (Outcome::Stuck, Effects { lied: false, .. }) => {
            format!("the server had injected no fault by then: {}", verdict.message())
        }
        (
            Outcome::Stuck,
            Effects {
                starts_without_list: true,
                ..
            },
        ) => {
            format!(
                "the command started by a WATCH without resourceVersion instead of a LIST: {}",
                verdict.message()
            )
        }
        (
            Outcome::Mismatch | Outcome::Stuck,
            Effects {
                foreign: Some(step), ..
            },
        ) => format!(
            "step {} (line {}) sends the JSON of an object as the file has it, and the command asked for another representation: {}",
            step + 1,
            line(step),
            verdict.message()
        ),
        (
            Outcome::Pass,
            Effects {
                lied: false,
                idle: Some((step, word)),
                ..
            },
        )
        | (
            Outcome::Mismatch | Outcome::Stuck,
            Effects {
                idle: Some((step, word)),
                ..
            },
        ) => format!(
            "the `{word}` of step {} (line {}) never took effect",
            step + 1,
            line(step)
        ),
        (Outcome::Pass | Outcome::Mismatch | Outcome::Stuck, _) => return Ok(verdict),
    };
    verdict.contradictions.retain(|found| found.check.is_invariant());
    if verdict.contradictions.is_empty() {
        return Err(Skipped::NotJudged(why));
    }
    verdict.outcome = Outcome::Mismatch;
    Ok(verdict)
}

/// Returns what is certain of a verdict in front of a real cluster, or why nothing is: what a scenario expects is about its own server.
pub(super) fn certain_upstream(
    mut verdict: Verdict,
    records: &[Record],
    effects: Effects,
) -> Result<Verdict, Skipped> {
    match verdict.outcome {
        Outcome::HarnessError | Outcome::Crash => return Ok(verdict),
        Outcome::Pass | Outcome::Mismatch | Outcome::Stuck => {}
    }
    let unmet = verdict.message().to_owned();
    verdict.contradictions.retain(|found| found.check.is_invariant());
    if !verdict.contradictions.is_empty() {
        verdict.outcome = Outcome::Mismatch;
        return Ok(verdict);
    }
    let is_complete = records
        .iter()
        .any(|record| matches!(record.what, What::RunEnded(RunEnd::Complete)));
    if !is_complete {
        return Err(Skipped::NotJudged(format!(
            "no invariant is violated, and {unmet}"
        )));
    }
    if !effects.lied {
        return Err(Skipped::NotJudged(
            "no fault of it had an effect in front of this cluster".to_owned(),
        ));
    }
    verdict.outcome = Outcome::Pass;
    Ok(verdict)
}

/// Returns why a run that was cut proves nothing.
pub(super) fn cut_words(longest: Duration, waiting: Option<&(usize, String)>) -> String {
    let waiting = match waiting {
        Some((step, words)) => format!("step {} was waiting for {words}", step + 1),
        None => "the command was not idle yet".to_owned(),
    };
    format!(
        "stopped by --timeout after {} s, when {waiting}; try a longer --timeout",
        longest.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::{ConnId, Side};
    use judge::trace::sample::{Sample, scenario};
    use judge::wire::Loops;
    use rstest::rstest;

    use super::*;

    /// INV-18 of a client whose watch is open at the stop, and which does `then`.
    fn after_the_stop(ended: &Ended, then: fn(&mut Sample)) -> usize {
        let mut sample = Sample::new();
        sample.list(&[]).page("10", "", &[]).watch("10");
        sample.after(5000).push(What::StopRequested);
        then(&mut sample);
        let records = sample.complete();
        let judge = Judge::new(Loops::One, Vec::new());
        judge.hear(Duration::from_secs(60), &records);
        let (_, violations) = judged(&scenario().into(), &records, &judge, Some(ended), None);
        let of_stop = violations
            .iter()
            .filter(|violation| violation.found.check.is(AFTER_STOP));
        of_stop.count()
    }

    fn lists_after(ms: u64, sample: &mut Sample) {
        sample.push(closed());
        sample.after(ms).list(&[]).page("10", "", &[]).eof();
    }

    fn closed() -> What {
        What::Disconnected {
            conn: ConnId(2),
            by: Side::Client,
        }
    }

    #[rstest]
    #[case::closed_in_time(Ended::of_exit(0), |s: &mut Sample| { s.after(500).push(closed()); }, 0)]
    #[case::seen_to_close_late(Ended::of_exit(0), |s: &mut Sample| { s.after(4000).push(closed()); }, 0)]
    #[case::killed_after_its_grace(Ended::of_kill(), |s: &mut Sample| { s.after(5000).push(closed()); }, 1)]
    #[case::a_request_on_its_way(Ended::of_exit(0), |s: &mut Sample| lists_after(900, s), 0)]
    #[case::a_request(Ended::of_exit(0), |s: &mut Sample| lists_after(1100, s), 1)]
    #[case::a_request_of_a_process_that_was_killed(Ended::of_kill(), |s: &mut Sample| lists_after(900, s), 1)]
    #[case::dead_before(Ended::of_crash(), |s: &mut Sample| { s.after(4000).push(closed()); }, 0)]
    fn only_a_living_process_is_charged_after_the_stop(
        #[case] ended: Ended,
        #[case] then: fn(&mut Sample),
        #[case] expected: usize,
    ) {
        assert_eq!(after_the_stop(&ended, then), expected);
    }

    fn failed(check: Check) -> Verdict {
        Verdict {
            outcome: Outcome::Mismatch,
            contradictions: vec![Contradiction {
                check,
                requirements: Vec::new(),
                sentence: "the client never did it".to_owned(),
                place: None,
                evidence: vec![1],
                expected: String::new(),
                actual: String::new(),
            }],
        }
    }

    #[rstest]
    #[case::what_is_missing(Check::Expected("requests[0]".to_owned()), false)]
    #[case::the_end(Check::Run, false)]
    #[case::forbidden(Check::Forbidden("never[0]".to_owned()), true)]
    #[case::an_invariant(Check::Invariant("INV-01"), true)]
    fn only_what_a_restarted_command_did_counts(#[case] check: Check, #[case] counts: bool) {
        let verdict = failed(check);
        assert_eq!(certain(verdict.clone(), None), Ok(verdict.clone()));
        let restarts = "restarted 1× (exited with code 1)".to_owned();
        let found = certain(verdict, Some(restarts));
        assert_eq!(found.is_ok(), counts);
        if let Err(skipped) = found {
            assert_eq!(
                skipped.to_string(),
                "not judged: the command was restarted 1× (exited with code 1), and the client never did it"
            );
        }
    }
}
