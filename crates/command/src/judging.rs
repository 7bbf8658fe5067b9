//! The judge of a running server: reads every record, logs violations at once, and prints a verdict at the end.
//!
//! Violations are decided in `judge::wire`; this file only formats them.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::{Args, ValueEnum};
use fake_apiserver::record::Record;
use fake_apiserver::record::line::{line, printable};
use judge::wire::{ClientVerdict, Loops, Violation, WireJudge, WireVerdict};
use owo_colors::OwoColorize as _;

use crate::output::{self, printable_lines};
use crate::stop::Stop;
use crate::{Failure, private};

/// Options of the verdict.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Verdict")]
pub(crate) struct JudgeArguments {
    /// Format of the verdict, which is printed on exit.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = VerdictFormat::Text)]
    verdict: VerdictFormat,
    /// Also write the verdict to this file as JSON.
    #[arg(long, value_name = "PATH")]
    verdict_file: Option<PathBuf>,
    /// Exit with code 1 if a client violated an invariant.
    #[arg(long)]
    strict: bool,
}

/// Format of a verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerdictFormat {
    /// Text on standard error.
    #[default]
    Text,
    /// JSON on standard output.
    Json,
}

/// The judge, shared with the control API.
#[derive(Clone)]
pub(crate) struct Judge(Arc<Mutex<WireJudge>>);

impl Judge {
    pub(crate) fn new(loops: Loops, excused: Vec<String>) -> Self {
        Self(Arc::new(Mutex::new(WireJudge::new(loops).excusing(excused))))
    }

    /// Returns a judge of clients of an upstream.
    pub(crate) fn of_upstream(loops: Loops, excused: Vec<String>) -> Self {
        let judge = WireJudge::new(loops).excusing(excused).behind_upstream();
        Self(Arc::new(Mutex::new(judge)))
    }

    /// Returns a judge of clients of a server that began with a snapshot of this revision.
    pub(crate) fn resuming_from(loops: Loops, revision: u64) -> Self {
        Self(Arc::new(Mutex::new(
            WireJudge::new(loops).resuming_from(revision),
        )))
    }

    /// Judges records, up to time `now`. Returns new violations.
    pub(crate) fn hear(&self, now: Duration, records: &[Record]) -> Vec<Violation> {
        let mut judge = self.lock();
        let mut found: Vec<Violation> = records.iter().flat_map(|record| judge.take(record)).collect();
        found.extend(judge.pass_time(now));
        found
    }

    /// Returns the memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes()
    }

    /// Returns the verdict so far.
    pub(crate) fn verdict(&self) -> WireVerdict {
        self.lock().verdict()
    }

    fn lock(&self) -> MutexGuard<'_, WireJudge> {
        // A panic leaves the judge in a consistent state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs records and violations on standard error.
pub(crate) struct Commentator {
    pub(crate) judge: Judge,
    /// Whether to log every record instead of violations only.
    pub(crate) shows_all: bool,
}

impl Commentator {
    /// Returns the number of new violations.
    pub(crate) fn hear(&self, now: Duration, records: &[Record]) -> usize {
        if self.shows_all {
            for record in records {
                output::log(&line(record));
            }
        }
        let violations = self.judge.hear(now, records);
        for violation in &violations {
            output::log(&violated(violation, coloured()));
        }
        violations.len()
    }
}

impl JudgeArguments {
    /// Checks, before a server is started, that its verdict can be written.
    ///
    /// # Errors
    ///
    /// The file exists already, or its directory does not.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let file = self.verdict_file.as_deref();
        file.map_or(Ok(()), private::check_new)
    }
}

/// Prints the verdict in the requested format.
///
/// # Errors
///
/// A violation with `--strict`; a file that cannot be written.
pub(crate) async fn conclude(
    verdict: &WireVerdict,
    arguments: &JudgeArguments,
    stop: &Stop,
) -> Result<(), Failure> {
    let json = || serde_json::to_string_pretty(verdict).expect("plain strings and numbers always serialize");
    if let Some(file) = &arguments.verdict_file {
        private::write_new(file, &(json() + "\n"))?;
    }
    match arguments.verdict {
        VerdictFormat::Text => output::log_raw(&printable_lines(&text(verdict))),
        VerdictFormat::Json => output::print(json() + "\n", stop).await?,
    }
    if arguments.strict && verdict.outcome == "mismatch" {
        return Err(Failure::Silent(1));
    }
    Ok(())
}

/// Formats a violation, with the request that proves it.
pub(crate) fn violated(violation: &Violation, colour: bool) -> String {
    let mark = format!("✘ {}", violation.found.check);
    let from = violation.port.map(|port| format!(" from port {port}"));
    let from = from.unwrap_or_default();
    let mark = if colour { mark.red().to_string() } else { mark };
    format!(
        "{mark} {}{from} reading {}: {}\n    proof: {}",
        printable(&violation.client),
        printable(&violation.reading),
        printable(&violation.found.sentence),
        printable(&violation.proof)
    )
}

/// Returns whether standard error can be coloured.
pub(crate) fn coloured() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn text(verdict: &WireVerdict) -> String {
    let mut text = format!("verdict: {}\n", verdict.outcome);
    // Writing to a String cannot fail.
    for client in &verdict.clients {
        let _ = writeln!(text, "  {}: {}", client.client, summary(client));
        for violation in &client.contradictions {
            let _ = writeln!(
                text,
                "    {}: {}",
                violation.found.check, violation.found.sentence
            );
        }
    }
    if verdict.clients.is_empty() {
        text.push_str("  no client connected\n");
    }
    let _ = writeln!(
        text,
        "  judged: {}; not judged: {}",
        verdict.judged.join(" "),
        verdict.not_judged
    );
    text
}

fn summary(client: &ClientVerdict) -> String {
    if client.reads == 0 {
        return format!("{} requests, no list or watch", client.requests);
    }
    let broken: Vec<String> = client
        .violations
        .iter()
        .map(|(check, times)| format!("{check} {times}×"))
        .collect();
    let broken = if broken.is_empty() {
        "no violations".to_owned()
    } else {
        broken.join(", ")
    };
    format!(
        "{} lists and watches on {} connections by at least {} loops: {broken}",
        client.reads, client.connections, client.loops
    )
}
