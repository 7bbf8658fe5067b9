//! `fake-apiserver run`: runs scenarios against a command in any language and judges its requests.

mod aim;
mod child;
mod report;
mod retarget;
mod sample;
mod settings;
mod weigh;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use conformance::adapter::timeouts::{self, CpuWait, TimeoutCheck, Timeouts, hang_end, last_activity};
use fake_apiserver::model::catalog::KindRef;
use fake_apiserver::net::Edge;
use fake_apiserver::record::line::{line, run_end};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{
    self, InitialList, LoadErrors, Scenario, SharedScenario, Style, Version, Warning,
};
use fake_apiserver::server::{Limits, Server};
use futures::{StreamExt as _, stream};
use judge::effect::Effects;
use judge::verdict::Verdict;
use judge::wire::{Loops, Needs, SETTINGS, configured, grants, needs, takes};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::aim::Aim;
use self::child::{Child, Ended};
use self::retarget::Retarget;
use self::weigh::{cut_words, judged, proofs, proven, weighed};
use crate::built_in;
use crate::judging::{Commentator, Judge};
use crate::serve::minor;
use crate::stage::{self, Running, Stage};
use crate::stop::Stop;
use crate::words::span;
use crate::{Failure, output};

const EXIT_CODES: &str = "\
Exit codes:
  0   every scenario that was judged passed
  1   a scenario failed
  2   invalid command line or scenario file (the other files are run)
  3   the command cannot be started
  4   nothing was judged
  70  system error, or a bug in the server";

/// Maximum time for the server to see the connections of an exited command closed.
const CLOSING: Duration = Duration::from_secs(2);

/// Time that a command can list and watch other resources first: caches are filled one by one.
const ASTRAY: Duration = Duration::from_secs(10);

/// How long a command that works may do nothing: longer than any delay between requests that RETRY-03 allows, which is a minute.
const HANG_AFTER: &str = "75s";

/// Time after the end in which something can still be proven: the longest timeout of the judge.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Run scenarios against a command and judge its requests.
///
/// The command is a controller, operator or informer in any language. Each scenario starts one server and one process of
/// the command, with KUBECONFIG set (also FAKE_APISERVER_SCENARIO, FAKE_APISERVER_CLIENT and FAKE_APISERVER_TARGET as
/// JSON, FAKE_APISERVER_CONTROL and FAKE_APISERVER_CONTROL_TOKEN). The command must list and watch the target of the
/// scenario, by default ConfigMaps in namespace default, until it receives SIGTERM. Only requests are judged; judging the
/// client's cache requires an adapter.
///
/// Example: fake-apiserver run scenarios/gone/ -- ./my-controller
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES
)]
pub(crate) struct Run {
    /// Scenario files or folders.
    #[arg(required = true, value_name = "SCENARIO|DIR")]
    scenarios: Vec<PathBuf>,
    /// Command to test, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Seed for all randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Time limit per scenario, in addition to the time that its steps take.
    ///
    /// A scenario that reaches the limit is not judged. In folders, scenarios whose steps take more than a third of it, or
    /// that grant the client more than four times as much, are skipped (see --profile).
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = span)]
    timeout: Duration,
    /// Time without a request after which a step that waits for one is a failure.
    ///
    /// In addition to the time that the steps take or grant (`within`). A command that sends requests is not accused of what is
    /// missing: the scenario goes on up to --timeout, and is not judged.
    #[arg(long, value_name = "DURATION", default_value = HANG_AFTER, value_parser = span)]
    hang_after: Duration,
    /// Time between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = span)]
    grace: Duration,
    /// Number of scenarios to run in parallel.
    ///
    /// Each has its own server and process: use more than one only if the processes do not conflict, e.g. on a port.
    #[arg(long, short, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also run scenarios that need specific client settings.
    ///
    /// Without a value: all of them. With a list: those that need no other setting, e.g.
    /// --assume-configured=page_size,labels. FAKE_APISERVER_CLIENT has the settings of the scenario as JSON.
    #[arg(
        long,
        value_name = "SETTING,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = ALL,
        value_parser = setting
    )]
    assume_configured: Vec<String>,
    /// Run scenarios on this resource instead, e.g. deployments.apps.
    ///
    /// The same writes and faults, on valid objects of that kind. A scenario that depends on its own kind is not judged.
    #[arg(long, value_parser = retarget::resource)]
    resource: Option<KindRef>,
    /// Run scenarios in this namespace instead.
    #[arg(long)]
    namespace: Option<String>,
    /// Override the Kubernetes minor version: 1.33, 1.34, 1.35 or 1.36.
    #[arg(long, value_name = "VERSION", value_parser = minor)]
    kubernetes_version: Option<Version>,
    /// Which scenarios of folders to run.
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// Serve HTTPS.
    #[arg(long)]
    tls: bool,
    /// Log requests, responses and the command's output on standard error.
    #[arg(long)]
    trace: bool,
}

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text, with the reasons of every failure.
    Text,
    /// One JSON object per scenario, and a footer with counts.
    Json,
    /// JUnit XML, for continuous integration.
    Junit,
}

/// Value for all settings.
const ALL: &str = "all";

fn setting(text: &str) -> Result<String, String> {
    if text == ALL || SETTINGS.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected all, or one of {}", SETTINGS.join(", ")))
    }
}

/// Selection of scenarios in folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    /// Skip scenarios that take minutes.
    Quick,
    /// Include scenarios that take minutes: backoff, silence, idle watches.
    Full,
}

/// Result for one scenario, played or not.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) scenario: SharedScenario,
    pub(crate) result: Result<Verdict, Skipped>,
    /// Trace line of the request that proves each contradiction; empty without one.
    pub(crate) proofs: Vec<String>,
    /// Last lines of the command's output.
    pub(crate) last_words: Vec<String>,
    pub(crate) took: Duration,
    /// Whether a stop was requested.
    pub(crate) interrupted: bool,
    /// Time and reason of the end.
    pub(crate) end: Option<(Duration, String)>,
    /// Number of requests.
    pub(crate) requests: usize,
    /// All records as lines, if it failed.
    pub(crate) trace: Vec<String>,
}

/// Reason why a scenario has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// The scenario was not played.
    Needs(Needs),
    /// It was played, and proves nothing.
    NotJudged(String),
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(needs) => write!(f, "needs {}", needs.words()),
            Self::NotJudged(why) => write!(f, "not judged: {why}"),
        }
    }
}

impl Played {
    pub(crate) fn failed(&self) -> bool {
        self.result.as_ref().is_ok_and(|verdict| !verdict.passed())
    }
}

/// Runs the selected scenarios.
///
/// # Errors
///
/// A scenario is invalid or failed, or nothing could be played.
pub(crate) fn run(run: Run) -> Result<(), Failure> {
    let (scenarios, mistaken) = load(&run.scenarios);
    for errors in &mistaken {
        output::log_raw(&errors.render(Style::for_stderr()));
    }
    let ids = scenarios.iter().map(|loaded| loaded.scenario.id.clone());
    let mut report = report::Report::new(run.format, ids.collect());
    let played = stage::block_on(async |stop| {
        let played = play_all(&run, scenarios, &mut report, &stop).await?;
        report.ends(&played, &mistaken, &run, &stop).await?;
        Ok(played)
    })?;
    let count = |of: &dyn Fn(&Played) -> bool| played.iter().filter(|one| of(one)).count();
    if !mistaken.is_empty() {
        return Err(Failure::Silent(2));
    }
    if count(&Played::failed) > 0 {
        return Err(Failure::Silent(1));
    }
    if count(&|one| one.result.is_ok()) == 0 {
        return Err(Failure::Silent(4));
    }
    Ok(())
}

/// Runs scenarios, `--jobs` in parallel, and reports them in order. A long one delays the reports of those after it, but not
/// their start.
async fn play_all(
    run: &Run,
    scenarios: Vec<Loaded>,
    report: &mut report::Report,
    stop: &Stop,
) -> Result<Vec<Played>, Failure> {
    let mut all = stream::iter(scenarios.into_iter().enumerate())
        .map(async |(nth, loaded)| Ok::<_, Failure>((nth, play_or_skip(run, loaded, stop).await?)))
        .buffer_unordered(run.jobs.get());
    let (mut played, mut early) = (Vec::new(), BTreeMap::new());
    report.moves(0);
    while let Some((nth, one)) = all.next().await.transpose()? {
        early.insert(nth, one);
        while let Some(one) = early.remove(&played.len()) {
            report.tells(&one, run, stop).await?;
            let interrupted = one.interrupted || stop.is_requested();
            played.push(one);
            if interrupted {
                return Ok(played);
            }
            report.moves(played.len());
        }
    }
    Ok(played)
}

async fn play_or_skip(
    run: &Run,
    Loaded { mut scenario, named }: Loaded,
    stop: &Stop,
) -> Result<Played, Failure> {
    let to = Retarget {
        resource: run.resource.clone(),
        namespace: run.namespace.clone(),
    };
    let stays = match to.apply(&scenario) {
        Ok(moved) => {
            scenario = Arc::new(moved);
            None
        }
        Err(why) => Some(Skipped::NotJudged(format!("it cannot be moved: {why}"))),
    };
    let (time, granted) = (takes(&scenario), grants(&scenario));
    let is_long = time > run.timeout / 3 || granted > run.timeout * 4;
    let left_out = !named && run.profile == Profile::Quick && is_long;
    let needed = needs(&scenario)
        .filter(|needs| !(matches!(needs, Needs::Told(_)) && is_configured(run, &scenario)))
        .or_else(|| left_out.then_some(Needs::Time(time + granted)));
    let skipped = match (needed, scenario::warnings(&scenario).first()) {
        (Some(needs), _) => Some(Skipped::Needs(needs)),
        // The expectation cannot be met by any client: a mistake of the file, not of the client.
        (None, Some(Warning { at, message, hint })) => Some(Skipped::NotJudged(format!(
            "{}:{}: {message}: {hint}",
            scenario.path.display(),
            at.line
        ))),
        (None, None) => stays,
    };
    match skipped {
        None => play_one(run, scenario, stop).await,
        Some(skipped) => Ok(Played {
            scenario,
            result: Err(skipped),
            proofs: Vec::new(),
            last_words: Vec::new(),
            took: Duration::ZERO,
            interrupted: false,
            trace: Vec::new(),
            end: None,
            requests: 0,
        }),
    }
}

/// Returns whether the command has all settings that the scenario needs.
fn is_configured(run: &Run, scenario: &Scenario) -> bool {
    let assumed = |key: &str| {
        run.assume_configured
            .iter()
            .any(|given| given == ALL || given == key)
    };
    configured(scenario).into_iter().all(assumed)
}

async fn play_one(run: &Run, scenario: SharedScenario, stop: &Stop) -> Result<Played, Failure> {
    let scenario = Arc::new(staged(&scenario, run.kubernetes_version));
    let limits = timeouts::disable(Limits::wire());
    let server = Server::with_limits(scenario.clone(), run.seed, limits);
    let stage = Stage {
        server,
        what: scenario.id.clone(),
        version: scenario.server.version,
        wall_clock: None,
        serving: stage::serving(&scenario.server, run.tls),
        control_port: 0,
        control_token: None,
        namespace: scenario.target.namespace.clone(),
        kubeconfig: None,
    };
    let excused = scenario
        .expect
        .excused
        .iter()
        .map(|excuse| excuse.invariant.clone());
    let judge = Judge::new(Loops::One, excused.collect());
    let mut running = Running::open(stage, judge.clone()).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is an edge, and reports how long a run took"
    )]
    let began = Instant::now();
    let mut child = Child::start(&run.command, &running, &scenario, run.trace)?;
    let edge = running.edge.clone();
    let reference = built_in::reference(&scenario.id);
    let timeouts = Timeouts::of(&scenario, reference, run.timeout, run.hang_after);
    let mut forced = None;
    let (mut ended, mut cut) = (None, None);
    let (aim, heard_something) = (RefCell::new(Aim::new(scenario.target.clone())), Notify::new());
    let heard = Commentator {
        judge: judge.clone(),
        shows_all: run.trace,
    };
    let scene = async {
        tokio::select! {
            () = edge.finished() => {}
            exit = child.exited() => forced = Some(left(&exit)),
            () = stop.requested() => {
                forced = Some(RunEnd::Harness { message: "interrupted".to_owned() });
            }
            () = stays_astray(&aim, &heard_something) => {
                let waited_ms = ASTRAY.as_millis() as u64;
                forced = Some(RunEnd::NotConverged { waited_ms });
            }
            over = outlasted(&edge, timeouts) => {
                let waiting = edge.steer(|server, _| server.waiting_step()).flatten();
                forced = Some(match over {
                    Some(quiet) => hang_end(waiting, quiet),
                    None => {
                        cut = Some(cut_words(timeouts.total, waiting.as_ref()));
                        cut_short(&scenario, waiting, timeouts.total)
                    }
                });
            }
        }
        edge.stop_requested();
        ended = Some(child.stop(run.grace).await);
        if timeout(CLOSING, edge.deserted()).await.is_err() {
            edge.closing_is_over();
        }
    };
    running
        .serve(0, scene, |now, records| {
            aim.borrow_mut().hear(records);
            heard_something.notify_one();
            if run.trace {
                heard.hear(now, records);
            } else {
                judge.hear(now, records);
            }
        })
        .await;
    let took = began.elapsed();
    judge.hear(edge.elapsed() + AFTERWARDS, &[]);
    let mut records = edge.take_records();
    let interrupted = matches!(forced, Some(RunEnd::Harness { .. }));
    if let Some(end) = forced {
        let what = What::RunEnded(end);
        let (seq, at) = records.last().map_or((0, took), |last| (last.seq + 1, last.at));
        records.retain(|record| !matches!(record.what, What::RunEnded(_)));
        records.push(Record { seq, at, what });
    }
    let (verdict, told) = judged(&scenario, &records, &judge, ended.as_ref());
    let missed = aim.borrow().missed();
    let effects = Effects::of(&scenario, &records);
    let result = weighed(verdict, missed, cut).and_then(|verdict| proven(&scenario, verdict, effects));
    let failed = result.as_ref().is_ok_and(|verdict| !verdict.passed());
    let last_words = child.last_words().await;
    let is_request = |record: &&Record| matches!(record.what, What::Request { .. });
    Ok(Played {
        scenario,
        proofs: result
            .as_ref()
            .map_or(Vec::new(), |verdict| proofs(verdict, &told)),
        result,
        last_words,
        took,
        interrupted,
        end: records.iter().rev().find_map(|record| {
            if let What::RunEnded(end) = &record.what {
                Some((record.at, run_end(end)))
            } else {
                None
            }
        }),
        requests: records.iter().filter(is_request).count(),
        trace: if failed {
            records.iter().map(line).collect()
        } else {
            Vec::new()
        },
    })
}

/// Returns the scenario as it is played. A client that streams its first list would reach no step that waits for a LIST; if
/// the scenario expects one, the server rejects streaming lists, as one without the feature gate `WatchList` does.
fn staged(scenario: &Scenario, version: Option<Version>) -> Scenario {
    let mut scenario = scenario.clone();
    if let Some(version) = version {
        scenario.server.version = version;
    }
    match scenario.client.initial_list {
        InitialList::ListWatch => {
            scenario.server.streaming_lists.get_or_insert(false);
        }
        InitialList::StreamingList => {}
    }
    scenario
}

/// Completes when the command has listed and watched other resources, but not the target of the scenario, for some time.
async fn stays_astray(aim: &RefCell<Aim>, heard: &Notify) {
    while !aim.borrow().is_astray() {
        heard.notified().await;
    }
    let hits = async {
        while aim.borrow().is_astray() {
            heard.notified().await;
        }
    };
    if timeout(ASTRAY, hits).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// Completes when a timeout of the run passed. Returns how long the command was idle, or `None` if it was active.
async fn outlasted(edge: &Edge, timeouts: Timeouts) -> Option<Duration> {
    loop {
        let now = edge.elapsed();
        match timeouts.check(now, edge.read_records(0, last_activity), CpuWait::default()) {
            TimeoutCheck::Hang(quiet) => return Some(quiet),
            TimeoutCheck::TimeUp => return None,
            TimeoutCheck::Again(at) => {
                let _passed = timeout(at.saturating_sub(now), std::future::pending::<()>()).await;
            }
        }
    }
}

/// The command exited by itself.
fn left(_: &Ended) -> RunEnd {
    RunEnd::ClientGone
}

/// Returns the end of a run that was cut: expectations that are not met by then prove nothing, also after the last step.
fn cut_short(scenario: &Scenario, waiting: Option<(usize, String)>, limit: Duration) -> RunEnd {
    let (step, waiting_for) =
        waiting.unwrap_or_else(|| (scenario.steps.len(), "the client to become idle".to_owned()));
    RunEnd::Stuck {
        step,
        waited_ms: limit.as_millis() as u64,
        waiting_for,
    }
}

/// A scenario to play.
struct Loaded {
    scenario: SharedScenario,
    /// Whether its own file was named, instead of a folder that contains it.
    named: bool,
}

/// Returns the scenarios of files and folders, in order, and the mistakes of invalid files.
fn load(paths: &[PathBuf]) -> (Vec<Loaded>, Vec<LoadErrors>) {
    let (files, mut mistaken) = scenario::find(paths);
    let mut scenarios = Vec::new();
    for file in files {
        match file.load() {
            Ok(scenario) => scenarios.push(Loaded {
                scenario: Arc::new(scenario),
                named: file.named,
            }),
            Err(errors) => mistaken.push(errors),
        }
    }
    (scenarios, mistaken)
}
