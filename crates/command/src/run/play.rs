//! How `run` plays a scenario: one server, one process of the command, and the verdict on what it sent. It must not know how results
//! are printed or kept.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use conformance::adapter::assess::restrict;
use conformance::adapter::timeouts::{self, TimeoutCheck, Timeouts, hang_end, last_activity};
use fake_apiserver::net::Edge;
use fake_apiserver::record::line::{line, run_end};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{self, InitialList, Scenario, SharedScenario, Version, Warning};
use fake_apiserver::server::{Limits, Server};
use judge::effect::Effects;
use judge::verdict::Verdict;
use judge::wire::{Loops, is_set, needs};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::aim::{self, Aim};
use super::child::{Child, Launch};
use super::choice::Loaded;
use super::lives::{CLOSING, Left, lives};
use super::restart::{self, Restart, RestartPolicy};
use super::retarget::Retarget;
#[cfg(feature = "proxy")]
use super::upstream::Written;
use super::weigh::{certain, certain_upstream, cut_words, judged, proofs, proven, weighed};
use super::{Played, Run, Skipped, can_show, left_out, unset};
use crate::judging::{Commentator, Judge};
use crate::stage::{self, Origin, Running, Stage};
use crate::stop::Stop;
use crate::{Failure, built_in};

/// Maximum requests kept of the first scenario, for the settings that they show.
const REQUESTS_KEPT: usize = 100;

/// Time after the end in which something can still be proven: the longest timeout of the judge.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Outcome of an attempt that passed.
pub(super) const PASSED: &str = "pass";

/// Plays a scenario, again up to `--retries` times if it failed and counts; returns the first attempt, with the outcomes of all.
pub(super) async fn play_or_skip(
    run: &Run,
    loaded: Loaded,
    sent: &RefCell<Vec<Record>>,
    stop: &Stop,
) -> Result<Played, Failure> {
    let mut first = attempt(run, loaded.clone(), sent, stop).await?;
    let retries = match first.scenario.is_hardening() {
        true => 0,
        false => run.retries,
    };
    for _ in 0..retries {
        if first.tries.last().is_none_or(|last| *last == PASSED) {
            break;
        }
        let again = attempt(run, loaded.clone(), sent, stop).await?;
        if again.result == Err(Skipped::Interrupted) {
            break;
        }
        first.tries.extend(again.tries);
    }
    first.is_built_in = loaded.is_built_in;
    Ok(first)
}

async fn attempt(
    run: &Run,
    Loaded {
        mut scenario, named, ..
    }: Loaded,
    sent: &RefCell<Vec<Record>>,
    stop: &Stop,
) -> Result<Played, Failure> {
    let to = Retarget {
        resource: run.kind.get().cloned(),
        namespace: run.namespace.clone(),
    };
    let stays = match to.apply(&scenario) {
        Ok(moved) => {
            scenario = Arc::new(moved);
            None
        }
        Err(why) => Some(Skipped::NotJudged(format!("it cannot be moved: {why}"))),
    };
    let unset = unset(run, &scenario);
    let to_show = match can_show(&scenario, &unset, &sent.borrow()) {
        true => unset.clone(),
        false => Vec::new(),
    };
    let needed = left_out(run, &scenario, named, unset.len() - to_show.len());
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
    #[cfg(feature = "proxy")]
    let skipped = match skipped {
        None => Written::of(run, &scenario).are_new(run).await.err(),
        skipped => skipped,
    };
    match skipped {
        None if stop.is_requested() => Ok(unplayed(scenario, Skipped::Interrupted)),
        None => play_one(run, scenario, &to_show, sent, stop).await,
        Some(skipped) => Ok(unplayed(scenario, skipped)),
    }
}

fn unplayed(scenario: SharedScenario, skipped: Skipped) -> Played {
    Played {
        scenario,
        result: Err(skipped),
        known: None,
        proofs: Vec::new(),
        output: Vec::new(),
        took: Duration::ZERO,
        restarts: Vec::new(),
        trace: Vec::new(),
        tries: Vec::new(),
        records: Vec::new(),
        is_built_in: false,
        end: None,
        requests: 0,
    }
}

/// Returns the outcome of an attempt that was judged.
fn tried(result: &Result<Verdict, Skipped>) -> Vec<&'static str> {
    let verdict = result.iter();
    verdict
        .map(|verdict| {
            if verdict.passed() {
                PASSED
            } else {
                verdict.outcome.word()
            }
        })
        .collect()
}

/// Why a scenario was over.
enum Over {
    /// Its last step was done, or will never be: the server has recorded its end.
    Played,
    /// The command exited.
    Gone,
    /// The command exited before its first request.
    NotStarted(String),
    /// The command was started again and again, and failed.
    KeepsFailing { why: String, end: RunEnd },
    /// A stop was requested.
    Interrupted,
    /// The command reads something else.
    Astray(Option<String>),
    /// A request shows that the command does not have a setting of the scenario.
    OtherSettings(RunEnd),
    /// The command was idle for too long.
    Hang(RunEnd),
    /// The time is up, and the command was active.
    TimeUp { why: String, end: RunEnd },
}

impl Over {
    /// Returns the end to record; `None`: the server has recorded it.
    fn end(&self) -> Option<RunEnd> {
        match self {
            Self::Played => None,
            Self::Gone | Self::NotStarted(_) => Some(RunEnd::ClientGone),
            Self::Interrupted => Some(RunEnd::Harness {
                message: "interrupted".to_owned(),
            }),
            Self::Astray(_) => Some(RunEnd::NotConverged {
                waited_ms: aim::ASTRAY.as_millis() as u64,
            }),
            Self::KeepsFailing { end, .. }
            | Self::OtherSettings(end)
            | Self::Hang(end)
            | Self::TimeUp { end, .. } => Some(end.clone()),
        }
    }

    /// Returns why there is no verdict, whatever was recorded.
    fn skipped(&self) -> Option<Skipped> {
        match self {
            Self::NotStarted(why) => Some(Skipped::NotStarted(why.clone())),
            Self::Interrupted => Some(Skipped::Interrupted),
            Self::Played
            | Self::Gone
            | Self::KeepsFailing { .. }
            | Self::Astray(_)
            | Self::OtherSettings(_)
            | Self::Hang(_)
            | Self::TimeUp { .. } => None,
        }
    }

    /// Returns why the run was cut: it proves only what happened until then.
    fn cut(&self) -> Option<&str> {
        match self {
            Self::KeepsFailing { why, .. } | Self::TimeUp { why, .. } => Some(why),
            Self::Played
            | Self::Gone
            | Self::NotStarted(_)
            | Self::Interrupted
            | Self::Astray(_)
            | Self::OtherSettings(_)
            | Self::Hang(_) => None,
        }
    }

    /// Returns what the command read instead, if that is why nothing is proven. `aim`: what its requests aimed at. A command that
    /// keeps failing may not come to its first list.
    fn missed(&self, aim: &Aim) -> Option<String> {
        match self {
            Self::KeepsFailing { .. } => None,
            Self::Astray(Some(why)) => Some(why.clone()),
            Self::Astray(None)
            | Self::Played
            | Self::Gone
            | Self::NotStarted(_)
            | Self::Interrupted
            | Self::OtherSettings(_)
            | Self::Hang(_)
            | Self::TimeUp { .. } => aim.missed(),
        }
    }
}

/// Plays a scenario. `to_show`: settings without which it proves nothing; the command's requests must have them. `sent`: requests of
/// the first scenario that was played.
async fn play_one(
    run: &Run,
    scenario: SharedScenario,
    to_show: &[&'static str],
    sent: &RefCell<Vec<Record>>,
    stop: &Stop,
) -> Result<Played, Failure> {
    let scenario = Arc::new(staged(&scenario, run.kubernetes_version));
    let judge = judge_of(run, &scenario);
    let mut running = opened(run, &scenario, &judge).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is an edge, and reports how long a run took"
    )]
    let began = Instant::now();
    #[cfg(feature = "proxy")]
    let written = Written::of(run, &scenario);
    #[cfg(feature = "proxy")]
    if let Err(skipped) = written.begin(&scenario, &running.edge).await {
        written.delete(&running.edge).await;
        return Ok(unplayed(scenario, skipped));
    }
    let launch = Launch::of(&run.command, &running, &scenario, run.trace)?;
    let mut child = Child::start(&launch)?;
    let edge = running.edge.clone();
    let aim = Aim::new(scenario.target.clone(), scenario.server.transport);
    let (aim, heard_something) = (RefCell::new(aim), Notify::new());
    let heard = Commentator {
        judge: judge.clone(),
        shows_all: run.trace,
    };
    let (mut over, mut ended) = (Ok(Over::Played), None);
    let scene = async {
        over = tokio::select! {
            over = follow(run, &scenario, to_show, &edge, &mut child, &launch) => over,
            () = stop.requested() => Ok(Over::Interrupted),
            why = aim::stays_astray(&aim, &heard_something) => Ok(Over::Astray(why)),
        };
        edge.stop_requested();
        ended = Some(child.stop(run.grace).await);
        if timeout(CLOSING, edge.deserted()).await.is_err() {
            edge.closing_is_over();
        }
        #[cfg(feature = "proxy")]
        written.delete(&edge).await;
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
    let over = over?;
    let took = began.elapsed();
    judge.hear(edge.elapsed() + AFTERWARDS, &[]);
    let mut records = edge.take_records();
    if let Some(end) = over.end() {
        let what = What::RunEnded(end);
        let (seq, at) = records.last().map_or((0, took), |last| (last.seq + 1, last.at));
        records.retain(|record| !matches!(record.what, What::RunEnded(_)));
        records.push(Record { seq, at, what });
    }
    let is_request = |record: &&Record| matches!(record.what, What::Request { .. });
    if sent.borrow().is_empty() {
        let requests = records.iter().filter(is_request).take(REQUESTS_KEPT);
        sent.borrow_mut().extend(requests.cloned());
    }
    let crash = ended.filter(|ended| run.restart == RestartPolicy::Never && ended.is_failure());
    let (verdict, told) = judged(&scenario, &records, &judge, ended.as_ref(), crash.as_ref());
    let missed = over.missed(&aim.borrow());
    let result = decided(run, &scenario, to_show, &records, &over, missed, verdict);
    let failed = result.as_ref().is_ok_and(|verdict| !verdict.passed());
    let ended_by_itself = records
        .iter()
        .any(|record| matches!(record.what, What::ClientExited { .. }));
    let output = child.output(ended_by_itself).await;
    Ok(Played {
        scenario,
        proofs: result
            .as_ref()
            .map_or(Vec::new(), |verdict| proofs(verdict, &told)),
        is_built_in: false,
        known: None,
        output,
        took,
        restarts: Restart::all(&records),
        end: end_of(&records).map(|(at, end)| (at, run_end(end))),
        requests: records.iter().filter(is_request).count(),
        trace: if failed {
            records.iter().map(line).collect()
        } else {
            Vec::new()
        },
        tries: tried(&result),
        records: if run.keeps_records() { records } else { Vec::new() },
        result,
    })
}

fn judge_of(run: &Run, scenario: &Scenario) -> Judge {
    let excused = scenario.expect.excused.iter();
    let excused = excused.map(|excuse| excuse.invariant.clone()).collect();
    match run.is_before_upstream() {
        true => Judge::of_upstream(Loops::One, excused),
        false => Judge::new(Loops::One, excused),
    }
}

/// Opens the server of a scenario, where the one of the scenario before was.
async fn opened(run: &Run, scenario: &SharedScenario, judge: &Judge) -> Result<Running, Failure> {
    let limits = timeouts::disable(Limits::wire());
    let mut stage = match forwarding(run, scenario, limits)? {
        Some(stage) => stage,
        None => in_memory(run, scenario, limits)?,
    };
    let (control_port, control_token) = run.seat.borrow().clone().unzip();
    stage.control_port = control_port.unwrap_or(0);
    stage.control_token = control_token;
    stage.ui = run.ui;
    let running = Running::open(stage, judge.clone()).await?;
    if run.ui && run.seat.borrow().is_none() {
        running.introduce_page();
        run.seat.replace(Some(running.seat()));
    }
    Ok(running)
}

/// Follows the command until the scenario is over by itself, and returns why it is.
async fn follow(
    run: &Run,
    scenario: &SharedScenario,
    to_show: &[&str],
    edge: &Edge,
    child: &mut Child,
    launch: &Launch,
) -> Result<Over, Failure> {
    let reference = built_in::reference(&scenario.id);
    let timeouts = Timeouts::of(scenario, reference, run.timeout, run.hang_after);
    let waiting = || edge.steer(|server, _| server.waiting_step()).flatten();
    Ok(tokio::select! {
        () = edge.finished() => Over::Played,
        left = lives(child, launch, edge, run.restart, timeouts.total) => match left? {
            Left::Gone => Over::Gone,
            Left::NotStarted(why) => Over::NotStarted(why),
            Left::KeepsFailing(why) => Over::KeepsFailing {
                why,
                end: cut_short(scenario, waiting(), edge.elapsed()),
            },
        },
        () = shows_other_settings(edge, scenario, to_show) => {
            Over::OtherSettings(cut_short(scenario, waiting(), edge.elapsed()))
        }
        over = outlasted(edge, scenario, timeouts) => {
            let waiting = waiting();
            match over {
                Some(quiet) => Over::Hang(hang_end(waiting, quiet)),
                None => Over::TimeUp {
                    why: cut_words(timeouts.total, waiting.as_ref()),
                    end: cut_short(scenario, waiting, timeouts.total),
                },
            }
        }
    })
}

/// Returns how the run ended, and when.
fn end_of(records: &[Record]) -> Option<(Duration, &RunEnd)> {
    records.iter().rev().find_map(|record| {
        let What::RunEnded(end) = &record.what else {
            return None;
        };
        Some((record.at, end))
    })
}

/// Returns the verdict of a run, or why it proves nothing. `missed`: what the command read instead.
fn decided(
    run: &Run,
    scenario: &Scenario,
    to_show: &[&'static str],
    records: &[Record],
    over: &Over,
    missed: Option<String>,
    verdict: Verdict,
) -> Result<Verdict, Skipped> {
    if let Some(skipped) = over.skipped() {
        return Err(skipped);
    }
    let is_shown = |key: &&str| is_set(scenario, key, records) == Some(true);
    if missed.is_none()
        && !to_show.iter().all(is_shown)
        && let Some(needs) = needs(scenario)
    {
        return Err(Skipped::Needs(needs));
    }
    let effects = Effects::of(scenario, records);
    let verdict = weighed(verdict, missed, over.cut().map(str::to_owned))?;
    let mut verdict = if run.is_before_upstream() {
        certain_upstream(verdict, records, effects)?
    } else {
        // Another way through the scenario is no mistake by itself.
        let another_way = match end_of(records) {
            Some((_, RunEnd::Missed { because, .. })) => Some(format!(
                "the command took another way through the scenario: {because}"
            )),
            Some(_) | None => None,
        };
        let verdict = certain(verdict, restart::words(&Restart::all(records)))?;
        let verdict = proven(scenario, verdict, effects)?;
        weighed(verdict, None, another_way)?
    };
    if let Some(edition) = run.edition.filter(|edition| edition.has(&scenario.id)) {
        restrict(&mut verdict, edition);
    }
    Ok(verdict)
}

/// Returns the server of a scenario, with its objects.
fn in_memory(run: &Run, scenario: &SharedScenario, limits: Limits) -> Result<Stage, Failure> {
    Ok(Stage {
        server: Server::recorded(scenario.clone(), run.seed, limits, run.recording.kept()?),
        what: scenario.id.clone(),
        origin: Origin::Model(scenario.server.version),
        wall_clock: None,
        serving: stage::serving(&scenario.server, run.tls),
        control_port: 0,
        control_token: None,
        ui: false,
        namespace: scenario.target.namespace.clone(),
        kubeconfig: None,
        service_account: None,
    })
}

/// Returns the proxy of `--upstream`; `None` without.
#[cfg(feature = "proxy")]
fn forwarding(run: &Run, scenario: &SharedScenario, limits: Limits) -> Result<Option<Stage>, Failure> {
    super::upstream::staged(run, scenario, limits)
}

#[cfg(not(feature = "proxy"))]
fn forwarding(_: &Run, _: &SharedScenario, _: Limits) -> Result<Option<Stage>, Failure> {
    Ok(None)
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

/// Completes when a request shows that the command does not have a setting of the scenario.
async fn shows_other_settings(edge: &Edge, scenario: &Scenario, to_show: &[&str]) {
    if to_show.is_empty() {
        std::future::pending::<()>().await;
    }
    let is_other = |records: &[Record]| {
        let mut settings = to_show.iter();
        settings.any(|key| is_set(scenario, key, records) == Some(false))
    };
    loop {
        let stirred = edge.stirred();
        if edge.read_records(0, is_other) {
            return;
        }
        stirred.await;
    }
}

/// Completes when a timeout of the run passed. Returns how long the command was idle, or `None` if it was active.
async fn outlasted(edge: &Edge, scenario: &Scenario, timeouts: Timeouts) -> Option<Duration> {
    loop {
        let now = edge.elapsed();
        let (active, waiting) = edge.read_records(0, |records| {
            (last_activity(scenario, records), restart::waiting(records, now))
        });
        match timeouts.check(now, active, waiting) {
            TimeoutCheck::Hang(quiet) => return Some(quiet),
            TimeoutCheck::TimeUp => return None,
            TimeoutCheck::Again(at) => {
                let _passed = timeout(at.saturating_sub(now), std::future::pending::<()>()).await;
            }
        }
    }
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
