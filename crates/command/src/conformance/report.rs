//! Output of `conformance`: progress on a terminal, a line per test, explanations of failures, and a summary.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use ::report::results::{self, AttemptResult, Footer, KnownFailure, Line, Results, TestResult};
use conformance::adapter::message::Hello;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use conformance::adapter::tally::tally;
use conformance::adapter::tested::Tested;
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::catalogue::Level;
use fake_apiserver::scenario::edition::{self, Edition};
use judge::verdict::{Contradiction, Verdict};
use owo_colors::OwoColorize as _;

use super::select::{self, Selected};
use super::{Conformance, Format};
use crate::stop::Stop;
use crate::words::quoted;
use crate::{Failure, output, scoring};

/// Maximum contradictions explained per test; others are counted.
const SHOWN: usize = 3;

/// Prints results as tests end.
pub(super) struct Report<'a> {
    arguments: &'a Conformance,
    hello: Hello,
    of: usize,
    over: usize,
    /// Whether standard error is a terminal, on which progress is drawn.
    moves: bool,
    colour: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(arguments: &'a Conformance, hello: Hello, selected: &Selected) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            arguments,
            hello,
            of: selected.tests.len(),
            over: 0,
            moves: io::stderr().is_terminal(),
            colour: arguments.format == Format::Text && io::stdout().is_terminal() && !plain,
        }
    }

    /// Prints the first line: the client under test.
    pub(super) async fn begins(&self, stop: &Stop) -> Result<(), Failure> {
        self.moves();
        match self.arguments.format {
            Format::Json => Ok(()),
            Format::Text => {
                let client = &self.hello.client;
                let edition = self.arguments.edition;
                let line = format!(
                    "{} {} ({}), {} tests, {}seed {}\n",
                    client.name,
                    client.version,
                    client.lang,
                    self.of,
                    edition.map_or(String::new(), |edition| format!("edition {}, ", edition.label())),
                    self.arguments.seed
                );
                output::print(printable_line(&line), stop).await
            }
        }
    }

    fn moves(&self) {
        if self.moves {
            output::log_raw(&format!("\r\x1b[K{} of {} tests", self.over, self.of));
        }
    }

    /// Prints the result of a test.
    pub(super) async fn tells(&mut self, test: &Tested, stop: &Stop) -> Result<(), Failure> {
        self.over += 1;
        if self.moves {
            output::log_raw("\r\x1b[K");
            // Both may be the same terminal: keep the order.
            output::flush_log();
        }
        match self.arguments.format {
            Format::Text => output::print(self.text(test), stop).await?,
            Format::Json => output::print(results::line(&Line::Test(self.result(test))), stop).await?,
        }
        self.moves();
        Ok(())
    }

    /// Prints the summary when all tests have ended, or the run was interrupted.
    pub(super) async fn ends(
        &self,
        tests: &[Tested],
        stale: &[String],
        code: u8,
        interrupted: bool,
        stop: &Stop,
    ) -> Result<(), Failure> {
        if self.moves {
            output::log_raw("\r\x1b[K");
            output::flush_log();
        }
        let text = match self.arguments.format {
            Format::Text => self.summary(tests, stale, code, interrupted),
            Format::Json => results::line(&Line::Footer {
                footer: self.footer(tests, stale, code, interrupted),
            }),
        };
        output::print(text, stop).await
    }

    fn text(&self, test: &Tested) -> String {
        let reported = test.reported();
        let id = &test.scenario.id;
        let (mark, word) = mark(test);
        let mark = match (self.colour, test.standing) {
            (false, _) => mark.to_owned(),
            (true, Standing::Passed) => mark.green().to_string(),
            (true, Standing::Known | Standing::NotJudged | Standing::NotScored) => mark.dimmed().to_string(),
            (true, Standing::Warned | Standing::Flaky) => mark.yellow().to_string(),
            (true, Standing::Failed | Standing::Stale | Standing::AdapterError | Standing::HarnessError) => {
                mark.red().to_string()
            }
        };
        let counter = format!(
            "[{:>width$}/{}]",
            self.over,
            self.of,
            width = self.of.to_string().len()
        );
        let took: f64 = test
            .attempts
            .iter()
            .map(|attempt| attempt.took.as_secs_f64())
            .sum();
        let why = printable(&reported.why);
        let mut text = match test.standing {
            Standing::Passed => format!("{counter} {mark} {id}   {took:.2} s\n"),
            Standing::NotJudged => format!("{counter} {mark} {id}   {word}: {why}\n"),
            Standing::NotScored if reported.outcome == Outcome::Pass => {
                format!("{counter} {mark} {id}   not scored   {took:.2} s\n")
            }
            Standing::NotScored => format!("{counter} {mark} {id}   not scored, {word}: {why}\n"),
            Standing::Known => {
                let reason = test.known.as_ref().map_or("", |known| &known.reason);
                format!("{counter} {mark} {id}   {word}: {}\n", printable(reason))
            }
            Standing::Stale => format!(
                "{counter} {mark} {id}   {word}: it passes, and line {} of {} has it as a known failure; remove the entry\n",
                test.known.as_ref().map_or(0, |known| known.line),
                self.arguments
                    .known_failures
                    .as_ref()
                    .map_or(String::new(), |path| path.display().to_string())
            ),
            Standing::Warned
            | Standing::Failed
            | Standing::Flaky
            | Standing::AdapterError
            | Standing::HarnessError => format!("{counter} {mark} {id}   {word}   {took:.2} s\n"),
        };
        match test.standing {
            Standing::Passed
            | Standing::NotJudged
            | Standing::NotScored
            | Standing::Known
            | Standing::Stale => {}
            Standing::Warned | Standing::Failed | Standing::Flaky => {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "  claim  {}", test.scenario.title);
                self.reasons(test, &mut text);
            }
            Standing::AdapterError | Standing::HarnessError => self.reasons(test, &mut text),
        }
        if let Some(stray) = &reported.stray {
            let _ = writeln!(text, "  note   {}", printable(stray));
        }
        text
    }

    fn reasons(&self, test: &Tested, text: &mut String) {
        if test.attempts.len() > 1 {
            let outcomes: Vec<&str> = test
                .attempts
                .iter()
                .map(|attempt| attempt.outcome.word())
                .collect();
            let _ = writeln!(text, "  tries  {}", outcomes.join(", "));
        }
        let reported = test.reported();
        let found = reported
            .verdict
            .iter()
            .flat_map(|verdict| &verdict.contradictions);
        for found in found.clone().take(SHOWN) {
            let _ = writeln!(
                text,
                "  {}   {}",
                heading(found, self.arguments.edition),
                place(&test.scenario, found)
            );
            let _ = writeln!(text, "  why    {}", printable(&found.sentence));
        }
        match found.count() {
            0 => {
                let _ = writeln!(text, "  why    {}", printable(&reported.why));
            }
            more if more > SHOWN => {
                let _ = writeln!(text, "  also   {} more", more - SHOWN);
            }
            _ => {}
        }
        for line in &reported.errors {
            let _ = writeln!(text, "  stderr {line}");
        }
        let _ = writeln!(text, "  rerun  {}", self.again(&test.scenario.id));
    }

    /// Returns the command that repeats a test.
    fn again(&self, id: &str) -> String {
        let command: Vec<String> = self.arguments.command.iter().map(|word| quoted(word)).collect();
        let paths = self
            .arguments
            .scenarios
            .iter()
            .map(|path| format!("--scenarios {} ", quoted(&path.display().to_string())));
        let edition = self.arguments.edition;
        format!(
            "fake-apiserver conformance {} {}{}--seed {} -- {}",
            quoted(id),
            paths.collect::<String>(),
            edition.map_or(String::new(), |edition| format!("--edition {} ", edition.name)),
            self.arguments.seed,
            command.join(" ")
        )
    }

    /// Returns all results as values.
    pub(super) fn results(&self, tests: &[Tested], stale: &[String], code: u8, interrupted: bool) -> Results {
        Results {
            tests: tests.iter().map(|test| self.result(test)).collect(),
            footer: Some(self.footer(tests, stale, code, interrupted)),
        }
    }

    fn result(&self, test: &Tested) -> TestResult {
        let reported = test.reported();
        let scenario = &test.scenario;
        let text = select::text(self.arguments, scenario);
        TestResult {
            id: scenario.id.clone(),
            title: scenario.title.clone(),
            path: scenario.path.display().to_string(),
            digest: text.map(|text| results::digest(&text)).unwrap_or_default(),
            covers: scenario.covers.iter().map(|covered| covered.id.clone()).collect(),
            provoked_by: scenario.provoked_by,
            outcome: reported.outcome,
            standing: test.standing,
            message: reported.why.clone(),
            known: test.known.as_ref().map(|known| KnownFailure {
                outcome: known.outcome.word().to_owned(),
                reason: known.reason.clone(),
                issue: known.issue.clone(),
                line: known.line,
            }),
            attempts: test.attempts.iter().map(AttemptResult::from).collect(),
            rerun: self.again(&scenario.id),
        }
    }

    fn summary(&self, tests: &[Tested], stale: &[String], code: u8, interrupted: bool) -> String {
        let mut text = String::from("\n");
        let counts: Vec<String> = Outcome::ALL
            .into_iter()
            .filter_map(|outcome| match count(tests, outcome) {
                0 => None,
                number => Some(format!("{number} {}", outcome.word())),
            })
            .collect();
        let _ = writeln!(text, "{} tests: {}", tests.len(), counts.join(", "));
        let standings = [
            Standing::Known,
            Standing::NotScored,
            Standing::Flaky,
            Standing::Stale,
        ];
        let standings = standings.map(|standing| {
            let number = tests.iter().filter(|test| test.standing == standing).count();
            (number > 0).then(|| format!("{number} {}", standing.word()))
        });
        let standings: Vec<String> = standings.into_iter().flatten().collect();
        if !standings.is_empty() {
            let _ = writeln!(text, "of these: {}", standings.join(", "));
        }
        let kept = [Level::Must, Level::Should].map(|level| {
            let tally = tally(level, &judged(tests), self.arguments.edition);
            format!("{} {}/{}", level.word(), tally.kept, tally.judged)
        });
        let edition = self.arguments.edition;
        let of = edition.map_or(String::new(), |edition| format!(" of edition {}", edition.name));
        let _ = writeln!(text, "requirements{of} kept: {}", kept.join(", "));
        for test in tests.iter().filter(|test| test.standing.is_failure()) {
            let (mark, word) = mark(test);
            let _ = writeln!(text, "{mark} {}   {word}", test.scenario.id);
        }
        for entry in stale {
            let _ = writeln!(text, "✘ {entry}: remove the entry");
        }
        let _ = writeln!(text, "{}", ending(code, interrupted));
        text
    }

    /// Returns the last line of JSON. Output without it is incomplete.
    fn footer(&self, tests: &[Tested], stale: &[String], code: u8, interrupted: bool) -> Footer {
        Footer {
            complete: !interrupted,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.arguments.seed,
            edition: self.arguments.edition.map(|edition| edition.name.clone()),
            edition_digest: self.arguments.edition.map(|edition| edition.digest.clone()),
            client: self.hello.client.clone(),
            recovers: self.hello.recovers,
            capabilities: self.hello.caps.clone(),
            tests: tests.len(),
            outcomes: scoring::outcomes(tests.iter().map(|test| test.reported().outcome)),
            requirements: scoring::requirements(&judged(tests), self.arguments.edition),
            stale_entries: stale.to_vec(),
            exit_code: code,
        }
    }
}

/// Returns the last line: the meaning of the exit code.
fn ending(code: u8, interrupted: bool) -> String {
    let why = match code {
        _ if interrupted => "interrupted",
        0 => "every test came out as expected",
        1 => "a test failed or is flaky",
        3 => "the adapter does not keep the protocol; try `fake-apiserver check-adapter`",
        4 => "nothing was judged that counts",
        5 => "entries of known failures are stale",
        _ => "the harness is at fault; please report it",
    };
    format!("exit {code}: {why}")
}

fn mark(test: &Tested) -> (&'static str, &'static str) {
    let outcome = test.reported().outcome;
    match test.standing {
        Standing::Flaky => ("✘", Standing::Flaky.word()),
        Standing::Stale => ("✘", Standing::Stale.word()),
        Standing::Known => ("✓", "known failure"),
        Standing::Passed
        | Standing::Warned
        | Standing::NotJudged
        | Standing::NotScored
        | Standing::Failed
        | Standing::AdapterError
        | Standing::HarnessError => (
            match outcome {
                Outcome::Pass => "✔",
                Outcome::Warn => "!",
                Outcome::Unsupported | Outcome::NotPlayed => "–",
                Outcome::Fail
                | Outcome::Hang
                | Outcome::Crash
                | Outcome::AdapterError
                | Outcome::HarnessError => "✘",
            },
            outcome.word(),
        ),
    }
}

fn heading(found: &Contradiction, edition: Option<&Edition>) -> String {
    let requirements = found.requirements.iter().map(|id| {
        let level = edition::level(edition, id);
        level.map_or_else(|| format!(" {id}"), |level| format!(" {id} ({})", level.word()))
    });
    format!("{}{}", found.check, requirements.collect::<String>())
}

fn place(scenario: &Scenario, found: &Contradiction) -> String {
    let path = scenario.path.display();
    match found.place {
        Some(place) => format!("{path}:{}:{}", place.line, place.column),
        None => path.to_string(),
    }
}

fn count(tests: &[Tested], outcome: Outcome) -> usize {
    tests
        .iter()
        .filter(|test| test.reported().outcome == outcome)
        .count()
}

fn judged(tests: &[Tested]) -> Vec<(&Scenario, &Verdict)> {
    let verdict =
        |test: &'_ Tested| test.reported().outcome.is_judged() && test.standing != Standing::NotScored;
    tests
        .iter()
        .filter(|test| verdict(test))
        .filter_map(|test| Some((&*test.scenario, test.reported().verdict.as_ref()?)))
        .collect()
}

/// Escapes control characters in a line, except its newline.
fn printable_line(line: &str) -> String {
    format!("{}\n", printable(line.trim_end_matches('\n')))
}
