//! Output of `run`: a line per scenario when it ends, explanations of failures, a summary, and the command to run next.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use conformance::adapter::standing::Standing;
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::LoadErrors;
use fake_apiserver::scenario::catalogue::{self, Level};
use judge::verdict::Contradiction;
use judge::wire::{Needs, SETTINGS, needed_settings};
use owo_colors::{OwoColorize as _, Style};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::json;

use super::restart;
use super::{ALL, Excuse, Format, Played, Run, Skipped};
use crate::check::listed;
use crate::stop::Stop;
use crate::words::quoted;
use crate::{Failure, junit, output};

/// Maximum contradictions explained per scenario; others are counted.
const SHOWN: usize = 3;

/// What a run came to.
#[derive(Clone, Copy)]
pub(super) struct Ended<'a> {
    /// Scenarios, in order.
    pub(super) played: &'a [Played],
    pub(super) mistaken: &'a [LoadErrors],
    /// Entries of --known-failures that are no failures.
    pub(super) stale: &'a [String],
    /// Failures of libraries that did not happen.
    pub(super) unseen: &'a [String],
}

/// Prints results as scenarios end.
pub(super) struct Report {
    format: Format,
    /// Ids of all scenarios, in order.
    ids: Vec<String>,
    /// Whether progress can be drawn.
    moves: bool,
    colour: bool,
}

impl Report {
    pub(super) fn new(format: Format, ids: Vec<String>) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            format,
            ids,
            moves: io::stderr().is_terminal(),
            colour: format == Format::Text && io::stdout().is_terminal() && !plain,
        }
    }

    /// Draws progress: `over` scenarios have ended.
    pub(super) fn moves(&self, over: usize) {
        if self.moves
            && let Some(id) = self.ids.get(over)
        {
            let all = self.ids.len();
            output::log_raw(&format!("\r\x1b[K{over} of {all} played, now {id} …"));
        }
    }

    /// Prints the result of a scenario.
    pub(super) async fn tells(&self, played: &Played, run: &Run, stop: &Stop) -> Result<(), Failure> {
        if self.moves {
            output::log_raw("\r\x1b[K");
            // Both may be the same terminal: keep the order.
            output::flush_log();
        }
        match self.format {
            Format::Text => output::print(self.text(played, run), stop).await,
            Format::Json => output::print(json_line(played, run) + "\n", stop).await,
            Format::Junit => Ok(()),
        }
    }

    /// Prints the summary.
    pub(super) async fn ends(&self, ended: &Ended<'_>, run: &Run, stop: &Stop) -> Result<(), Failure> {
        let Ended { played, mistaken, .. } = ended;
        let counts = Counts::of(played, run);
        match self.format {
            Format::Text => output::print(summary(ended, &counts, run), stop).await,
            Format::Json => {
                let mut lines = String::new();
                for errors in *mistaken {
                    // Writing to a String cannot fail.
                    let _ = writeln!(lines, "{}", mistaken_line(errors, run));
                }
                let footer = json!({"footer": {
                    "scenarios": played.len(),
                    "passed": counts.passed,
                    "failed": counts.failed,
                    "warned": counts.warned,
                    "known": counts.known,
                    "notScored": counts.not_scored,
                    "stale": ended.stale,
                    "unseen": ended.unseen,
                    "skipped": counts.skipped(),
                    "notJudged": counts.not_judged,
                    "invalid": mistaken.len(),
                    "interrupted": counts.interrupted,
                }});
                output::print(format!("{lines}{footer}\n"), stop).await
            }
            Format::Junit => output::print(junit(ended, run)?, stop).await,
        }
    }

    fn text(&self, played: &Played, run: &Run) -> String {
        let id = &played.scenario.id;
        let mut took = format!("{:.2} s", played.took.as_secs_f64());
        if let Some(restarts) = restart::words(&played.restarts) {
            // Writing to a String cannot fail.
            let _ = write!(took, "   {restarts}");
        }
        let standing = played.standing(run);
        let mark = mark(standing, self.colour);
        match &played.result {
            Err(skipped @ (Skipped::Needs(_) | Skipped::Interrupted)) => format!("{mark} {id}   {skipped}\n"),
            Err(skipped @ (Skipped::NotJudged(_) | Skipped::NotStarted(_))) => {
                let mut text = format!("{mark} {id}   {took}   {}\n", printable(&skipped.to_string()));
                for line in &played.output {
                    let _ = writeln!(text, "  output {line}");
                }
                text
            }
            Ok(verdict) if verdict.passed() => format!("{mark} {id}   {took}\n"),
            Ok(verdict) if standing == Standing::NotScored => {
                let word = verdict.outcome.word();
                let why = printable(verdict.message());
                format!("{mark} {id}   {took}   not scored, {word}: {why}\n")
            }
            Ok(_) if let Some(known) = &played.known => {
                format!("{mark} {id}   {took}   known failure of {}\n", excused(known))
            }
            Ok(verdict) => {
                let word = match standing == Standing::Warned {
                    true => "warning",
                    false if played.is_flaky() => "flaky",
                    false => verdict.outcome.word(),
                };
                let mut text = format!("{mark} {id}   {took}   {word}\n");
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  claim  {}", played.scenario.title);
                if played.tries.len() > 1 {
                    let _ = writeln!(text, "  tries  {}", played.tries.join(", "));
                }
                for (found, proof) in verdict.contradictions.iter().zip(&played.proofs).take(SHOWN) {
                    let _ = writeln!(text, "  {}   {}", heading(found), place(played, found));
                    let _ = writeln!(text, "  why    {}", printable(&found.sentence));
                    if !proof.is_empty() {
                        let _ = writeln!(text, "  proof  {proof}");
                    }
                }
                if let Some(more) = verdict
                    .contradictions
                    .len()
                    .checked_sub(SHOWN)
                    .filter(|more| *more > 0)
                {
                    let _ = writeln!(text, "  also   {more} more");
                }
                for line in &played.output {
                    let _ = writeln!(text, "  output {line}");
                }
                let _ = writeln!(text, "  rerun  {}", again(run, &[played], true));
                text
            }
        }
    }
}

struct Counts {
    passed: usize,
    failed: usize,
    warned: usize,
    known: usize,
    not_scored: usize,
    need_adapter: usize,
    need_telling: usize,
    need_time: usize,
    need_model: usize,
    not_judged: usize,
    interrupted: bool,
}

impl Counts {
    fn of(played: &[Played], run: &Run) -> Self {
        let count = |of: &dyn Fn(&Played) -> bool| played.iter().filter(|one| of(one)).count();
        Self {
            passed: count(&Played::passed),
            failed: count(&|one| one.failed(run)),
            warned: count(&|one| one.standing(run) == Standing::Warned),
            known: count(&|one| one.standing(run) == Standing::Known),
            not_scored: count(&|one| one.standing(run) == Standing::NotScored),
            need_adapter: count(&|one| matches!(&one.result, Err(Skipped::Needs(Needs::Adapter(_))))),
            need_telling: count(&|one| matches!(&one.result, Err(Skipped::Needs(Needs::Told(_))))),
            need_time: count(&|one| matches!(&one.result, Err(Skipped::Needs(Needs::Time(_))))),
            need_model: count(&|one| matches!(&one.result, Err(Skipped::Needs(Needs::Model(_))))),
            not_judged: count(&|one| {
                matches!(&one.result, Err(Skipped::NotJudged(_) | Skipped::NotStarted(_)))
            }),
            interrupted: count(&|one| one.result == Err(Skipped::Interrupted)) > 0,
        }
    }

    fn skipped(&self) -> usize {
        self.need_adapter + self.need_telling + self.need_time + self.need_model
    }
}

/// Returns the sign before a scenario.
fn mark(standing: Standing, colour: bool) -> String {
    let (mark, style) = match standing {
        Standing::Passed => ("✔", Style::new().green()),
        Standing::Known => ("✓", Style::new()),
        Standing::Warned => ("!", Style::new().yellow()),
        Standing::NotJudged | Standing::NotScored => ("–", Style::new()),
        Standing::Failed
        | Standing::Flaky
        | Standing::Stale
        | Standing::AdapterError
        | Standing::HarnessError => ("✘", Style::new().red()),
    };
    match colour {
        true => mark.style(style).to_string(),
        false => mark.to_owned(),
    }
}

/// Returns the word of a standing as a `verdict`.
fn verdict_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Passed => "passed",
        Standing::Warned => "warned",
        Standing::Known => "known",
        Standing::NotScored => "not_scored",
        Standing::NotJudged => "not_judged",
        Standing::Failed
        | Standing::Flaky
        | Standing::Stale
        | Standing::AdapterError
        | Standing::HarnessError => "failed",
    }
}

/// Returns by what a failure is known, why, and where it is public.
fn excused(known: &Excuse) -> String {
    let issue = known.issue.as_deref().map(|issue| format!(" ({issue})"));
    format!("{}: {}{}", known.by, known.reason, issue.unwrap_or_default())
}

fn summary(ended: &Ended<'_>, counts: &Counts, run: &Run) -> String {
    let Ended {
        played,
        mistaken,
        stale,
        unseen,
    } = *ended;
    let some = |number: usize, word: &str| match number {
        0 => String::new(),
        number => format!(", {number} {word}"),
    };
    let mut text = format!(
        "\n{} passed, {} failed{}{}{}, {} skipped",
        counts.passed,
        counts.failed,
        some(counts.warned, "warned"),
        some(counts.known, "known"),
        some(counts.not_scored, "not scored"),
        counts.skipped()
    );
    let mut why = Vec::new();
    if counts.need_adapter > 0 {
        why.push(format!("{} need an adapter", counts.need_adapter));
    }
    if counts.need_telling > 0 {
        why.push(format!("{} need client settings", counts.need_telling));
    }
    if counts.need_time > 0 {
        why.push(format!("{} need more time", counts.need_time));
    }
    if counts.need_model > 0 {
        why.push(format!("{} need the server in memory", counts.need_model));
    }
    if !why.is_empty() {
        let _ = write!(text, " ({})", why.join(", "));
    }
    if counts.not_judged > 0 {
        let _ = write!(text, "; {} not judged", counts.not_judged);
    }
    match mistaken {
        [] => {}
        [_] => text.push_str("; 1 file has mistakes"),
        files => {
            let _ = write!(text, "; {} files have mistakes", files.len());
        }
    }
    if counts.interrupted {
        text.push_str("; interrupted");
    }
    text.push('\n');
    for entry in stale {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{entry}");
    }
    if !unseen.is_empty() {
        let _ = writeln!(text, "passed here, though known to fail: {}", unseen.join(", "));
    }
    if played.is_empty() {
        return text;
    }
    if played
        .iter()
        .any(|one| matches!(one.result, Err(Skipped::NotStarted(_))))
    {
        text.push_str(
            "next: start the command by itself; it must list and watch until it receives SIGTERM\n",
        );
        return text;
    }
    if counts.interrupted {
        return text;
    }
    let failed: Vec<&Played> = played.iter().filter(|one| one.failed(run)).collect();
    if !failed.is_empty() {
        let _ = writeln!(text, "next: {}", again(run, &failed, true));
    } else if counts.warned > 0 {
        text.push_str("next: read the warnings; --strict makes them failures\n");
    } else if counts.not_judged > 0 {
        text.push_str("next: fix the reasons why scenarios were not judged, and run them again\n");
    } else if counts.need_telling > 0 && !run.assume_configured.iter().any(|given| given == ALL) {
        let settings = settings_needed(played, run).join(",");
        let _ = writeln!(
            text,
            "next: apply the settings of FAKE_APISERVER_CLIENT in the command, and add --assume-configured={settings}"
        );
    } else if counts.passed == 0 && counts.need_adapter == 0 {
        text.push_str("next: add --profile full, which plays scenarios that take minutes\n");
    } else if counts.passed == 0 {
        text.push_str(
            "next: choose scenarios that need no adapter, or write one (CONTRIBUTING.md, \"Add a client\")\n",
        );
    } else {
        text.push_str("next: try other seeds, e.g. --seed 1\n");
    }
    text
}

/// Returns the settings that scenarios were not judged without, and those that are promised already.
fn settings_needed(played: &[Played], run: &Run) -> Vec<&'static str> {
    let needed: BTreeSet<&str> = played
        .iter()
        .filter(|one| matches!(one.result, Err(Skipped::Needs(Needs::Told(_)))))
        .flat_map(|one| needed_settings(&one.scenario))
        .collect();
    let is_given = |key: &str| run.assume_configured.iter().any(|given| given == key);
    let mut settings = SETTINGS.to_vec();
    settings.retain(|key| needed.contains(key) || is_given(key));
    settings
}

/// Returns the command that plays these scenarios again.
pub(super) fn again(run: &Run, played: &[&Played], traced: bool) -> String {
    let files: Vec<String> = played
        .iter()
        .map(|one| quoted(&one.scenario.path.display().to_string()))
        .collect();
    let command: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
    format!(
        "fake-apiserver run {} --seed {}{}{}{}{}{}{}{} -- {}",
        files.join(" "),
        run.seed,
        run.edition
            .map_or(String::new(), |edition| format!(" --edition {}", edition.name)),
        if run.jobs.get() > 1 && played.len() > 1 {
            format!(" --jobs {}", run.jobs)
        } else {
            String::new()
        },
        match run.assume_configured.as_slice() {
            [] => String::new(),
            settings => format!(" --assume-configured={}", settings.join(",")),
        },
        moved(run),
        match run.is_before_upstream() {
            true => run.upstream_words(),
            false if run.tls => " --tls".to_owned(),
            false => String::new(),
        },
        if run.strict { " --strict" } else { "" },
        if traced { " --trace" } else { "" },
        command.join(" ")
    )
}

/// Returns the options of the target, as they were given.
fn moved(run: &Run) -> String {
    let resource = run
        .resource
        .as_ref()
        .map(|name| format!(" --resource {}", quoted(name)));
    let namespace = run
        .namespace
        .as_deref()
        .map(|name| format!(" --namespace {}", quoted(name)));
    [resource, namespace].into_iter().flatten().collect()
}

fn heading(found: &Contradiction) -> String {
    let requirements = found.requirements.iter().map(|id| {
        let level = catalogue::requirement(id).map(|requirement| requirement.level);
        match level {
            Some(Level::Should) => format!(" {id} (SHOULD)"),
            Some(_) | None => format!(" {id}"),
        }
    });
    format!("{}{}", found.check, requirements.collect::<String>())
}

fn place(played: &Played, found: &Contradiction) -> String {
    let path = played.scenario.path.display();
    match found.place {
        Some(place) => format!("{path}:{}:{}", place.line, place.column),
        None => path.to_string(),
    }
}

fn json_line(played: &Played, run: &Run) -> String {
    let covers: Vec<&str> = played
        .scenario
        .covers
        .iter()
        .map(|covered| covered.id.as_str())
        .collect();
    let (outcome, verdict, message, contradictions) = match &played.result {
        Err(skipped) => {
            let word = match skipped {
                Skipped::Needs(_) => "skipped",
                Skipped::NotJudged(_) => "not_judged",
                Skipped::NotStarted(_) => "not_started",
                Skipped::Interrupted => "interrupted",
            };
            (word, word, skipped.to_string(), json!([]))
        }
        Ok(verdict) => (
            verdict.outcome.word(),
            verdict_word(played.standing(run)),
            verdict.message().to_owned(),
            json!(verdict.contradictions),
        ),
    };
    json!({
        "id": played.scenario.id,
        "client": run.command.first(),
        "driver": "run",
        "seed": run.seed,
        "outcome": outcome,
        "verdict": verdict,
        "tries": played.tries,
        "covers": covers,
        "message": message,
        "contradictions": contradictions,
        "known": played.known.as_ref().map(|known| json!({
            "by": known.by,
            "reason": known.reason,
            "issue": known.issue,
        })),
        "tookMs": played.took.as_millis() as u64,
        "end": played.end.as_ref().map(|(_, words)| words),
        "endMs": played.end.as_ref().map(|(at, _)| at.as_millis() as u64),
        "requests": played.requests,
        "restarts": played.restarts.iter().map(|restart| restart.json()).collect::<Vec<_>>(),
        "output": shown_output(played),
        "trace": played.trace,
    })
    .to_string()
}

/// Returns the command's output where it may have the reason: unless the scenario passed or was not played.
fn shown_output(played: &Played) -> &[String] {
    match &played.result {
        Ok(verdict) if verdict.passed() => &[],
        Ok(_) | Err(_) => &played.output,
    }
}

/// Outcome of an invalid file.
const INVALID: &str = "invalid_file";

fn first_mistake(errors: &LoadErrors) -> &str {
    errors.errors().first().map_or("", |error| &error.message)
}

fn mistaken_line(errors: &LoadErrors, run: &Run) -> String {
    json!({
        "file": errors.path(),
        "client": run.command.first(),
        "driver": "run",
        "outcome": INVALID,
        "verdict": "invalid",
        "message": first_mistake(errors),
        "mistakes": errors.count(),
        "errors": listed(errors),
    })
    .to_string()
}

/// Returns the results as JUnit XML: a test case for each scenario, each invalid file and each entry that is no failure.
///
/// # Errors
///
/// It cannot be written as XML.
pub(super) fn junit(ended: &Ended<'_>, run: &Run) -> Result<String, Failure> {
    let Ended {
        played,
        mistaken,
        stale,
        ..
    } = *ended;
    let mut suite = TestSuite::new(run.command.join(" "));
    for one in played {
        let (group, name) = one.scenario.id.rsplit_once('/').unwrap_or(("", &one.scenario.id));
        let status = match &one.result {
            Err(Skipped::NotStarted(why)) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status
                    .set_type("not_started")
                    .set_message(why.as_str())
                    .set_description(one.output.join("\n"));
                status
            }
            Err(skipped) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(skipped.to_string());
                status
            }
            Ok(_) if matches!(one.standing(run), Standing::Passed | Standing::Warned) => {
                TestCaseStatus::success()
            }
            Ok(verdict) if one.standing(run) == Standing::NotScored => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(format!("not scored: {}", verdict.message()));
                status
            }
            Ok(_) if let Some(known) = &one.known => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(format!("known failure of {}", excused(known)));
                status
            }
            Ok(verdict) => {
                let found = verdict.contradictions.iter();
                let all: Vec<String> = found
                    .map(|found| format!("{}: {}", found.check, found.sentence))
                    .collect();
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status
                    .set_type(verdict.outcome.word())
                    .set_message(verdict.message())
                    .set_description(all.join("\n"));
                status
            }
        };
        let mut case = TestCase::new(name, status);
        case.set_classname(group).set_time(one.took);
        suite.add_test_case(case);
    }
    for errors in mistaken {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status
            .set_type(INVALID)
            .set_message(first_mistake(errors))
            .set_description(errors.to_string());
        suite.add_test_case(TestCase::new(errors.path().display().to_string(), status));
    }
    junit::xml(suite, stale)
}
