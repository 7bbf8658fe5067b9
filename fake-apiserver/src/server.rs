//! Sans-IO server: apiserver, scenario and rules behind one interface. No clock.
//!
//! The driver passes inputs with their time ([`Server::handle`]), drains the outputs ([`Server::poll_output`]) and waits
//! until the next deadline ([`Server::poll_timeout`]). Every decision is appended to the trace ([`Server::records`]) when it
//! takes effect.
//!
//! ```text
//!   Input ──▶ Server ─────requests────▶ ApiServer ──▶ Output
//!               ▲  │                        │
//!      step due │  └─deviations (act.rs)──▶ │
//!               │                           ▼
//!          Run, Rules ◀────records──────  trace
//! ```

mod act;
mod assumed;
mod control;
mod door;
mod goal;
mod names;
mod rules;
mod run;
mod setting;

use std::time::Duration;

pub use builtin_kinds::webhook::Outcome;
pub use door::Input;
pub use goal::Limits;
use rules::Rules;
pub use rules::{RuleRefused, RuleView, Ruled};
use run::Run;
use scenario::{InitialList, ServerSettings, SharedScenario};
use setting::setting;
use trace::content::Kept;
use trace::record::{ConnId, Record, RunEnd, Side, StreamId, What};
use trace::report::Report;

use crate::api::HttpRequest;
#[cfg(feature = "net")]
pub(crate) use crate::apiserver::ANSWER_BYTES_MAX;
use crate::apiserver::{ApiServer, Asked, Followed, Observer};
pub use crate::apiserver::{CallId, Control, MemoryView, Output, StreamView};
pub use crate::model::HookCall;

/// Fake apiserver without its sockets.
#[derive(Debug)]
pub struct Server {
    api: ApiServer,
    /// The run of a scenario; `None` for a standalone server.
    run: Option<Run>,
    rules: Rules,
}

impl Server {
    /// Returns a server that runs `scenario` in virtual time. `seed`: for all randomness (lifetimes of watches without
    /// `timeoutSeconds`, generated names).
    pub fn new(scenario: SharedScenario, seed: u64) -> Self {
        Self::with_limits(scenario, seed, Limits::sim())
    }

    /// The same with other limits.
    pub fn with_limits(scenario: SharedScenario, seed: u64, limits: Limits) -> Self {
        Self::recorded(scenario, seed, limits, None)
    }

    /// The same with a trace that keeps content.
    pub fn recorded(scenario: SharedScenario, seed: u64, limits: Limits, kept: Option<Kept>) -> Self {
        let settings = ServerSettings {
            rejected_streams_count: scenario.client.initial_list == InitialList::StreamingList,
            ..scenario.server.clone()
        };
        let mut api = ApiServer::new(settings, &setting(&scenario), seed);
        if let Some(kept) = kept {
            api.keep_content(kept);
        }
        Self::over(api, scenario, limits)
    }

    /// Returns the run of `scenario` on `api`.
    fn over(mut api: ApiServer, scenario: SharedScenario, limits: Limits) -> Self {
        let mut run = Run::new(scenario.clone(), limits);
        api.follow(Followed::of(&scenario, run.compares()));
        for manifest in &scenario.objects {
            api.apply(Duration::ZERO, manifest);
            if let Some(name) = &manifest.binds {
                let bound = run.bind(name, api.revision().to_string());
                api.record(Duration::ZERO, bound);
            }
            api.settle(Duration::ZERO);
        }
        api.mark_initial_state();
        let bound = run.bind("start", api.revision().to_string());
        api.record(Duration::ZERO, bound);
        let mut server = Self {
            api,
            run: Some(run),
            rules: Rules::default(),
        };
        server.advance(Duration::ZERO);
        server
    }

    /// Whether a connection is accepted at `now`. A refusal is recorded.
    pub fn accepts(&mut self, now: Duration) -> bool {
        let accepts = self.api.accepts(now);
        self.observe(now);
        accepts
    }

    /// Time until which connections are refused; in the past if they are accepted.
    pub fn refused_until(&self) -> Duration {
        self.api.refused_until()
    }

    /// Handles an input at time `now`. A time before that of the previous input counts as that.
    pub fn handle(&mut self, now: Duration, input: Input) {
        let now = self.api.begin_turn(now);
        match input {
            Input::Connected { conn, replica, peer } => self.api.connected(now, conn, replica, peer),
            Input::Authenticated { conn, user } => self.api.authenticated(conn, user),
            Input::Disconnected { conn, by } => self.api.disconnected(now, conn, by),
            Input::Request {
                stream,
                conn,
                request,
            } => self.request(now, stream, conn, request),
            Input::Flushed(stream) => self.api.flushed(stream),
            Input::Abandoned(stream) => self.api.broke_off(now, stream, Side::Client),
            Input::CutOff(stream) => self.api.broke_off(now, stream, Side::Server),
            Input::Report(report) => self.report(now, report),
            Input::ClientExited { code, signal } => self.api.record(now, What::ClientExited { code, signal }),
            Input::ClientRestarted(restart) => self.api.record(now, What::ClientRestarted { restart }),
            Input::StopRequested => self.api.record(now, What::StopRequested),
            Input::LeftOpen(connections) => self.api.record(now, What::LeftOpen { connections }),
            Input::Control(control) => self.api.control(now, control),
            Input::HookAnswered { id, outcome } => self.api.hook_answered(now, id, outcome),
            Input::Upstream { stream, part } => self.api.upstream_answered(now, stream, part),
            Input::UpstreamWritten { write, outcome } => self.api.upstream_written(now, write, outcome),
            Input::Tick => {}
        }
        self.advance(now);
    }

    /// Returns the next output. Call until `None` after every [`Server::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        self.api.poll_output()
    }

    /// Time at which to pass [`Input::Tick`], if no other input comes before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let now = self.api.now();
        let run = self.run.as_ref();
        let run = run.and_then(|run| run.poll_timeout(now, watches(&self.api)));
        let due = [self.api.poll_timeout(), run].into_iter().flatten().min();
        due.map(|at| at.max(now))
    }

    /// End of the run, once it is over; always `None` without a scenario.
    pub fn finished(&self) -> Option<&RunEnd> {
        self.run.as_ref().and_then(Run::finished)
    }

    /// Index of the waiting step, and a description of its trigger; `None` once every step is done.
    pub fn waiting_step(&self) -> Option<(usize, String)> {
        self.run.as_ref().and_then(Run::waiting_step)
    }

    /// Description of what the script waits for, for progress lines; empty without a scenario.
    pub fn waiting_for(&self) -> String {
        self.run.as_ref().map(Run::waiting_for).unwrap_or_default()
    }

    /// Limits the trace to the newest records, at least `kept` of them: for long-running servers.
    #[must_use]
    pub fn keeping(mut self, kept: usize) -> Self {
        self.api.keep(kept);
        self
    }

    /// Returns the trace, without trimmed records; `seq` is a record's position in the whole trace.
    pub fn records(&self) -> &[Record] {
        self.api.records()
    }

    /// Consumes the server and returns its trace.
    pub fn into_records(self) -> Vec<Record> {
        self.api.into_records()
    }

    // ---- inputs

    /// Applies the scenario, then the rules, then the apiserver.
    fn request(&mut self, now: Duration, stream: StreamId, conn: ConnId, request: HttpRequest) {
        self.api.receive(now, stream, conn, request);
        self.observe(now);
        let Some(asked) = self.api.asked(stream) else {
            return;
        };
        if let Some(run) = &mut self.run {
            let started = run.on_start(asked, stream, self.api.revision());
            let step = run.on_request(now, asked, stream);
            if let Some(bound) = started {
                self.api.record(now, bound);
            }
            if let Some(step) = step {
                self.run_step(now, step, Some(stream));
            }
        }
        self.obey_rules(now, stream);
        self.api.decide(now, stream);
    }

    fn report(&mut self, now: Duration, report: Report) {
        self.observe(now);
        if let Some(run) = &mut self.run {
            run.on_report(now, &report);
        }
        self.api.record(now, What::Reported(report));
    }

    // ---- progress

    /// Runs every step and sends every byte due at `now`.
    fn advance(&mut self, now: Duration) {
        self.api.compact_in_time(now);
        self.observe(now);
        while let Some(step) = self.due_step(now) {
            self.run_step(now, step, None);
            self.observe(now);
        }
        self.api.pump_due(now, &mut self.run);
        self.observe(now);
        if let Some(run) = &mut self.run {
            for what in run.advance(now, watches(&self.api)) {
                self.api.record(now, what);
            }
        }
    }

    fn due_step(&mut self, now: Duration) -> Option<usize> {
        let (api, run) = (&self.api, self.run.as_mut()?);
        run.due_step(now, watches(api))
    }

    /// Returns the watch that actions apply to if no request met their step: the newest one, of the loop under test if there is
    /// a scenario.
    fn newest_watch(&self) -> Option<StreamId> {
        match &self.run {
            Some(run) => run.newest_of_loop(watches(&self.api)),
            None => watches(&self.api).max(),
        }
    }

    /// Pumps one response.
    fn pump(&mut self, now: Duration, stream: StreamId) {
        self.api.pump(now, stream, &mut self.run);
    }

    /// Passes new records and changes to the run.
    fn observe(&mut self, now: Duration) {
        let Some(run) = &mut self.run else { return };
        let changed_at = self.api.changed_at();
        run.observe(self.api.records_from(run.next_record()), changed_at);
        while let Some((key, state)) = self.api.poll_change() {
            run.on_write(now, &key, state);
        }
    }
}

fn watches(api: &ApiServer) -> impl Iterator<Item = StreamId> + Clone {
    api.watches().map(|(stream, _)| stream)
}

/// Without a scenario nothing is observed.
impl Observer for Option<Run> {
    fn on_left(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) -> Vec<What> {
        match self {
            Some(run) => run.on_left(now, stream, asked, records),
            None => Vec::new(),
        }
    }
}
