//! Runs one scenario with an adapter, over sockets and in real time, and judges it like a client of this process: the
//! adapter's events become reports in the trace, and the verdict is derived from the trace.
//!
//! Scenarios do not depend on the kind of client.

use std::path::Path;
use std::time::Duration;

use fake_apiserver::net::{Core, Credentials, Edge, Listening, ServeOptions};
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::edition::Edition;
use fake_apiserver::scenario::{Contract, Scenario, ServerSettings, SharedScenario};
use fake_apiserver::server::{Input, Limits, Output, Server};
use judge::verdict::Verdict;
use judge::wire::takes;
use tokio::time::{Instant, timeout, timeout_at};

use super::assess::{Assessment, assess};
use super::child::{Child, ChildEvent, Mailbox, StartError, TimeLimits, exit_words, with_last_line};
use super::fit;
use super::limiter::Limiter;
use super::message::{Capability, Command, Hello, Start};
use super::outcome::Outcome;
use super::session::Session;
use super::timeouts::{self, CpuWait, TimeoutCheck, Timeouts, hang_end, last_activity};
use crate::process::load::Load;
use crate::served::Served;

/// Timeout for connections to close after the adapter has exited.
const CLOSING: Duration = Duration::from_secs(2);

/// Time after convergence in which forbidden requests and events are still recorded.
const SETTLE: Duration = Duration::from_millis(500);

/// Maximum number of requests of a run, plus those for each second that it may take. A client within the budget of INV-16 (1.5
/// per second) stays below it, and a retry storm exceeds it also on a slow machine: the outcome must not depend on the machine.
const REQUESTS_MAX: u64 = 500;
const REQUESTS_PER_SECOND: u64 = 2;

/// Time of waiting for a processor from which a failed test is repeated: half of the 2 s in which a client must close unused
/// connections.
const HELD_UP_MAX: Duration = Duration::from_secs(1);

/// Time after convergence in which the client may open its watch again: longer than the delays of clients on a busy machine.
const REWATCH: Duration = Duration::from_secs(10);

/// How tests are run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Command of the adapter, with its arguments.
    pub command: Vec<String>,
    /// Time limits of the adapter.
    pub limits: TimeLimits,
    /// Time limit of a test, in addition to the time that its steps take and allow and that our watcher needs. If a step waits
    /// and the client is idle for two thirds of it, the client hangs.
    pub timeout: Duration,
    /// Seed for all randomness.
    pub seed: u64,
    /// Edition whose requirements count; `None`: all requirements.
    pub edition: Option<&'static Edition>,
    /// Limiter of parallel adapters.
    pub limiter: Limiter,
}

/// A scenario to run.
#[derive(Debug, Clone)]
pub struct Test {
    /// The scenario.
    pub scenario: SharedScenario,
    /// How long our watcher takes because of its delays; other clients get more time. Zero: unknown.
    pub reference: Duration,
}

impl Test {
    /// Returns the duration of its steps, or of our watcher's delays if they are longer.
    pub fn lasts(&self) -> Duration {
        takes(&self.scenario).max(self.reference)
    }
}

/// One run of a test.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The scenario, adapted to the adapter.
    pub scenario: SharedScenario,
    /// Outcome.
    pub outcome: Outcome,
    /// Reason, in one sentence; empty if it passed.
    pub why: String,
    /// Verdict, if it was judged.
    pub verdict: Option<Verdict>,
    /// Trace, up to the end of the run.
    pub records: Vec<Record>,
    /// The adapter's `hello`.
    pub hello: Option<Hello>,
    /// True if the time limit ended it.
    pub cut: bool,
    /// Content of the library's cache at the end, if the adapter reports it.
    pub dump: Option<Vec<ReportedObject>>,
    /// Summary of output that is not a message.
    pub stray: Option<String>,
    /// Standard output as received, up to 16 MiB.
    pub received: Vec<u8>,
    /// Last lines of standard error.
    pub errors: Vec<String>,
    /// Duration, real time.
    pub took: Duration,
    /// Time for which the adapter and its server waited for a processor.
    pub held_up: Duration,
    /// CPU time of the adapter.
    pub ran: Duration,
}

/// How a run ended.
enum RunResult {
    /// The server ended it.
    Complete,
    /// The process exited; the crash is recorded.
    Crash,
    /// The adapter violated the protocol; the session has the reason.
    Fault,
    /// A step waited, and the client was idle for too long.
    Hang(RunEnd),
    /// The time limit passed while the client was still active.
    Cut(RunEnd),
}

/// Start of an attempt, and how long this thread, which runs the server, had waited for a processor until then.
#[derive(Clone, Copy)]
struct StartTimes {
    at: Instant,
    held_up: Duration,
}

impl Attempt {
    /// Creates the entry of a test that is not run, with the outcome and the reason.
    pub fn not_run(scenario: &SharedScenario, outcome: Outcome, why: String) -> Self {
        Self {
            scenario: scenario.clone(),
            outcome,
            why,
            verdict: None,
            records: Vec::new(),
            hello: None,
            cut: false,
            dump: None,
            stray: None,
            received: Vec::new(),
            errors: Vec::new(),
            took: Duration::ZERO,
            held_up: Duration::ZERO,
            ran: Duration::ZERO,
        }
    }

    /// Returns true if the client waited for a processor for so long that late requests prove nothing.
    pub fn was_held_up(&self) -> bool {
        self.held_up >= HELD_UP_MAX
    }
}

/// Starts the adapter and closes its standard input after `hello`. Returns the `hello`, or what is wrong.
///
/// # Errors
/// As [`run`].
pub async fn probe(plan: &Plan, home: &Path) -> Result<Result<Hello, String>, StartError> {
    let (_listening, mut child) = start_with_idle_server(plan, home).await?;
    let hello = read_hello(&mut child, plan.limits).await;
    let mut ended = Ok(());
    if hello.is_some() {
        child.close_input();
        ended = match child.end(plan.limits.stop).await {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!(
                "the adapter {} at the end of standard input; exit with status 0",
                exit_words(Some(status))
            )),
            None => Err("the adapter did not exit at the end of standard input, and was killed".to_owned()),
        };
    }
    let fault = child
        .mailbox()
        .with(|session| session.fault().map(str::to_owned))
        .or(ended.err());
    Ok(match (hello, fault) {
        (Some(hello), None) => Ok(hello),
        (_, fault) => Err(with_last_line(
            fault.unwrap_or_default(),
            &child.last_errors().await,
        )),
    })
}

/// Runs a test with a new process of the adapter. `home`: a directory that is created and removed.
///
/// # Errors
/// The command cannot be started, or a directory or pipe cannot be created.
pub async fn run(plan: &Plan, test: &Test, home: &Path) -> Result<Attempt, StartError> {
    let scenario = &test.scenario;
    let prepare = |hello: &Hello| {
        let start = fit::start(scenario, hello)?;
        Ok((start, fit::adapt(scenario, hello)))
    };
    run_as(plan, test, home, prepare).await
}

/// As [`run`]. `prepare` returns the `start` message and the adapted scenario, or why it is unsupported.
///
/// # Errors
/// As [`run`].
pub async fn run_as(
    plan: &Plan,
    Test { scenario, reference }: &Test,
    home: &Path,
    prepare: impl FnOnce(&Hello) -> Result<(Start, SharedScenario), String>,
) -> Result<Attempt, StartError> {
    let permit = plan.limiter.acquire().await;
    let began = StartTimes {
        at: clock(),
        held_up: Load::of_this_thread().held_up,
    };
    let mut attempt = Attempt::not_run(scenario, Outcome::HarnessError, String::new());
    let listening = match ServeOptions::for_scenario(&scenario.server).bind().await {
        Ok(listening) => listening,
        Err(error) => {
            attempt.why = format!("the server cannot listen: {error}");
            return Ok(attempt);
        }
    };
    let kubeconfig = listening.kubeconfig(Credentials::None, scenario.target.namespace.as_deref());
    let mut child = Child::start(&plan.command, &kubeconfig, home)?;
    permit.started_as(child.id());
    let mailbox = child.mailbox().clone();
    let fault = |why: String| mailbox.with(|session| session.fail(why));

    let hello = match read_hello(&mut child, plan.limits).await {
        Some(hello) => hello,
        None => return Ok(finish(attempt, child, began).await),
    };
    attempt.hello = Some(hello.clone());
    let (start, adapted) = match prepare(&hello) {
        Ok(prepare) => prepare,
        Err(why) => {
            if let Err(why) = stop(&mut child, plan.limits).await {
                fault(why);
            }
            (attempt.outcome, attempt.why) = (Outcome::Unsupported, why);
            return Ok(finish(attempt, child, began).await);
        }
    };
    attempt.scenario = adapted.clone();

    let timeouts = Timeouts::of(&adapted, *reference, plan.timeout, plan.timeout * 2 / 3);
    let core = InOrder {
        core: Server::with_limits(adapted.clone(), plan.seed, server_limits(timeouts.total)),
        mailbox: mailbox.clone(),
    };
    let served = Served::start(listening, core);
    let edge = served.edge();
    child.send(&Command::Start(Box::new(start))).await;
    let over = drive(&mut child, edge, &adapted, timeouts).await;
    if let RunResult::Complete = over
        && hello.caps.contains(&Capability::Cache)
        && mailbox.with(|session| session.fault().is_none() && !session.has_ended())
    {
        attempt.dump = dump(&mut child, plan.limits).await;
    }
    let was_closed = matches!(over, RunResult::Complete)
        && hello.caps.contains(&Capability::Close)
        && mailbox.with(|session| session.fault().is_none())
        && close(&mut child, edge, plan.limits).await;
    match over {
        RunResult::Complete | RunResult::Hang(_) | RunResult::Cut(_) => {
            if let Err(why) = stop(&mut child, plan.limits).await {
                fault(why);
            }
        }
        RunResult::Crash | RunResult::Fault => {
            child.end(Duration::ZERO).await;
        }
    }
    attempt.records = if was_closed {
        served.end().await
    } else {
        edge.stop_requested();
        if timeout(CLOSING, edge.deserted()).await.is_err() {
            edge.closing_is_over();
        }
        end_at_run_end(served.end().await, &over)
    };
    attempt.cut = matches!(over, RunResult::Cut(_));
    let attempt = judge(attempt, plan.edition).await;
    Ok(finish(attempt, child, began).await)
}

/// Starts the adapter with a kubeconfig for a socket that accepts connections and sends no responses.
pub(super) async fn start_with_idle_server(
    plan: &Plan,
    home: &Path,
) -> Result<(Listening, Child), StartError> {
    let listening = ServeOptions::for_scenario(&ServerSettings::default())
        .bind()
        .await
        .map_err(std::io::Error::other)?;
    let child = Child::start(
        &plan.command,
        &listening.kubeconfig(Credentials::None, None),
        home,
    )?;
    Ok((listening, child))
}

/// Waits for `hello`. Records a fault of the adapter if there is none.
pub(super) async fn read_hello(child: &mut Child, limits: TimeLimits) -> Option<Hello> {
    let came = child
        .until(limits.hello, |session| session.hello().is_some())
        .await;
    let mailbox = child.mailbox().clone();
    if !came {
        let why = match timeout(Duration::ZERO, child.next()).await {
            Ok(ChildEvent::Exited(status)) => {
                format!("the adapter {} before it printed `hello`", exit_words(status))
            }
            Ok(ChildEvent::Output) | Err(_) => format!(
                "the adapter printed no `hello` within {}; print it first, and flush it",
                judge::words::span(limits.hello.as_millis() as u64)
            ),
        };
        mailbox.with(|session| session.fail(why));
        child.end(Duration::ZERO).await;
    }
    mailbox.with(|session| session.hello().cloned().filter(|_| session.fault().is_none()))
}

/// Sends `stop`, closes standard input, and waits for the exit.
///
/// # Errors
/// The adapter did not exit with status 0.
pub(super) async fn stop(child: &mut Child, limits: TimeLimits) -> Result<(), String> {
    child.send(&Command::Stop).await;
    child.close_input();
    match child.end(limits.stop).await {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!(
            "the adapter {} after `stop`; exit with status 0",
            exit_words(Some(status))
        )),
        None => Err(format!(
            "the adapter did not exit within {} of `stop`, and was killed; exit at `stop` and at the end of standard input",
            judge::words::span(limits.stop.as_millis() as u64)
        )),
    }
}

/// Returns the content of the library's cache. Records a fault of the adapter if it does not respond.
async fn dump(child: &mut Child, limits: TimeLimits) -> Option<Vec<ReportedObject>> {
    const ID: u64 = 1;
    child.send(&Command::Dump { id: ID }).await;
    let answered = |session: &Session| session.has_dump() || session.unsupported().is_some();
    child.until(limits.answer, answered).await;
    child.mailbox().with(|session| match session.take_dump() {
        Some((ID, items)) => Some(items),
        None if session.unsupported().is_some() => None,
        Some((id, _)) => {
            session.fail(format!("the adapter answered `dump` {ID} with `id` {id}"));
            None
        }
        None => {
            session.fail(
                "the adapter declares `cache` and did not answer `dump`; print `dump` with its `id`, or remove the capability"
                    .to_owned(),
            );
            None
        }
    })
}

/// Stops the library but not its process, and waits until its connections are closed or should be. Returns false if the
/// adapter is at fault.
async fn close(child: &mut Child, edge: &Edge, limits: TimeLimits) -> bool {
    let mailbox = child.mailbox().clone();
    mailbox.with(Session::close);
    child.send(&Command::Close).await;
    if !child.until(limits.answer, Session::is_closed).await {
        mailbox.with(|session| {
            session.fail(
                "the adapter declares `close` and did not print `closed`; stop the library and print it, or remove the capability"
                    .to_owned(),
            );
        });
        return false;
    }
    // Events printed before the stop are recorded before it.
    edge.steer(|_, _| ());
    edge.stop_requested();
    if timeout(CLOSING, edge.deserted()).await.is_err() {
        edge.closing_is_over();
    }
    edge.steer(|_, _| ());
    true
}

/// Passes the adapter's output to the server until the run is over.
async fn drive(child: &mut Child, edge: &Edge, scenario: &Scenario, timeouts: Timeouts) -> RunResult {
    let mailbox = child.mailbox().clone();
    let began = clock();
    let mut check_at = timeouts.idle.min(timeouts.total);
    let mut taken = 0;
    // Time waited for a processor: in total, and until the client's last activity.
    let held_up = |child: &mut Child, before: Duration| child.held_up().saturating_sub(before);
    let before = child.held_up();
    let mut at_activity = (Duration::ZERO, Duration::ZERO);
    if scenario.client.consumer_delay_ms > 0 {
        // The adapter was started paused, so that the slow consumer gets every event.
        let events = Some(scenario.client.consumer_delay_event.unwrap_or(1));
        child.send(&Command::Resume { events }).await;
    }
    loop {
        let moment = tokio::select! {
            biased;
            () = edge.finished() => return RunResult::Complete,
            moment = child.next() => Some(moment),
            _ = timeout_at(began + check_at, std::future::pending::<()>()) => None,
        };
        let Some(moment) = moment else {
            let waiting = edge.steer(|server, _| server.waiting_step()).flatten();
            let now = edge.elapsed();
            let activity = edge.read_records(0, |records| last_activity(scenario, records));
            let total = held_up(child, before);
            let since_activity = total.saturating_sub(at_activity.1);
            if activity > at_activity.0 {
                at_activity = (activity, total);
            }
            match timeouts.check(
                now,
                activity,
                CpuWait {
                    total,
                    since_activity,
                },
            ) {
                TimeoutCheck::Hang(quiet) => return RunResult::Hang(hang_end(waiting, quiet)),
                TimeoutCheck::TimeUp => {
                    // After the last step, too, missing events prove nothing yet.
                    let (step, waiting_for) =
                        waiting.unwrap_or_else(|| (scenario.steps.len(), final_wait(scenario).to_owned()));
                    return RunResult::Cut(RunEnd::Stuck {
                        step,
                        waited_ms: now.as_millis() as u64,
                        waiting_for,
                    });
                }
                TimeoutCheck::Again(at) => check_at = at,
            }
            continue;
        };
        // The server reads the mailbox before any input.
        edge.steer(|_, _| ());
        if mailbox.with(|session| session.fault().is_some() || session.unsupported().is_some()) {
            return RunResult::Fault;
        }
        if let ChildEvent::Exited(status) = moment {
            let message = format!("the process {} before `stop`", exit_words(status));
            let message = with_last_line(message, &child.last_errors().await);
            edge.report(Report::Crashed { message });
            edge.finished().await;
            return RunResult::Crash;
        }
        let objects = mailbox.with(|session| session.objects());
        if is_delayed(scenario, taken, objects) {
            let delay = Duration::from_millis(scenario.client.consumer_delay_ms);
            // The run may end before the delay is over.
            let _ = timeout(delay, edge.finished()).await;
            let events = scenario.client.consumer_delay_event.is_none().then_some(1);
            child.send(&Command::Resume { events }).await;
        }
        taken = objects;
    }
}

/// Returns what a run waits for after its last step.
fn final_wait(scenario: &Scenario) -> &'static str {
    match scenario.client.contract {
        Contract::Informer => "the client to be in step",
        Contract::Watch | Contract::List => "the client to report its end",
    }
}

/// Returns true if the consumer is slow for one of the object events from `before` to `after`.
fn is_delayed(scenario: &Scenario, before: u64, after: u64) -> bool {
    let client = &scenario.client;
    let event = client.consumer_delay_event.map(u64::from);
    client.consumer_delay_ms > 0
        && after > before
        && event.is_none_or(|event| before < event && event <= after)
}

/// Judges an attempt. Faults of the adapter are checked later. Not in this thread: judging a long trace would block the servers
/// of other tests.
async fn judge(mut attempt: Attempt, edition: Option<&'static Edition>) -> Attempt {
    let judged = tokio::task::spawn_blocking(move || {
        let Assessment {
            outcome,
            why,
            verdict,
        } = assess(
            &attempt.scenario,
            &attempt.records,
            attempt.dump.as_deref(),
            attempt.cut,
            edition,
        );
        (attempt.outcome, attempt.why, attempt.verdict) = (outcome, why, verdict);
        attempt
    });
    judged
        .await
        .expect("proven invariant: judging neither panics nor is cancelled while it is awaited")
}

/// Adds the data of the session. A fault of the adapter overrides the outcome.
async fn finish(mut attempt: Attempt, mut child: Child, began: StartTimes) -> Attempt {
    let server = Load::of_this_thread().held_up.saturating_sub(began.held_up);
    attempt.held_up = child.held_up() + server;
    attempt.ran = child.load().ran;
    attempt.errors = child.last_errors().await;
    child.mailbox().with(|session| {
        attempt.hello = session.hello().cloned();
        attempt.stray = session.stray_output().words();
        attempt.received = session.take_received();
        let refused = session.unsupported().map(|(what, why)| {
            format!("the adapter answered `unsupported` ({what}: {why}) to what its `hello` declares")
        });
        if let Some(fault) = session.fault().map(str::to_owned).or(refused) {
            // A failure of the server can cause a fault of the adapter, not vice versa.
            let is_ours = attempt.verdict.is_some() && attempt.outcome == Outcome::HarnessError;
            if !is_ours {
                (attempt.outcome, attempt.why, attempt.verdict) = (Outcome::AdapterError, fault, None);
            }
        }
    });
    attempt.took = began.at.elapsed();
    attempt
}

/// Removes the records after the end of the run. If the server did not end it, appends the end.
fn end_at_run_end(mut records: Vec<Record>, over: &RunResult) -> Vec<Record> {
    let end = records
        .iter()
        .position(|record| matches!(record.what, What::RunEnded(_)));
    if let Some(end) = end {
        records.truncate(end + 1);
        return records;
    }
    let (seq, at) = records
        .last()
        .map_or((0, Duration::ZERO), |last| (last.seq + 1, last.at));
    let end = match over {
        RunResult::Hang(end) | RunResult::Cut(end) => end.clone(),
        RunResult::Complete | RunResult::Crash | RunResult::Fault => RunEnd::NotConverged {
            waited_ms: at.as_millis() as u64,
        },
    };
    records.push(Record {
        seq,
        at,
        what: What::RunEnded(end),
    });
    records
}

/// Returns the limits of a server for a run of at most `longest`.
fn server_limits(longest: Duration) -> Limits {
    timeouts::disable(Limits {
        settle: SETTLE,
        rewatch: REWATCH,
        requests: REQUESTS_MAX + REQUESTS_PER_SECOND * longest.as_secs(),
        requests_per_second: 0,
        ..Limits::live()
    })
}

/// A server that reads the adapter's output before each input: requests and events arrive on different channels, and an event
/// must be recorded before a request that was sent after it.
struct InOrder {
    core: Server,
    mailbox: Mailbox,
}

impl Core for InOrder {
    fn accepts(&mut self, now: Duration) -> bool {
        self.core.accepts(now)
    }

    fn refused_until(&self) -> Duration {
        self.core.refused_until()
    }

    fn handle(&mut self, now: Duration, input: Input) {
        self.mailbox.read();
        while let Some(report) = self.mailbox.with(|session| session.poll_report()) {
            self.core.handle(now, Input::Report(report));
        }
        self.core.handle(now, input);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.core.poll_output()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        self.core.poll_timeout()
    }

    fn finished(&self) -> Option<&RunEnd> {
        self.core.finished()
    }

    fn records(&self) -> &[Record] {
        self.core.records()
    }

    fn into_records(self: Box<Self>) -> Vec<Record> {
        self.core.into_records()
    }

    fn as_server(&mut self) -> Option<&mut Server> {
        Some(&mut self.core)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a driver is an edge, and measures how long a test takes"
)]
fn clock() -> Instant {
    Instant::now()
}
