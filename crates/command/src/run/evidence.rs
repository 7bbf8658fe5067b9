//! What a run keeps: the evidence of failed scenarios in a directory, and an HTML page with a timeline of every scenario.
//!
//! Both are those of `conformance`, without events: a command reports none. It must not know how a scenario is played or judged.

use std::path::Path;
use std::time::Duration;

use ::report::html::{self, Kept};
use ::report::results::{self, AttemptResult, Footer, KnownFailure, Results, TestResult};
use conformance::adapter::attempt::Attempt;
use conformance::adapter::evidence::{Evidence, Summary};
use conformance::adapter::message::{ClientInfo, Recovers};
use conformance::adapter::outcome::Outcome;

use super::report::{Ended, again};
use super::{Played, Run, Skipped};
use crate::{Failure, built_in, kept, private, scoring};

/// Writes what the command line requests. `code`: exit code of the run.
///
/// # Errors
///
/// A file cannot be written, or that of a scenario cannot be read any more.
pub(super) fn write(ended: &Ended<'_>, run: &Run, code: u8) -> Result<(), Failure> {
    if !run.keeps_records() {
        return Ok(());
    }
    let attempts = ended.played.iter().map(|one| Ok((attempt(one, run), text(one)?)));
    let attempts: Vec<(Attempt, String)> = attempts.collect::<Result<_, Failure>>()?;
    let results = results(ended, &attempts, run, code);
    if let Some(folder) = &run.evidence {
        for (attempt, text) in attempts
            .iter()
            .filter(|(attempt, _)| attempt.outcome.accuses_client())
        {
            kept::attempt(folder, 1, attempt, text, (run.seed, run.edition))?;
        }
        kept::results(folder, &results)?;
    }
    if let Some(path) = &run.html {
        let played = attempts
            .into_iter()
            .filter(|(attempt, _)| !attempt.records.is_empty());
        let attempts = played.map(|(attempt, text)| Kept {
            number: 1,
            scenario: Some(attempt.scenario.clone()),
            evidence: Evidence {
                summary: Summary::of(&attempt, run.seed, run.edition),
                text,
                errors: attempt.errors.join("\n"),
                records: attempt.records,
            },
            trimmed: Vec::new(),
        });
        let page = html::page(&[html::Run {
            name: program(run),
            results: Some(results),
            attempts: attempts.collect(),
        }]);
        private::write_new(path, &page)?;
    }
    Ok(())
}

/// Returns the content of a scenario's file.
fn text(played: &Played) -> Result<String, Failure> {
    built_in::text(&played.scenario, played.is_built_in)
        .map_err(|error| Failure::System(format!("cannot read {}", played.scenario.path.display()), error))
}

/// Returns the name of the program under test.
fn program(run: &Run) -> String {
    let first = run.command.first().map_or("", String::as_str);
    let name = Path::new(first).file_name().and_then(|name| name.to_str());
    name.unwrap_or(first).to_owned()
}

/// Returns a scenario that was played, in the terms of a conformance run.
fn attempt(played: &Played, run: &Run) -> Attempt {
    Attempt {
        scenario: played.scenario.clone(),
        outcome: outcome(played, run),
        why: why(played),
        verdict: played.result.as_ref().ok().cloned(),
        records: played.records.clone(),
        hello: None,
        cut: false,
        dump: None,
        stray: None,
        received: Vec::new(),
        errors: played.output.clone(),
        took: played.took,
        held_up: Duration::ZERO,
        ran: Duration::ZERO,
    }
}

fn outcome(played: &Played, run: &Run) -> Outcome {
    match &played.result {
        Ok(verdict) => Outcome::of(&played.scenario, verdict, run.edition),
        Err(Skipped::Needs(_)) => Outcome::Unsupported,
        Err(Skipped::NotJudged(_) | Skipped::NotStarted(_) | Skipped::Interrupted) => Outcome::NotPlayed,
    }
}

fn why(played: &Played) -> String {
    match &played.result {
        Ok(verdict) => verdict.message().to_owned(),
        Err(skipped) => skipped.to_string(),
    }
}

/// `attempts`: those of the scenarios, in order, with the content of each file.
fn results(ended: &Ended<'_>, attempts: &[(Attempt, String)], run: &Run, code: u8) -> Results {
    let played = ended.played;
    let judged = attempts.iter();
    let judged: Vec<_> = judged
        .filter_map(|(attempt, _)| Some((&*attempt.scenario, attempt.verdict.as_ref()?)))
        .collect();
    Results {
        tests: { played.iter().zip(attempts) }
            .map(|(one, (attempt, text))| test(one, attempt, text, run))
            .collect(),
        footer: Some(Footer {
            complete: !played.iter().any(|one| one.result == Err(Skipped::Interrupted)),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: run.seed,
            edition: run.edition.map(|edition| edition.name.clone()),
            edition_digest: run.edition.map(|edition| edition.digest.clone()),
            client: ClientInfo {
                name: program(run),
                lang: String::new(),
                version: String::new(),
                url: None,
                issues: None,
            },
            recovers: Recovers::Library,
            capabilities: Vec::new(),
            tests: played.len(),
            outcomes: scoring::outcomes(attempts.iter().map(|(attempt, _)| attempt.outcome)),
            requirements: scoring::requirements(&judged, run.edition),
            stale_entries: ended.stale.to_vec(),
            exit_code: code,
        }),
    }
}

fn test(played: &Played, attempt: &Attempt, text: &str, run: &Run) -> TestResult {
    let scenario = &played.scenario;
    let known = played.known.as_ref().map(|known| KnownFailure {
        outcome: attempt.outcome.word().to_owned(),
        reason: format!("{}: {}", known.by, known.reason),
        issue: known.issue.clone().unwrap_or_else(|| "none public".to_owned()),
        line: 0,
    });
    TestResult {
        id: scenario.id.clone(),
        title: scenario.title.clone(),
        path: scenario.path.display().to_string(),
        digest: results::digest(text),
        covers: scenario.covers.iter().map(|covered| covered.id.clone()).collect(),
        provoked_by: scenario.provoked_by,
        outcome: attempt.outcome,
        standing: played.standing(run),
        message: attempt.why.clone(),
        known,
        attempts: vec![AttemptResult::from(attempt)],
        rerun: again(run, &[played], true),
    }
}
