//! Verdict on a run of a command, or why there is none.
//!
//! It reads records and starts nothing.

use std::time::Duration;

use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, SharedScenario};
use judge::effect::Effects;
use judge::judge_wire;
use judge::verdict::{Contradiction, Outcome, Verdict};
use judge::wire::Violation;

use super::Skipped;
use super::child::Ended;
use crate::judging::Judge;

/// No requests after a stop.
const AFTER_STOP: &str = "INV-18";

/// Judges the wire: invariants, expected requests, and how the command ended.
pub(super) fn judged(
    scenario: &SharedScenario,
    records: &[Record],
    judge: &Judge,
    ended: Option<&Ended>,
) -> (Verdict, Vec<Violation>) {
    let clients = judge.verdict().clients;
    let mut violations: Vec<_> = clients
        .into_iter()
        .flat_map(|client| client.contradictions)
        .collect();
    if ended.is_some_and(Ended::was_stopped_at_once) {
        violations.retain(|violation| violation.found.check != AFTER_STOP);
    }
    let found: Vec<Contradiction> = violations
        .iter()
        .map(|violation| violation.found.clone())
        .collect();
    let mut verdict = judge_wire(scenario, records, found);
    if let Some(crash) = ended.and_then(Ended::crash)
        && verdict.outcome != Outcome::HarnessError
    {
        verdict.outcome = Outcome::Crash;
        for contradiction in verdict
            .contradictions
            .iter_mut()
            .filter(|found| found.check == "run")
        {
            contradiction.sentence = format!("the command {crash} before the scenario was over");
        }
    }
    (verdict, violations)
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
    verdict.contradictions.retain(|found| found.check != "run");
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
            Outcome::Pass,
            Effects {
                lied: false,
                idle: Some((step, word)),
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
    verdict
        .contradictions
        .retain(|found| found.check.starts_with("INV-"));
    if verdict.contradictions.is_empty() {
        return Err(Skipped::NotJudged(why));
    }
    verdict.outcome = Outcome::Mismatch;
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
