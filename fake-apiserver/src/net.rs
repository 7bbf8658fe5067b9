//! I/O driver: carries bytes between connections and a [`Server`], and reads the clock for it.
//!
//! [`Edge`] owns the server. Inputs are numbered, timed and handled under one lock, so that the trace is in order of arrival;
//! outputs are queued per response before the lock is released. Connections pull from these queues: `answer` makes a response
//! body, `streamed` sends watches, `wire` writes every piece separately and carries out
//! [`Ending`](trace::fault::Ending)s, [`serve`] accepts sockets, and `delivery` writes to idle connections without waking
//! their tasks. `hooks` calls webhooks, and `upstream` forwards requests.
//!
//! This module depends on neither scenarios nor the meaning of the bytes.

mod answer;
mod connection;
mod core;
mod deadline;
mod delivery;
mod guard;
mod hooks;
mod http1;
mod http2;
mod in_process;
mod kubeconfig;
mod open;
mod pending;
mod pieces;
pub mod pipe;
mod serve;
mod standalone;
mod state;
mod steering;
mod streamed;
mod ticket;
pub mod tls;
mod upstream;
mod websocket;
mod wire;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use trace::record::{ConnId, Record, Replica, RunEnd, Side, StreamId, What};
use trace::report::Report;

pub use self::connection::{ConnectionSettings, serve_connection};
pub use self::core::Core;
use self::delivery::Deliveries;
pub use self::guard::{Guard, is_this_machine};
pub use self::hooks::Webhooks;
pub use self::in_process::{Body as InProcessBody, Broken, InProcess, Protocol, SendError};
pub use self::kubeconfig::{Credentials, Kubeconfig};
pub(crate) use self::pending::{Head, Piece};
use self::pending::{PendingResponse, Waiting};
pub use self::serve::{ListenerLimits, Listening, ServeError, ServeOptions, TlsOptions, serve};
pub use self::standalone::Standalone;
use self::state::{Dates, Outside, State};
pub use self::steering::{SteerError, TimedOut};
use self::ticket::{Leaving, Next, Ticket};
pub use self::upstream::{Upstream, UpstreamBody};
use self::wire::Flow;
pub use self::wire::Transport;
use crate::api::{HttpRequest, User};
use crate::server::{CallId, Control, HookCall, Input, MemoryView, Server};

/// Most ticks at one instant: a server that requests more is broken.
const TICKS_AT_ONE_INSTANT_MAX: u32 = 10_000;

/// A running server: the only way for connections, clients and time to reach it. Cheap to clone.
#[derive(Clone)]
pub struct Edge {
    shared: Arc<Shared>,
    /// Replica of connections accepted through this handle.
    replica: Replica,
}

struct Shared {
    start: Instant,
    runtime: Handle,
    state: Mutex<State>,
    /// The next deadline moved to an earlier time.
    sooner: Notify,
    /// The run is over, or the last connection was closed.
    milestone: Notify,
    /// An input was handled.
    stirred: Notify,
    /// Which webhooks are called.
    webhooks: Webhooks,
    /// Calls of webhooks at a time.
    turns: Semaphore,
    /// Where forwarded requests go.
    upstream: Option<Arc<dyn Upstream>>,
    /// Connections are refused from now on.
    refusing: Notify,
}

impl Edge {
    /// Runs `server`, whose time starts now. Call inside a tokio runtime, and poll [`Edge::keep_time`] for as long as the server
    /// runs. Calls of webhooks fail, as if nothing listened there.
    pub fn new(core: impl Core + 'static) -> Self {
        Self::with_webhooks(core, Webhooks::None)
    }

    /// The same, with calls of webhooks. Their runtime must have I/O enabled.
    pub fn with_webhooks(core: impl Core + 'static, webhooks: Webhooks) -> Self {
        Self::with_outside(core, webhooks, None)
    }

    /// The same for a server that forwards ([`Server::forwarding`]).
    pub fn with_upstream(core: impl Core + 'static, upstream: Arc<dyn Upstream>) -> Self {
        Self::with_outside(core, Webhooks::None, Some(upstream))
    }

    fn with_outside(
        core: impl Core + 'static,
        webhooks: Webhooks,
        upstream: Option<Arc<dyn Upstream>>,
    ) -> Self {
        let state = State {
            core: Some(Box::new(core)),
            broken: None,
            finished: false,
            refused_until: Duration::ZERO,
            conns: 0,
            conns_open: 0,
            streams: 0,
            flows: BTreeMap::new(),
            answers: BTreeMap::new(),
            held: 0,
            deliveries: Deliveries::default(),
            dates: Dates::default(),
            armed: None,
        };
        let edge = Self {
            shared: Arc::new(Shared {
                start: clock(),
                runtime: Handle::current(),
                state: Mutex::new(state),
                sooner: Notify::new(),
                milestone: Notify::new(),
                stirred: Notify::new(),
                refusing: Notify::new(),
                webhooks,
                turns: Semaphore::new(hooks::HOOK_CALLS_MAX),
                upstream,
            }),
            replica: Replica::Primary,
        };
        // Steps without a trigger are due before the first connection.
        edge.hand_in(|_, _| Input::Tick);
        edge
    }

    /// Returns a handle of the same server for connections to another replica.
    #[must_use]
    pub fn at(&self, replica: Replica) -> Self {
        Self {
            replica,
            ..self.clone()
        }
    }

    /// Time since the server started: virtual if tokio's clock is paused.
    pub fn elapsed(&self) -> Duration {
        clock().saturating_duration_since(self.shared.start)
    }

    /// Opens a connection. Returns its number, or `None` while the server refuses connections.
    pub fn accept(&self) -> Option<ConnId> {
        self.accept_from(None)
    }

    /// The same with the remote port.
    pub fn accept_from(&self, peer: Option<u16>) -> Option<ConnId> {
        let replica = self.replica;
        let mut number = None;
        self.hand_in(|state, now| {
            // A refusal is recorded and may end the run, so the server gets a turn.
            if !state.core.as_mut().is_some_and(|core| core.accepts(now)) {
                return Input::Tick;
            }
            state.conns += 1;
            state.conns_open += 1;
            let conn = ConnId(state.conns);
            number = Some(conn);
            Input::Connected { conn, replica, peer }
        });
        number
    }

    /// Time for which connections are still refused; `None`: they are accepted.
    pub(crate) fn refused_for(&self) -> Option<Duration> {
        let until = self.lock().refused_until;
        until.checked_sub(self.elapsed()).filter(|rest| !rest.is_zero())
    }

    /// Waits until that may have changed. For one listener at a time.
    pub(crate) async fn refusing(&self) {
        self.shared.refusing.notified().await;
    }

    /// The connection is served with this state.
    pub(crate) fn carries(&self, conn: ConnId, flow: &Arc<Flow>) {
        self.lock().flows.insert(conn, Arc::clone(flow));
    }

    /// A connection was closed.
    pub(crate) fn disconnected(&self, conn: ConnId, by: Side) {
        self.hand_in(|state, _| {
            state.conns_open -= 1;
            state.flows.remove(&conn);
            Input::Disconnected { conn, by }
        });
    }

    /// The client of a connection presented a certificate.
    pub(crate) fn authenticated(&self, conn: ConnId, user: User) {
        self.hand_in(|_, _| Input::Authenticated { conn, user });
    }

    /// Handles a complete request. Dropping the ticket before the end of the response aborts it.
    pub(crate) fn request(&self, conn: ConnId, request: HttpRequest, flow: Arc<Flow>) -> Ticket {
        let mut stream = StreamId(0);
        self.hand_in(|state, _| {
            state.streams += 1;
            stream = StreamId(state.streams);
            state
                .answers
                .insert(stream, Box::new(PendingResponse::new(flow.clone())));
            Input::Request {
                stream,
                conn,
                request,
            }
        });
        Ticket::new(self.clone(), stream, flow)
    }

    /// Handles a report of the client under test.
    pub fn report(&self, report: Report) {
        self.hand_in(|_, _| Input::Report(report));
    }

    /// Runs an operation outside of the Kubernetes API.
    pub fn control(&self, control: Control) {
        self.hand_in(|_, _| Input::Control(control));
    }

    /// Records that the process of the client exited by itself: with a code, or killed by a signal.
    pub fn client_exited(&self, code: Option<i32>, signal: Option<i32>) {
        self.hand_in(|_, _| Input::ClientExited { code, signal });
    }

    /// Records that the client was started again. `restart`: number of the restart, from 1.
    pub fn client_restarted(&self, restart: u32) {
        self.hand_in(|_, _| Input::ClientRestarted(restart));
    }

    /// Records that the client was asked to stop.
    pub fn stop_requested(&self) {
        self.hand_in(|_, _| Input::StopRequested);
    }

    /// Records how many connections the stopped client left open.
    pub fn closing_is_over(&self) {
        self.hand_in(|state, _| Input::LeftOpen(state.conns_open as u64));
    }

    /// Passes ticks to the server when they are due. Never completes.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge carries out the waiting that poll_timeout decides"
    )]
    pub async fn keep_time(&self) {
        let (mut last, mut ticks) = (Duration::MAX, 0);
        loop {
            let sooner = self.shared.sooner.notified();
            let due = {
                let mut state = self.lock();
                state.armed = state.core.as_ref().and_then(|core| core.poll_timeout());
                state.armed
            };
            let now = self.elapsed();
            match due {
                None => sooner.await,
                Some(due) if due > now => {
                    tokio::select! {
                        biased;
                        () = sooner => {}
                        () = tokio::time::sleep(due - now) => {}
                    }
                }
                Some(due) => {
                    ticks = if now == last { ticks + 1 } else { 1 };
                    last = now;
                    if ticks > TICKS_AT_ONE_INSTANT_MAX {
                        self.fail(format!(
                            "the server asks again and again to be woken at {due:?}, and it is {now:?}"
                        ));
                        return;
                    }
                    self.hand_in(|_, _| Input::Tick);
                }
            }
        }
    }

    /// Whether the run is over.
    pub fn is_finished(&self) -> bool {
        self.lock().finished
    }

    /// Waits until the run is over.
    pub async fn finished(&self) {
        self.milestone(|state| state.finished).await;
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.lock().conns_open
    }

    /// Waits until no connection is open.
    pub async fn deserted(&self) {
        self.milestone(|state| state.conns_open == 0).await;
    }

    /// Completes at the first input after this call.
    pub fn stirred(&self) -> Notified<'_> {
        self.shared.stirred.notified()
    }

    /// Calls `steer` with the server, and carries out the outputs. `None`: the server is gone, or it is not a [`Server`].
    pub fn steer<T>(&self, steer: impl FnOnce(&mut Server, Duration) -> T) -> Option<T> {
        let mut result = None;
        self.hand_in(|state, now| {
            let usable = state.broken.is_none();
            let core = state.core.as_mut().filter(|_| usable);
            let server = core.and_then(|core| core.as_server());
            result = server.map(|server| steer(server, now));
            Input::Tick
        });
        result
    }

    /// Memory of the server beside its objects; `None`: the server is gone, or it is not a [`Server`].
    pub fn memory(&self) -> Option<MemoryView> {
        let mut state = self.lock();
        let answers = state.held;
        let server = state.core.as_mut().and_then(|core| core.as_server())?;
        Some(MemoryView {
            answers,
            ..server.memory()
        })
    }

    /// Why the server is unusable: it panicked, or it requests deadlines in the past. `None`: it is usable.
    pub fn breakage(&self) -> Option<String> {
        self.lock().broken.clone()
    }

    /// Waits until the server is unusable.
    pub async fn broken(&self) {
        self.milestone(|state| state.broken.is_some()).await;
    }

    /// Whether events are being delivered to idle connections, which readers of the trace would delay.
    pub fn is_delivering(&self) -> bool {
        self.lock().deliveries.is_under_way()
    }

    /// Reads the trace from record `from` on, without trimmed records.
    pub fn read_records<T>(&self, from: u64, read: impl FnOnce(&[Record]) -> T) -> T {
        let state = self.lock();
        let records = state.core.as_ref().map_or(&[][..], |core| core.records());
        let first = records.partition_point(|record| record.seq < from);
        read(&records[first..])
    }

    /// Ends the run with a harness error: the server accepts no more input.
    pub fn fail(&self, message: String) {
        tracing::error!(%message, "the run cannot go on");
        let mut state = self.lock();
        state.broken.get_or_insert(message);
        state.finished = true;
        drop(state);
        self.shared.milestone.notify_waiters();
    }

    /// Takes the trace out. Later inputs are lost.
    pub fn take_records(&self) -> Vec<Record> {
        let now = self.elapsed();
        let (core, broken) = {
            let mut state = self.lock();
            (state.core.take(), state.broken.take())
        };
        let mut records = core.map(|core| core.into_records()).unwrap_or_default();
        if let Some(message) = broken {
            let what = What::RunEnded(RunEnd::Harness { message });
            records.push(Record {
                seq: records.last().map_or(0, |last| last.seq + 1),
                at: now,
                what,
            });
        }
        records
    }

    async fn milestone(&self, reached: impl Fn(&State) -> bool) {
        loop {
            let next = self.shared.milestone.notified();
            if reached(&self.lock()) {
                return;
            }
            next.await;
        }
    }

    /// Numbers, times and handles an input, queues the outputs, and wakes the connections concerned.
    fn hand_in(&self, what: impl FnOnce(&mut State, Duration) -> Input) {
        let (mut woken, mut outside) = (Vec::new(), Outside::default());
        let (sooner, milestone, delivers) = {
            let mut state = self.lock();
            let before = (state.finished, state.conns_open, state.broken.is_some());
            let refused_before = state.refused_until;
            // Read under the lock, so that times never go back.
            let now = self.elapsed();
            match catch_unwind(AssertUnwindSafe(|| what(&mut state, now))) {
                Ok(input) => state.handle(now, input, &mut woken, &mut outside),
                Err(panic) => state.broke("handling a control command", &*panic),
            }
            let due = state.core.as_ref().and_then(|core| core.poll_timeout());
            // A later deadline needs no wake-up: the timer checks it when it wakes.
            let sooner = due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed));
            if sooner {
                state.armed = due;
            }
            if state.refused_until != refused_before {
                self.shared.refusing.notify_one();
            }
            let after = (state.finished, state.conns_open, state.broken.is_some());
            (
                sooner,
                before != after && (state.finished || state.conns_open == 0 || state.broken.is_some()),
                state.deliveries.begin(),
            )
        };
        // Outside of the lock: waking may drop a task and its ticket.
        woken.into_iter().for_each(Waker::wake);
        self.call_hooks(outside.calls);
        self.forward(outside.errands);
        self.write_upstream(outside.writes);
        if delivers {
            let edge = self.clone();
            self.shared.runtime.spawn(async move {
                if let Err(panic) = AssertUnwindSafe(edge.clone().deliver()).catch_unwind().await {
                    edge.fail(format!("delivery panicked: {}", panic_text(&*panic)));
                }
            });
        }
        if sooner {
            self.shared.sooner.notify_one();
        }
        if milestone {
            self.shared.milestone.notify_waiters();
        }
        self.shared.stirred.notify_waiters();
    }

    /// Calls webhooks, each in a task.
    fn call_hooks(&self, calls: Vec<(CallId, HookCall)>) {
        for (id, call) in calls {
            let edge = self.clone();
            self.shared.runtime.spawn(async move {
                let outcome = hooks::call(edge.shared.webhooks, &edge.shared.turns, &call).await;
                edge.hand_in(|_, _| Input::HookAnswered { id, outcome });
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of the server is caught and stored as `broken`; nothing else panics under the lock.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge")
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no text)".to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge reads the clock, so that nothing behind it has to"
)]
fn clock() -> Instant {
    Instant::now()
}
