//! What a run keeps: the evidence of failed scenarios in a directory, and an HTML page with a timeline of every scenario.
//!
//! Both are those of `conformance`, without events: a command reports none. It must not know how a scenario is played or judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ::report::html::{self, Kept};
use ::report::results::{self, AttemptResult, Footer, KnownFailure, Results, TestResult};
use conformance::adapter::attempt::Attempt;
use conformance::adapter::evidence::{self, Evidence, Summary};
use conformance::adapter::message::{ClientInfo, Recovers};
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use conformance::adapter::tally::tally;
use fake_apiserver::scenario::catalogue::Level;

use super::report::{Ended, again};
use super::{Played, Run, Skipped};
use crate::report::RESULTS;
use crate::{Failure, built_in, private};

/// Checks, before anything is played, that `folder` is new or empty.
///
/// # Errors
///
/// It is not.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::Usage(format!(
            "--evidence {} is not empty: name a new directory",
            folder.display()
        )));
    }
    Ok(())
}

/// Writes what the command line requests. `code`: exit code of the run.
///
/// # Errors
///
/// A file cannot be written, or that of a scenario cannot be read any more.
pub(super) fn write(ended: &Ended<'_>, run: &Run, code: u8) -> Result<(), Failure> {
    if !run.keeps_records() {
        return Ok(());
    }
    let kept = ended.played.iter().filter(|one| !one.records.is_empty());
    let kept = kept.map(|one| Ok((attempt(one, run), text(one)?)));
    let kept: Vec<(Attempt, String)> = kept.collect::<Result<_, Failure>>()?;
    let results = results(ended, run, code);
    if let Some(folder) = &run.evidence {
        for (attempt, text) in kept
            .iter()
            .filter(|(attempt, _)| attempt.outcome.accuses_client())
        {
            let folder = folder.join(&attempt.scenario.id).join("attempt-1");
            evidence::write(&folder, attempt, text, run.seed, run.edition)
                .map_err(|error| Failure::System(format!("cannot write {}", folder.display()), error))?;
        }
        // Without a failure the directory does not exist: the results are evidence too.
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::System(format!("cannot create the directory {}", folder.display()), error)
        })?;
        private::write_new(&folder.join(RESULTS), &results.lines())?;
    }
    if let Some(path) = &run.html {
        let attempts = kept.into_iter().map(|(attempt, text)| Kept {
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
    let scenario = &played.scenario;
    let of_program = built_in::SCENARIOS.iter().find(|(id, ..)| *id == scenario.id);
    match of_program.filter(|_| played.is_built_in) {
        Some((_, text, _)) => Ok((*text).to_owned()),
        None => std::fs::read_to_string(&scenario.path)
            .map_err(|error| Failure::System(format!("cannot read {}", scenario.path.display()), error)),
    }
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

fn standing(played: &Played, run: &Run) -> Standing {
    match &played.result {
        Ok(verdict) if verdict.passed() => Standing::Passed,
        Ok(_) if played.known.is_some() => Standing::Known,
        Ok(_) if played.is_flaky() => Standing::Flaky,
        Ok(_) if played.failed(run) => Standing::Failed,
        Ok(_) => Standing::Warned,
        Err(_) => Standing::NotJudged,
    }
}

fn results(ended: &Ended<'_>, run: &Run, code: u8) -> Results {
    let played = ended.played;
    let outcomes = Outcome::ALL.into_iter().map(|outcome| {
        let number = played.iter().filter(|one| self::outcome(one, run) == outcome);
        (outcome.word().to_owned(), number.count())
    });
    let judged = played.iter();
    let judged: Vec<_> = judged
        .filter_map(|one| Some((&*one.scenario, one.result.as_ref().ok()?)))
        .collect();
    let kept = |level: Level| {
        let tally = tally(level, &judged, run.edition);
        let (kept, judged) = (tally.kept, tally.judged);
        (level.word().to_lowercase(), results::Kept { kept, judged })
    };
    Results {
        tests: played.iter().map(|one| test(one, run)).collect(),
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
            outcomes: outcomes.collect::<BTreeMap<_, _>>(),
            requirements: [Level::Must, Level::Should].map(kept).into(),
            stale_entries: ended.stale.to_vec(),
            exit_code: code,
        }),
    }
}

fn test(played: &Played, run: &Run) -> TestResult {
    let scenario = &played.scenario;
    let known = played.known.as_ref().map(|known| KnownFailure {
        outcome: outcome(played, run).word().to_owned(),
        reason: format!("{}: {}", known.by, known.reason),
        issue: known.issue.clone().unwrap_or_else(|| "none public".to_owned()),
        line: 0,
    });
    TestResult {
        id: scenario.id.clone(),
        title: scenario.title.clone(),
        path: scenario.path.display().to_string(),
        // A file that cannot be read any more was reported when its evidence was written.
        digest: text(played)
            .map(|text| results::digest(&text))
            .unwrap_or_default(),
        covers: scenario.covers.iter().map(|covered| covered.id.clone()).collect(),
        provoked_by: scenario.provoked_by,
        outcome: outcome(played, run),
        standing: standing(played, run),
        message: why(played),
        known,
        attempts: vec![AttemptResult::from(&attempt(played, run))],
        rerun: again(run, &[played], true),
    }
}
