//! `fake-apiserver run`: plays scenarios to a command in any language, stops it, and says what the wire proves.

mod child;
mod report;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use conformance::judge::judge_wire;
use conformance::verdict::{Contradiction, Outcome, Verdict};
use conformance::wire::{Apart, Needs, grants, needs, takes};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{self, LoadErrors, SharedScenario, Style};
use fake_apiserver::server::{Limits, Server};
use futures::{StreamExt as _, stream};
use tokio::time::{Instant, timeout, timeout_at};

use self::child::{Child, Ended};
use crate::judging::{Commentator, Judge};
use crate::stage::{self, Running, Stage};
use crate::stop::Stop;
use crate::words::span;
use crate::{Failure, output};

/// How long connections of a command that ended may take to be seen closed.
const CLOSING: Duration = Duration::from_secs(2);

/// How long after the end nothing more can be proven: the judge's longest wait.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Play scenarios to a command, stop it, and judge what it did: for controllers in any language.
///
/// For each scenario a server of its own is started, and the command with KUBECONFIG set (also FAKE_APISERVER_SCENARIO,
/// FAKE_APISERVER_CONTROL and FAKE_APISERVER_CONTROL_TOKEN). It should list and watch what the scenario is about,
/// ConfigMaps in namespace default unless the file says otherwise, until it gets SIGTERM. Only the wire is judged: what
/// the command made of it needs an adapter.
///
/// Example: fake-apiserver run scenarios/gone/ -- ./my-controller
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all that was played passed, 1 something failed, 2 the command line or a scenario file is wrong (the others are played), 3 the command cannot be started, 4 nothing was played, 70 the system refused something."
)]
pub(crate) struct Run {
    /// Scenario files, and folders of them.
    #[arg(required = true, value_name = "SCENARIO|DIR")]
    scenarios: Vec<PathBuf>,
    /// The command, and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// What chance decides by.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The longest a scenario may take beside the time its file lets pass or grants, e.g. 60s. In folders, scenarios whose
    /// script takes half as long by itself are left out.
    #[arg(long, default_value = "60s", value_parser = span)]
    timeout: Duration,
    /// How long the command may take to end after SIGTERM, before it gets SIGKILL.
    #[arg(long, default_value = "5s", value_parser = span)]
    grace: Duration,
    /// Scenarios played at a time, each with a command of its own: more than one only if commands do not get into each
    /// other's way, by a port of their own for example.
    #[arg(long, short, default_value = "1")]
    jobs: NonZeroUsize,
    /// How results are printed on standard output.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Play scenarios too whose client has to be told something, because the command was.
    #[arg(long)]
    told: bool,
    /// Serve HTTPS.
    #[arg(long)]
    tls: bool,
    /// Show what happens, line by line, on standard error, and what the command prints.
    #[arg(long)]
    trace: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// A line a scenario and a footer.
    Json,
    /// For continuous integration.
    Junit,
}

/// One scenario, played or not.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) scenario: SharedScenario,
    pub(crate) result: Result<Verdict, Skipped>,
    /// The requests that prove what was found, as the trace tells them, one for each contradiction; empty without one.
    pub(crate) proofs: Vec<String>,
    /// The end of what the command printed.
    pub(crate) last_words: Vec<String>,
    pub(crate) took: Duration,
    /// Whoever looks on wants no more.
    pub(crate) interrupted: bool,
    /// It was cut short after so long, by `--timeout`.
    pub(crate) cut: Option<Duration>,
}

/// Why a scenario was not played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped(pub(crate) Needs);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}", self.0.words())
    }
}

impl Played {
    pub(crate) fn failed(&self) -> bool {
        self.result.as_ref().is_ok_and(|verdict| !verdict.passed())
    }
}

/// Plays what is asked for.
///
/// # Errors
/// A scenario is wrong or failed, or nothing could be played.
pub(crate) fn run(run: Run) -> Result<(), Failure> {
    let (scenarios, mistaken) = load(&run.scenarios);
    for errors in &mistaken {
        output::log_raw(&errors.render(Style::for_stderr()));
    }
    let mut report = report::Report::new(run.format, scenarios.len());
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

/// Plays them, as many at a time as is asked for, and tells of them in order.
async fn play_all(
    run: &Run,
    scenarios: Vec<Loaded>,
    report: &mut report::Report,
    stop: &Stop,
) -> Result<Vec<Played>, Failure> {
    let mut all = stream::iter(scenarios)
        .map(|loaded| play_or_skip(run, loaded, stop))
        .buffered(run.jobs.get());
    let mut played = Vec::new();
    report.moves(0);
    while let Some(one) = all.next().await.transpose()? {
        report.tells(&one, run, stop).await?;
        let interrupted = one.interrupted || stop.is_requested();
        played.push(one);
        if interrupted {
            break;
        }
        report.moves(played.len());
    }
    Ok(played)
}

async fn play_or_skip(run: &Run, Loaded { scenario, named }: Loaded, stop: &Stop) -> Result<Played, Failure> {
    let time = takes(&scenario);
    let needed = needs(&scenario)
        .filter(|needs| !(run.told && matches!(needs, Needs::Told(_))))
        .or_else(|| (!named && time > run.timeout / 2).then_some(Needs::Time(time)));
    match needed {
        None => play_one(run, scenario, stop).await,
        Some(needs) => Ok(Played {
            scenario,
            result: Err(Skipped(needs)),
            proofs: Vec::new(),
            last_words: Vec::new(),
            took: Duration::ZERO,
            interrupted: false,
            cut: None,
        }),
    }
}

async fn play_one(run: &Run, scenario: SharedScenario, stop: &Stop) -> Result<Played, Failure> {
    let server = Server::with_limits(scenario.clone(), run.seed, Limits::wire());
    let stage = Stage {
        server,
        what: scenario.id.clone(),
        version: scenario.server.version,
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
    let judge = Judge::new(Apart::ByAgent, excused.collect());
    let mut running = Running::open(stage, judge.clone()).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is an edge, and tells how long a run took"
    )]
    let began = Instant::now();
    let mut child = Child::start(&run.command, &running, &scenario.id, run.trace)?;
    let edge = running.edge.clone();
    let longest = takes(&scenario) + grants(&scenario) + run.timeout;
    let mut forced = None;
    let (mut ended, mut cut) = (None, None);
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
            _ = timeout_at(began + longest, std::future::pending::<()>()) => {
                let waiting = edge.steer(|server, _| server.waiting_step()).flatten();
                forced = Some(timed_out(waiting, longest));
                cut = Some(longest);
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
    let (verdict, proofs) = judged(&scenario, &records, &judge, ended.as_ref());
    Ok(Played {
        scenario,
        result: Ok(verdict),
        proofs,
        last_words: child.last_words(),
        took,
        interrupted,
        cut,
    })
}

/// What the wire proves: what always holds, what the scenario expects of requests, and how the command ended.
fn judged(
    scenario: &SharedScenario,
    records: &[Record],
    judge: &Judge,
    ended: Option<&Ended>,
) -> (Verdict, Vec<String>) {
    let clients = judge.verdict().clients;
    let told: Vec<_> = clients
        .into_iter()
        .flat_map(|client| client.contradictions)
        .collect();
    let found: Vec<Contradiction> = told.iter().map(|violation| violation.found.clone()).collect();
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
    let proof = |found: &Contradiction| {
        let proof = told.iter().find(|violation| violation.found == *found);
        proof.map(|violation| violation.proof.clone()).unwrap_or_default()
    };
    let proofs = verdict.contradictions.iter().map(proof).collect();
    (verdict, proofs)
}

/// The command ended by itself.
fn left(_: &Ended) -> RunEnd {
    RunEnd::ClientGone
}

fn timed_out(waiting: Option<(usize, String)>, limit: Duration) -> RunEnd {
    let waited_ms = limit.as_millis() as u64;
    match waiting {
        None => RunEnd::NotConverged { waited_ms },
        Some((step, waiting_for)) => RunEnd::Stuck {
            step,
            waited_ms,
            waiting_for,
        },
    }
}

/// A scenario to play.
struct Loaded {
    scenario: SharedScenario,
    /// Its own file was asked for, not a folder it is in.
    named: bool,
}

/// The scenarios of files and folders, in order, and what is wrong with files that are none.
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
