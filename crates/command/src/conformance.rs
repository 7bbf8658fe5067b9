//! `fake-apiserver conformance`: tests a watch client in any language through its adapter.

mod files;
mod junit;
mod report;
mod select;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use conformance::adapter::attempt::{self, Plan};
use conformance::adapter::child::{StartError, TimeLimits};
use conformance::adapter::limiter::Limiter;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::{Rules, Shard, Standing, exit_code};
use conformance::adapter::tested::{Client, Tested};
use conformance::baseline::Baseline;
use fake_apiserver::scenario::edition::Edition;
use futures::{StreamExt as _, stream};

use self::report::Report;
use self::select::Selected;
use crate::scoring::{Flaky, edition_of};
use crate::stop::Stop;
use crate::words::span;
use crate::{Failure, kept, known_failures, private, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   every test came out as expected
  1   a test failed, or is flaky
  2   invalid command line, scenario file or file of known failures
  3   the adapter cannot be started, or does not keep the protocol
  4   no test was selected, or none was judged that counts
  5   a known failure passes, or its scenario does not exist: remove the entry
  70  system error, or a bug in the server or a scenario

Outcomes: pass, warn (only SHOULD requirements broken), fail, hang, crash, unsupported, not-played, adapter-error,
harness-error. The client is at fault in warn, fail, hang and crash only.";

/// Test a watch client in any language through its adapter.
///
/// The command is an adapter: a program that starts the client and prints its events, as docs/adapter-protocol.md specifies.
/// Each test starts one server and one process of the adapter, with a private HOME and KUBECONFIG. The scenarios are part of
/// this program. Check a new adapter with `fake-apiserver check-adapter`.
///
/// Example: fake-apiserver conformance gone/ page/ -- python3 adapter.py
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Conformance {
    /// Ids of scenarios, or their beginnings [default: all].
    #[arg(value_name = "SCENARIO")]
    prefixes: Vec<String>,
    /// Command that starts the adapter, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Run only scenarios with this tag (repeatable), e.g. minor.
    ///
    /// `minor`: what a client meets in a new Kubernetes minor.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Scenario files or folders to use in place of the built-in ones.
    #[arg(long, value_name = "PATH")]
    scenarios: Vec<PathBuf>,
    /// File of known failures, each with its reason and issue.
    ///
    /// A list of entries: {scenario: ID, outcome: fail|warn|hang|crash, reason: TEXT, issue: URL|owner/repo#N|none public}. A
    /// known failure does not fail the run; an entry whose test passes, or does not exist, does.
    #[arg(long, value_name = "FILE")]
    known_failures: Option<PathBuf>,
    /// Edition of the requirements, e.g. 2026.1, or `latest`.
    ///
    /// Default: all requirements of this version. An edition is a frozen list of requirements, with their levels and
    /// scenarios. Other scenarios run too, and do not count: a later version of fake-apiserver does not fail a client that
    /// passes.
    #[arg(long, value_name = "NAME", value_parser = edition_of)]
    edition: Option<&'static Edition>,
    /// Which scenarios to run.
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// Run one part of the tests only, e.g. 1/4 for the first of four.
    ///
    /// The part of a test depends on its id alone, so that it stays when tests are added.
    #[arg(long, value_name = "PART/OF", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// Number of tests to run in parallel [default: number of cores].
    ///
    /// Adapters start only while a processor is free, so that many tests, which mostly wait, do not delay each other.
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Repeat a failed test up to N times, alone, after the others.
    ///
    /// A test whose attempts come out differently is flaky: all attempts are reported.
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u32,
    /// Whether flaky tests fail the run.
    #[arg(long, value_enum, default_value_t = Flaky::Fail)]
    flaky: Flaky,
    /// Count warnings as failures.
    #[arg(long)]
    strict: bool,
    /// Time limit per test, in addition to the time that its steps take.
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = span)]
    timeout: Duration,
    /// Time limit for `hello`: the start of a slow runtime.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = span)]
    hello_timeout: Duration,
    /// Seed for all randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Keep the records and events of failed attempts in this new directory.
    ///
    /// `fake-apiserver recheck DIR` judges them again. They contain the objects of the scenarios.
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    /// Which attempts to keep evidence of.
    #[arg(long, value_enum, default_value_t = Keep::OnFailure)]
    keep: Keep,
    #[command(flatten)]
    files: files::Files,
}

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text, with the reasons of every failure.
    Text,
    /// One JSON object per test, and a footer.
    Json,
}

/// Selection of scenarios by the time that they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Skip scenarios that take minutes.
    Quick,
    /// Include scenarios that take minutes: backoff, silence, idle watches.
    Full,
}

/// Attempts whose evidence is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// All but those that passed.
    OnFailure,
    /// All that were played.
    Always,
}

/// Runs the tests.
///
/// # Errors
///
/// As the exit codes document.
pub(crate) fn run(arguments: Conformance) -> Result<(), Failure> {
    let baseline = known_failures::read(arguments.known_failures.as_deref())?;
    arguments.evidence.as_deref().map_or(Ok(()), kept::check)?;
    arguments.files.check()?;
    let selected = select::select(&arguments)?;
    let exists = |id: &str| selected.exists(id);
    let path = arguments.known_failures.clone().unwrap_or_default();
    let stale = baseline.orphans(&path, exists);
    if selected.tests.is_empty() {
        return Err(Failure::NothingToDo(selected.nothing(&arguments)));
    }
    stage::block_on(async |stop| play_all(&arguments, selected, &baseline, stale, &stop).await)
}

async fn play_all(
    arguments: &Conformance,
    selected: Selected,
    baseline: &Baseline,
    stale: Vec<String>,
    stop: &Stop,
) -> Result<(), Failure> {
    let folder = Folder::create()?;
    let plan = Plan {
        command: arguments.command.clone(),
        limits: TimeLimits {
            hello: arguments.hello_timeout,
            ..TimeLimits::default()
        },
        timeout: arguments.timeout,
        seed: arguments.seed,
        edition: arguments.edition,
        limiter: Limiter::new(),
    };
    let home = folder.0.join("probe");
    let probed = tokio::select! {
        probed = attempt::probe(&plan, &home) => probed.map_err(unstartable)?,
        () = stop.requested() => return Err(Failure::Silent(1)),
    };
    let hello = probed.map_err(Failure::NoServer)?;
    let rules = Rules {
        strict: arguments.strict,
        flaky_passes: arguments.flaky == Flaky::Report,
    };
    let mut report = Report::new(arguments, hello.clone(), &selected);
    report.begins(stop).await?;
    let client = Client { plan, hello, rules };
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = arguments.jobs.unwrap_or(cores).get();
    let mut running = stream::iter(selected.tests.into_iter().enumerate())
        .map(async |(number, test)| {
            let known = baseline.of(&test.scenario.id).cloned();
            let tested = match select::left_out(arguments, &test, &client) {
                Some(why) => Ok(client.not_run(&test, known, why)),
                None => {
                    client
                        .test(&test, known, &folder.0.join(number.to_string()))
                        .await
                }
            };
            tested.map(|tested| (test, tested))
        })
        .buffer_unordered(jobs);
    let mut tests = Vec::new();
    // Repeated when nothing else runs: what comes out differently then was no accident of the others.
    let mut failed = Vec::new();
    let interrupted = loop {
        tokio::select! {
            biased;
            () = stop.requested() => break true,
            tested = running.next() => match tested {
                Some(tested) => {
                    let (test, tested) = tested.map_err(unstartable)?;
                    if client.repeats(&tested, arguments.retries) {
                        failed.push((test, tested));
                    } else {
                        keep(arguments, &tested)?;
                        report.tells(&tested, stop).await?;
                        tests.push(tested);
                    }
                }
                None => break false,
            },
        }
    };
    drop(running);
    let mut interrupted = interrupted;
    for (number, (test, mut tested)) in failed.into_iter().enumerate() {
        while !interrupted && client.repeats(&tested, arguments.retries) {
            let home = folder.0.join(format!("again-{number}-{}", tested.attempts.len()));
            tokio::select! {
                biased;
                () = stop.requested() => interrupted = true,
                repeated = client.repeat(&test, &mut tested, &home) => repeated.map_err(unstartable)?,
            }
        }
        keep(arguments, &tested)?;
        report.tells(&tested, stop).await?;
        tests.push(tested);
    }
    tests.sort_by(|one, other| one.scenario.id.cmp(&other.scenario.id));
    let standings: Vec<Standing> = tests.iter().map(|test| test.standing).collect();
    let code = if interrupted {
        1
    } else {
        exit_code(&standings, stale.len(), rules)
    };
    let results = report.results(&tests, &stale, code, interrupted);
    arguments
        .files
        .write(arguments, results, || junit::xml(&tests, &client.hello, &stale))?;
    report.ends(&tests, &stale, code, interrupted, stop).await?;
    match code {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

/// Writes the evidence of a test, if it is to be kept.
fn keep(arguments: &Conformance, test: &Tested) -> Result<(), Failure> {
    let Some(folder) = &arguments.evidence else {
        return Ok(());
    };
    for (number, attempt) in test.attempts.iter().enumerate() {
        let was_played = attempt.hello.is_some() || !attempt.received.is_empty();
        let kept = match arguments.keep {
            Keep::OnFailure => was_played && attempt.outcome != Outcome::Pass,
            Keep::Always => was_played,
        };
        if kept {
            let scenario = &test.scenario;
            let text = select::text(arguments, scenario).map_err(|error| {
                Failure::System(format!("cannot read {}", scenario.path.display()), error)
            })?;
            let scoring = (arguments.seed, arguments.edition);
            kept::attempt(folder, number + 1, attempt, &text, scoring)?;
        }
    }
    Ok(())
}

/// A command that cannot be started is the caller's mistake; other errors are the system's.
pub(crate) fn unstartable(error: StartError) -> Failure {
    match error {
        StartError::Command(program, error) => {
            let is_callers = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            );
            if is_callers {
                Failure::NoServer(format!("cannot start {program}: {error}"))
            } else {
                Failure::System(format!("cannot start {program}"), error)
            }
        }
        StartError::System(error) => Failure::System("cannot set a test up".to_owned(), error),
    }
}

/// A private folder, removed with this value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Creates one with a random name.
    ///
    /// # Errors
    ///
    /// A system error.
    pub(crate) fn create() -> Result<Self, Failure> {
        private::new_folder(&std::env::temp_dir(), "fake-apiserver-").map(Self)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, left = %self.0.display(), "left behind");
        }
    }
}
