//! Plays one scenario with an adapter, over sockets and in real time, and judges it as clients in this process are judged:
//! the adapter's events become reports in the trace, and the verdict is read off the trace.
//!
//! A scenario cannot notice which kind of client plays it.

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

use super::child::{Child, Mailbox, Moment, StartError, TimeLimits, exit_words, with_last_line};
use super::crew::Crew;
use super::fit;
use super::message::{Capability, Command, Hello, Start};
use super::outcome::Outcome;
use super::patience::{self, Delay, Look, Patience, hung, last_sign};
use super::session::Session;
use super::weigh::{Weighed, weigh};
use crate::process::load::Load;
use crate::served::Served;

/// How long connections may take to close once the adapter is gone.
const CLOSING: Duration = Duration::from_secs(2);

/// How long a run goes on after convergence, so that what must not happen could.
const SETTLE: Duration = Duration::from_millis(500);

/// Requests after which a run is over, and more for each second that it may take. A client that keeps to the budget of INV-16
/// (1.5 a second) never sends so many, and one in a loop does on a slow machine too: the outcome must not depend on it.
const REQUESTS_MAX: u64 = 500;
const REQUESTS_PER_SECOND: u64 = 2;

/// Longest delay by a busy machine that is no reason to repeat a failed test: half of the 2 s in which a client has to close
/// what it does not read any more.
const HELD_UP_MAX: Duration = Duration::from_secs(1);

/// How long a run goes on after convergence while the client has no watch open: longer than the delays of clients, which a busy
/// machine prolongs.
const REWATCH: Duration = Duration::from_secs(10);

/// How tests are played.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The adapter's command, with its arguments.
    pub command: Vec<String>,
    /// What the adapter may take for its part.
    pub limits: TimeLimits,
    /// Longest time of a test, beside what its steps take and grant and what our watcher needs for it. A step that waits while
    /// the client does nothing for two thirds of it is a hang.
    pub timeout: Duration,
    /// Seed for all randomness.
    pub seed: u64,
    /// What counts; `None`: everything.
    pub edition: Option<&'static Edition>,
    /// The adapters that run beside each other.
    pub crew: Crew,
}

/// A scenario to play.
#[derive(Debug, Clone)]
pub struct Test {
    /// What is played.
    pub scenario: SharedScenario,
    /// How long our watcher needs for it by its own delays: other clients get more. Zero: unknown.
    pub reference: Duration,
}

impl Test {
    /// Time that it takes by its steps, or by the delays of our watcher.
    pub fn lasts(&self) -> Duration {
        takes(&self.scenario).max(self.reference)
    }
}

/// One test, played once.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The scenario as it was played.
    pub scenario: SharedScenario,
    /// How it came out.
    pub outcome: Outcome,
    /// Why, in a sentence; empty if it passed.
    pub why: String,
    /// What the trace proves, where it was judged.
    pub verdict: Option<Verdict>,
    /// The trace, up to the end of the run.
    pub records: Vec<Record>,
    /// The adapter's introduction.
    pub hello: Option<Hello>,
    /// The time limit ended it.
    pub cut: bool,
    /// The content of the library's cache at the end, where the adapter reports it.
    pub dump: Option<Vec<ReportedObject>>,
    /// What the adapter printed that is no message.
    pub stray: Option<String>,
    /// The adapter's standard output as it was received, up to 16 MiB.
    pub received: Vec<u8>,
    /// The last lines of standard error.
    pub errors: Vec<String>,
    /// Real time it took.
    pub took: Duration,
    /// Time that the adapter and its server waited for a processor.
    pub held_up: Duration,
    /// Processor time of the adapter.
    pub ran: Duration,
}

/// How a run came to its end.
enum Over {
    /// The server ended it.
    Run,
    /// The process exited, and was recorded as crashed.
    Crash,
    /// The adapter is at fault; the session has the reason.
    Fault,
    /// A step waited, and the client did nothing for too long.
    Hang(RunEnd),
    /// The time limit passed, while the client was still active.
    Cut(RunEnd),
}

/// When an attempt began, and how long this thread, which serves, had waited for a processor by then.
#[derive(Clone, Copy)]
struct Began {
    at: Instant,
    held_up: Duration,
}

impl Attempt {
    /// A test that is not played, with the outcome and the reason.
    pub fn unplayed(scenario: &SharedScenario, outcome: Outcome, why: String) -> Self {
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

    /// Did a busy machine delay the client for so long that what came late proves nothing?
    pub fn was_held_up(&self) -> bool {
        self.held_up >= HELD_UP_MAX
    }
}

/// Starts the adapter and ends its input: it introduces itself, and exits. Gives the introduction, or what is wrong with it.
///
/// # Errors
/// As [`play`].
pub async fn probe(plan: &Plan, home: &Path) -> Result<Result<Hello, String>, StartError> {
    let (_listening, mut child) = started_beside_a_server(plan, home).await?;
    let hello = introduced(&mut child, plan.limits).await;
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

/// Plays a test with a new process of the adapter, in `home`, a directory that is created and removed.
///
/// # Errors
/// The command cannot be started, or the system refuses a directory or a pipe.
pub async fn play(plan: &Plan, test: &Test, home: &Path) -> Result<Attempt, StartError> {
    let scenario = &test.scenario;
    let suited = |hello: &Hello| {
        let start = fit::start(scenario, hello)?;
        Ok((start, fit::staged(scenario, hello)))
    };
    play_as(plan, test, home, suited).await
}

/// The same, where `suited` has what is sent, and the scenario as it is played; or why the adapter cannot play it.
///
/// # Errors
/// As [`play`].
pub async fn play_as(
    plan: &Plan,
    Test { scenario, reference }: &Test,
    home: &Path,
    suited: impl FnOnce(&Hello) -> Result<(Start, SharedScenario), String>,
) -> Result<Attempt, StartError> {
    let seat = plan.crew.admit().await;
    let began = Began {
        at: clock(),
        held_up: Load::of_this_thread().held_up,
    };
    let mut attempt = Attempt::unplayed(scenario, Outcome::HarnessError, String::new());
    let listening = match ServeOptions::for_scenario(&scenario.server).bind().await {
        Ok(listening) => listening,
        Err(error) => {
            attempt.why = format!("the server cannot listen: {error}");
            return Ok(attempt);
        }
    };
    let kubeconfig = listening.kubeconfig(Credentials::None, scenario.target.namespace.as_deref());
    let mut child = Child::start(&plan.command, &kubeconfig, home)?;
    seat.is(child.id());
    let mailbox = child.mailbox().clone();
    let fault = |why: String| mailbox.with(|session| session.at_fault(why));

    let hello = match introduced(&mut child, plan.limits).await {
        Some(hello) => hello,
        None => return Ok(finished(attempt, child, began).await),
    };
    attempt.hello = Some(hello.clone());
    let (start, staged) = match suited(&hello) {
        Ok(suited) => suited,
        Err(why) => {
            if let Err(why) = stopped(&mut child, plan.limits).await {
                fault(why);
            }
            (attempt.outcome, attempt.why) = (Outcome::Unsupported, why);
            return Ok(finished(attempt, child, began).await);
        }
    };
    attempt.scenario = staged.clone();

    let patience = Patience::of(&staged, *reference, plan.timeout, plan.timeout * 2 / 3);
    let core = Attentive {
        core: Server::with_limits(staged.clone(), plan.seed, server_limits(patience.whole)),
        mailbox: mailbox.clone(),
    };
    let served = Served::start(listening, core);
    let edge = served.edge();
    child.send(&Command::Start(Box::new(start))).await;
    let over = run(&mut child, edge, &staged, patience).await;
    if let Over::Run = over
        && hello.caps.contains(&Capability::Cache)
        && mailbox.with(|session| session.fault().is_none() && !session.has_ended())
    {
        attempt.dump = dumped(&mut child, plan.limits).await;
    }
    let was_closed = matches!(over, Over::Run)
        && hello.caps.contains(&Capability::Close)
        && mailbox.with(|session| session.fault().is_none())
        && closed(&mut child, edge, plan.limits).await;
    match over {
        Over::Run | Over::Hang(_) | Over::Cut(_) => {
            if let Err(why) = stopped(&mut child, plan.limits).await {
                fault(why);
            }
        }
        Over::Crash | Over::Fault => {
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
        up_to_the_end(served.end().await, &over)
    };
    attempt.cut = matches!(over, Over::Cut(_));
    let attempt = weighed(attempt, plan.edition).await;
    Ok(finished(attempt, child, began).await)
}

/// Starts the adapter beside a socket that is listened on and answers nothing.
pub(super) async fn started_beside_a_server(
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

/// Waits for `hello`; without it the adapter is at fault.
pub(super) async fn introduced(child: &mut Child, limits: TimeLimits) -> Option<Hello> {
    let came = child
        .until(limits.hello, |session| session.hello().is_some())
        .await;
    let mailbox = child.mailbox().clone();
    if !came {
        let why = match timeout(Duration::ZERO, child.next()).await {
            Ok(Moment::Exited(status)) => {
                format!("the adapter {} before it printed `hello`", exit_words(status))
            }
            Ok(Moment::Heard) | Err(_) => format!(
                "the adapter printed no `hello` within {}; print it first, and flush it",
                judge::words::span(limits.hello.as_millis() as u64)
            ),
        };
        mailbox.with(|session| session.at_fault(why));
        child.end(Duration::ZERO).await;
    }
    mailbox.with(|session| session.hello().cloned().filter(|_| session.fault().is_none()))
}

/// Sends `stop`, closes standard input, and waits for the exit.
///
/// # Errors
/// How the adapter ended in place of exiting with status 0.
pub(super) async fn stopped(child: &mut Child, limits: TimeLimits) -> Result<(), String> {
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

/// The content of the library's cache; without an answer the adapter is at fault.
async fn dumped(child: &mut Child, limits: TimeLimits) -> Option<Vec<ReportedObject>> {
    const ID: u64 = 1;
    child.send(&Command::Dump { id: ID }).await;
    let answered = |session: &Session| session.has_dump() || session.unsupported().is_some();
    child.until(limits.answer, answered).await;
    child.mailbox().with(|session| match session.take_dump() {
        Some((ID, items)) => Some(items),
        None if session.unsupported().is_some() => None,
        Some((id, _)) => {
            session.at_fault(format!("the adapter answered `dump` {ID} with `id` {id}"));
            None
        }
        None => {
            session.at_fault(
                "the adapter declares `cache` and did not answer `dump`; print `dump` with its `id`, or remove the capability"
                    .to_owned(),
            );
            None
        }
    })
}

/// Has the library stopped while its process lives, and waits until its connections are closed or should have been. False: the
/// adapter is at fault.
async fn closed(child: &mut Child, edge: &Edge, limits: TimeLimits) -> bool {
    let mailbox = child.mailbox().clone();
    mailbox.with(Session::close);
    child.send(&Command::Close).await;
    if !child.until(limits.answer, Session::is_closed).await {
        mailbox.with(|session| {
            session.at_fault(
                "the adapter declares `close` and did not print `closed`; stop the library and print it, or remove the capability"
                    .to_owned(),
            );
        });
        return false;
    }
    // What was printed before belongs before the stop.
    edge.steer(|_, _| ());
    edge.stop_requested();
    if timeout(CLOSING, edge.deserted()).await.is_err() {
        edge.closing_is_over();
    }
    edge.steer(|_, _| ());
    true
}

/// Hands in what the adapter prints until the run is over.
async fn run(child: &mut Child, edge: &Edge, scenario: &Scenario, patience: Patience) -> Over {
    let mailbox = child.mailbox().clone();
    let began = clock();
    let mut look = patience.silence.min(patience.whole);
    let mut taken = 0;
    // What the machine took from the client in all, and by its last sign.
    let held_up = |child: &mut Child, before: Duration| child.held_up().saturating_sub(before);
    let before = child.held_up();
    let mut by_sign = (Duration::ZERO, Duration::ZERO);
    if scenario.client.consumer_delay_ms > 0 {
        // The adapter was started in a pause, so that no event gets past the slow consumer.
        let events = Some(scenario.client.consumer_delay_event.unwrap_or(1));
        child.send(&Command::Resume { events }).await;
    }
    loop {
        let moment = tokio::select! {
            biased;
            () = edge.finished() => return Over::Run,
            moment = child.next() => Some(moment),
            _ = timeout_at(began + look, std::future::pending::<()>()) => None,
        };
        let Some(moment) = moment else {
            let waiting = edge.steer(|server, _| server.waiting_step()).flatten();
            let now = edge.elapsed();
            let sign = edge.read_records(0, last_sign);
            let in_all = held_up(child, before);
            let since = in_all.saturating_sub(by_sign.1);
            if sign > by_sign.0 {
                by_sign = (sign, in_all);
            }
            match patience.look(now, sign, Delay { in_all, since }) {
                Look::Hang(quiet) => return Over::Hang(hung(waiting, quiet)),
                Look::Cut => {
                    // Behind the last step, too, what is merely missing by now proves nothing.
                    let (step, waiting_for) =
                        waiting.unwrap_or_else(|| (scenario.steps.len(), awaited(scenario).to_owned()));
                    return Over::Cut(RunEnd::Stuck {
                        step,
                        waited_ms: now.as_millis() as u64,
                        waiting_for,
                    });
                }
                Look::Again(at) => look = at,
            }
            continue;
        };
        // The server reads the mailbox at whatever is handed in.
        edge.steer(|_, _| ());
        if mailbox.with(|session| session.fault().is_some() || session.unsupported().is_some()) {
            return Over::Fault;
        }
        if let Moment::Exited(status) = moment {
            let message = format!("the process {} before `stop`", exit_words(status));
            let message = with_last_line(message, &child.last_errors().await);
            edge.report(Report::Crashed { message });
            edge.finished().await;
            return Over::Crash;
        }
        let objects = mailbox.with(|session| session.objects());
        if is_slow(scenario, taken, objects) {
            let delay = Duration::from_millis(scenario.client.consumer_delay_ms);
            // Over before the delay is: the run ended.
            let _ = timeout(delay, edge.finished()).await;
            let events = scenario.client.consumer_delay_event.is_none().then_some(1);
            child.send(&Command::Resume { events }).await;
        }
        taken = objects;
    }
}

/// What a run waits for behind its last step.
fn awaited(scenario: &Scenario) -> &'static str {
    match scenario.client.contract {
        Contract::Informer => "the client to be in step",
        Contract::Watch | Contract::List => "the client to report its end",
    }
}

/// Does the consumer take its time over one of the events about objects from `before` to `after`?
fn is_slow(scenario: &Scenario, before: u64, after: u64) -> bool {
    let client = &scenario.client;
    let event = client.consumer_delay_event.map(u64::from);
    client.consumer_delay_ms > 0
        && after > before
        && event.is_none_or(|event| before < event && event <= after)
}

/// Judges an attempt, unless the adapter is at fault, which is looked at last. Not in this thread: a long trace would keep the
/// servers of other tests from answering.
async fn weighed(mut attempt: Attempt, edition: Option<&'static Edition>) -> Attempt {
    let judged = tokio::task::spawn_blocking(move || {
        let Weighed {
            outcome,
            why,
            verdict,
        } = weigh(
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

/// Adds what the session knows of the adapter: its fault comes before everything else.
async fn finished(mut attempt: Attempt, mut child: Child, began: Began) -> Attempt {
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
            // A server that broke explains a fault of the adapter, and not the other way round.
            let is_ours = attempt.verdict.is_some() && attempt.outcome == Outcome::HarnessError;
            if !is_ours {
                (attempt.outcome, attempt.why, attempt.verdict) = (Outcome::AdapterError, fault, None);
            }
        }
    });
    attempt.took = began.at.elapsed();
    attempt
}

/// Records up to the end of the run: what the client does between that and its stop is nobody's concern. A run that was cut
/// gets its end here.
fn up_to_the_end(mut records: Vec<Record>, over: &Over) -> Vec<Record> {
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
        Over::Hang(end) | Over::Cut(end) => end.clone(),
        Over::Run | Over::Crash | Over::Fault => RunEnd::NotConverged {
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

/// Limits of a server whose run takes `longest` at most.
fn server_limits(longest: Duration) -> Limits {
    patience::limits(Limits {
        settle: SETTLE,
        rewatch: REWATCH,
        requests: REQUESTS_MAX + REQUESTS_PER_SECOND * longest.as_secs(),
        ..Limits::live()
    })
}

/// A server that first takes what the adapter printed before whatever is handed in: the two come by different ways, and a
/// request must not be recorded before the event that was printed before it was sent.
struct Attentive {
    core: Server,
    mailbox: Mailbox,
}

impl Core for Attentive {
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
    reason = "a driver is an edge, and reports how long a test took"
)]
fn clock() -> Instant {
    Instant::now()
}
