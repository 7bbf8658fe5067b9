//! `fake-apiserver run`: runs scenarios against a command in any language and judges its requests.

mod aim;
mod child;
mod choice;
mod known;
mod lives;
mod options;
mod report;
mod restart;
mod retarget;
mod sample;
mod settings;
mod weigh;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use conformance::adapter::timeouts::{self, TimeoutCheck, Timeouts, hang_end, last_activity};
use fake_apiserver::net::Edge;
use fake_apiserver::record::line::{line, run_end};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::scenario::{self, InitialList, Scenario, SharedScenario, Style, Version, Warning};
use fake_apiserver::server::{Limits, Server};
use futures::{StreamExt as _, stream};
use judge::effect::Effects;
use judge::verdict::Verdict;
use judge::wire::{Loops, Needs, grants, is_set, is_shown_by_requests, needed_settings, needs, takes};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::aim::Aim;
use self::child::{Child, Launch};
use self::choice::Loaded;
use self::known::{Excuse, Known};
use self::lives::{CLOSING, Left, lives};
pub(crate) use self::options::Run;
use self::options::{ALL, Format, Profile};
use self::restart::{Restart, RestartPolicy};
use self::retarget::Retarget;
use self::weigh::{certain, cut_words, judged, proofs, proven, weighed};
use crate::built_in;
use crate::judging::{Commentator, Judge};
use crate::stage::{self, Running, Stage};
use crate::stop::{INTERRUPTED, Stop};
use crate::{Failure, output, private};

/// Exit code of a run with entries of known failures that are no failures.
const STALE: u8 = 5;

/// Maximum requests kept of the first scenario, for the settings that they show.
const REQUESTS_KEPT: usize = 100;

/// Time after the end in which something can still be proven: the longest timeout of the judge.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Result for one scenario, played or not.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) scenario: SharedScenario,
    pub(crate) result: Result<Verdict, Skipped>,
    /// Why its failure is a known one.
    pub(crate) known: Option<Excuse>,
    /// Trace line of the request that proves each contradiction; empty without one.
    pub(crate) proofs: Vec<String>,
    /// Last lines of the command's output, and the first ones if it ended by itself.
    pub(crate) output: Vec<String>,
    pub(crate) took: Duration,
    /// Exits after which the command was started again.
    pub(crate) restarts: Vec<Restart>,
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
    /// The command ended before its first request.
    NotStarted(String),
    /// A stop was requested.
    Interrupted,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(needs) => write!(f, "needs {}", needs.words()),
            Self::NotJudged(why) => write!(f, "not judged: {why}"),
            Self::NotStarted(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Played {
    /// Whether it failed, and not as it is known to.
    pub(crate) fn failed(&self) -> bool {
        self.known.is_none() && self.result.as_ref().is_ok_and(|verdict| !verdict.passed())
    }

    pub(crate) fn passed(&self) -> bool {
        self.result.as_ref().is_ok_and(Verdict::passed)
    }
}

/// Runs the selected scenarios.
///
/// # Errors
///
/// A scenario is invalid or failed, or nothing could be played.
pub(crate) fn run(run: Run) -> Result<(), Failure> {
    let (mut scenarios, mistaken) = choice::load(&run.scenarios, &run.tag)?;
    if let Some(shard) = run.shard {
        scenarios.retain(|loaded| shard.has(&loaded.scenario.id));
    }
    let known = Known::read(run.known_failures.as_deref(), &run.library)?;
    if let Some(path) = &run.junit {
        private::check_new(path)?;
    }
    for errors in &mistaken {
        output::log_raw(&errors.render(Style::for_stderr()));
    }
    if run.list {
        return list(&run, scenarios, !mistaken.is_empty());
    }
    let ids = scenarios.iter().map(|loaded| loaded.scenario.id.clone());
    let ids: Vec<String> = ids.collect();
    let exists = |id: &str| ids.iter().any(|known| known == id) || built_in::has(id);
    let mut report = report::Report::new(run.format, ids.clone());
    let (played, stale) = stage::block_on(async |stop| {
        let played = play_all(&run, scenarios, &known, &mut report, &stop).await?;
        let passed = |id: &str| played.iter().any(|one| one.scenario.id == id && one.passed());
        let (stale, unseen) = known.stale(exists, passed);
        let ended = report::Ended {
            played: &played,
            mistaken: &mistaken,
            stale: &stale,
            unseen: &unseen,
        };
        if let Some(path) = &run.junit {
            private::write_new(path, &report::junit(&ended, &run)?)?;
        }
        report.ends(&ended, &run, &stop).await?;
        Ok((played, stale))
    })?;
    let count = |of: &dyn Fn(&Played) -> bool| played.iter().filter(|one| of(one)).count();
    if count(&|one| one.result == Err(Skipped::Interrupted)) > 0 {
        return Err(Failure::Silent(INTERRUPTED));
    }
    if count(&|one| matches!(one.result, Err(Skipped::NotStarted(_)))) > 0 {
        return Err(Failure::Silent(3));
    }
    if !mistaken.is_empty() {
        return Err(Failure::Silent(2));
    }
    if count(&Played::failed) > 0 {
        return Err(Failure::Silent(1));
    }
    if !stale.is_empty() {
        return Err(Failure::Silent(STALE));
    }
    if count(&|one| one.result.is_ok()) == 0 {
        return Err(Failure::Silent(4));
    }
    Ok(())
}

/// Prints the scenarios that would be played, one a line. A scenario that needs an adapter, settings or time is not.
fn list(run: &Run, scenarios: Vec<Loaded>, has_mistakes: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for Loaded { scenario, named } in scenarios {
        let unset = unset(run, &scenario);
        let missing = match can_show(&scenario, &unset, &[]) {
            true => 0,
            false => unset.len(),
        };
        if left_out(run, &scenario, named, missing).is_none() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}   {}", scenario.id, scenario.title);
        }
    }
    stage::block_on(async |stop| output::print(text, &stop).await)?;
    match has_mistakes {
        true => Err(Failure::Silent(2)),
        false => Ok(()),
    }
}

/// Runs scenarios, `--jobs` in parallel, and reports them in order; a long one delays the reports of those after it, but not
/// their start. Ends early after a stop request, or if the command does not start: it would not start for the others either.
async fn play_all(
    run: &Run,
    scenarios: Vec<Loaded>,
    known: &Known,
    report: &mut report::Report,
    stop: &Stop,
) -> Result<Vec<Played>, Failure> {
    let sent = RefCell::new(Vec::new());
    let mut all = stream::iter(scenarios.into_iter().enumerate())
        .map(async |(nth, loaded)| Ok::<_, Failure>((nth, play_or_skip(run, loaded, &sent, stop).await?)))
        .buffer_unordered(run.jobs.get());
    let (mut reported, mut early) = (0, BTreeMap::new());
    let (mut played, mut interrupted) = (Vec::new(), false);
    report.moves(0);
    while let Some((nth, one)) = all.next().await.transpose()? {
        early.insert(nth, one);
        while let Some(one) = early.remove(&reported) {
            reported += 1;
            let is_interrupted = one.result == Err(Skipped::Interrupted);
            // After a stop request those that were played to their end are still reported.
            if is_interrupted && std::mem::replace(&mut interrupted, true) {
                continue;
            }
            let mut one = started_elsewhere(one, &played);
            let verdict = one.result.as_ref().ok();
            one.known = verdict.and_then(|verdict| known.excuse(&one.scenario.id, verdict));
            report.tells(&one, run, stop).await?;
            let ends = matches!(one.result, Err(Skipped::NotStarted(_)));
            played.push(one);
            if ends {
                return Ok(played);
            }
            if !interrupted {
                report.moves(reported);
            }
        }
    }
    Ok(played)
}

/// A command that sent requests in an earlier scenario starts: where it sends none, e.g. because it speaks no HTTP/2, it is not
/// judged, and the others are played.
fn started_elsewhere(mut one: Played, earlier: &[Played]) -> Played {
    if let Err(Skipped::NotStarted(why)) = &one.result
        && earlier.iter().any(|earlier| earlier.requests > 0)
    {
        one.result = Err(Skipped::NotJudged(why.clone()));
    }
    one
}

async fn play_or_skip(
    run: &Run,
    Loaded { mut scenario, named }: Loaded,
    sent: &RefCell<Vec<Record>>,
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
    match skipped {
        None if stop.is_requested() => Ok(unplayed(scenario, Skipped::Interrupted)),
        None => play_one(run, scenario, &to_show, sent, stop).await,
        Some(skipped) => Ok(unplayed(scenario, skipped)),
    }
}

/// Returns what keeps a scenario from being played. `missing`: number of settings that it needs, and that the command line does not
/// promise and requests cannot show.
fn left_out(run: &Run, scenario: &Scenario, named: bool, missing: usize) -> Option<Needs> {
    let (time, granted) = (takes(scenario), grants(scenario));
    let is_long = time > run.timeout / 3 || granted > run.timeout * 4;
    let is_too_long = !named && run.profile == Profile::Quick && is_long;
    needs(scenario)
        .filter(|needs| !matches!(needs, Needs::Told(_)) || missing > 0)
        .or_else(|| is_too_long.then_some(Needs::Time(time + granted)))
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
        end: None,
        requests: 0,
    }
}

/// Returns the settings that the scenario needs and that the command line does not promise.
fn unset(run: &Run, scenario: &Scenario) -> Vec<&'static str> {
    let assumed = |key: &str| {
        run.assume_configured
            .iter()
            .any(|given| given == ALL || given == key)
    };
    let settings = needed_settings(scenario).into_iter();
    settings.filter(|key| !assumed(key)).collect()
}

/// Whether requests can show that the command has these settings: those of an earlier scenario, `sent`, do not show that it has
/// not; then those of this one decide.
fn can_show(scenario: &Scenario, unset: &[&'static str], sent: &[Record]) -> bool {
    unset
        .iter()
        .all(|key| is_shown_by_requests(key) && is_set(scenario, key, sent) != Some(false))
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
    let launch = Launch::of(&run.command, &running, &scenario, run.trace)?;
    let mut child = Child::start(&launch)?;
    let edge = running.edge.clone();
    let reference = built_in::reference(&scenario.id);
    let timeouts = Timeouts::of(&scenario, reference, run.timeout, run.hang_after);
    let (mut forced, mut cut, mut skipped, mut astray) = (None, None, None, None);
    let (mut ended, mut broken, mut keeps_failing) = (None, None, false);
    let (aim, heard_something) = (RefCell::new(Aim::new(scenario.target.clone())), Notify::new());
    let heard = Commentator {
        judge: judge.clone(),
        shows_all: run.trace,
    };
    let scene = async {
        let waiting = || edge.steer(|server, _| server.waiting_step()).flatten();
        tokio::select! {
            () = edge.finished() => {}
            left = lives(&mut child, &launch, &edge, run.restart, timeouts.total) => match left {
                Ok(Left::Gone) => forced = Some(RunEnd::ClientGone),
                Ok(Left::NotStarted(why)) => {
                    forced = Some(RunEnd::ClientGone);
                    skipped = Some(Skipped::NotStarted(why));
                }
                Ok(Left::KeepsFailing(why)) => {
                    forced = Some(cut_short(&scenario, waiting(), edge.elapsed()));
                    cut = Some(why);
                    keeps_failing = true;
                }
                Err(failure) => broken = Some(failure),
            },
            () = stop.requested() => {
                forced = Some(RunEnd::Harness { message: "interrupted".to_owned() });
                skipped = Some(Skipped::Interrupted);
            }
            why = aim::stays_astray(&aim, &heard_something) => {
                astray = why;
                let waited_ms = aim::ASTRAY.as_millis() as u64;
                forced = Some(RunEnd::NotConverged { waited_ms });
            }
            () = shows_other_settings(&edge, &scenario, to_show) => {
                forced = Some(cut_short(&scenario, waiting(), edge.elapsed()));
            }
            over = outlasted(&edge, &scenario, timeouts) => {
                let waiting = waiting();
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
    if let Some(failure) = broken {
        return Err(failure);
    }
    let took = began.elapsed();
    judge.hear(edge.elapsed() + AFTERWARDS, &[]);
    let mut records = edge.take_records();
    if let Some(end) = forced {
        let what = What::RunEnded(end);
        let (seq, at) = records.last().map_or((0, took), |last| (last.seq + 1, last.at));
        records.retain(|record| !matches!(record.what, What::RunEnded(_)));
        records.push(Record { seq, at, what });
    }
    let restarts = Restart::all(&records);
    let ended_by_itself = records
        .iter()
        .any(|record| matches!(record.what, What::ClientExited { .. }));
    let crash = ended.filter(|ended| run.restart == RestartPolicy::Never && ended.is_failure());
    let (verdict, told) = judged(&scenario, &records, &judge, ended.as_ref(), crash.as_ref());
    // A command that keeps failing may not come to its first list.
    let missed = astray
        .or_else(|| aim.borrow().missed())
        .filter(|_| !keeps_failing);
    let is_request = |record: &&Record| matches!(record.what, What::Request { .. });
    if sent.borrow().is_empty() {
        let requests = records.iter().filter(is_request).take(REQUESTS_KEPT);
        sent.borrow_mut().extend(requests.cloned());
    }
    let is_shown = |key: &&str| is_set(&scenario, key, &records) == Some(true);
    if missed.is_none() && !to_show.iter().all(is_shown) {
        skipped = skipped.or(needs(&scenario).map(Skipped::Needs));
    }
    let end = records.iter().rev().find_map(|record| {
        let What::RunEnded(end) = &record.what else {
            return None;
        };
        Some((record.at, end))
    });
    // Another way through the scenario is no mistake by itself.
    let another_way = match end {
        Some((_, RunEnd::Missed { because, .. })) => Some(format!(
            "the command took another way through the scenario: {because}"
        )),
        Some(_) | None => None,
    };
    let effects = Effects::of(&scenario, &records);
    let result = match skipped {
        Some(skipped) => Err(skipped),
        None => weighed(verdict, missed, cut)
            .and_then(|verdict| certain(verdict, restart::words(&restarts)))
            .and_then(|verdict| proven(&scenario, verdict, effects))
            .and_then(|verdict| weighed(verdict, None, another_way)),
    };
    let failed = result.as_ref().is_ok_and(|verdict| !verdict.passed());
    let output = child.output(ended_by_itself).await;
    Ok(Played {
        scenario,
        proofs: result
            .as_ref()
            .map_or(Vec::new(), |verdict| proofs(verdict, &told)),
        result,
        known: None,
        output,
        took,
        restarts,
        end: end.map(|(at, end)| (at, run_end(end))),
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
