//! Apiserver, scenario and rules behind one door in and one door out: no I/O, no clock.
//!
//! The driver hands in what happened ([`Server::handle`]) with the time it happened at, then drains what to do
//! ([`Server::poll_output`]) and learns when to come back ([`Server::poll_timeout`]). Every decision is appended to
//! the trace ([`Server::records`]) at the moment it is carried out.
//!
//! ```text
//!   Input ──▶ Server ──what happened──▶ ApiServer ──▶ Output
//!               ▲  │                        │
//!      step due │  └─deviations (act.rs)──▶ │
//!               │                           ▼
//!          Run, Rules ◀────records───── the trace
//! ```

mod act;
mod assumed;
mod control;
mod door;
mod goal;
mod names;
mod rules;
mod run;

use std::time::Duration;

pub use door::Input;
pub use goal::Limits;
use rules::Rules;
pub use rules::{RuleRefused, RuleView, Ruled};
use run::Run;
use scenario::SharedScenario;
use trace::record::{ConnId, Record, RunEnd, Side, StreamId, What};
use trace::report::Report;

use crate::api::HttpRequest;
#[cfg(feature = "net")]
pub(crate) use crate::apiserver::ANSWER_BYTES_MAX;
use crate::apiserver::{ApiServer, Asked, Followed, Observer};
pub use crate::apiserver::{Control, MemoryView, Output, StreamView};

/// A fake apiserver without its sockets.
#[derive(Debug)]
pub struct Server {
    api: ApiServer,
    /// The scenario that is played, if one is.
    run: Option<Run>,
    rules: Rules,
}

impl Server {
    /// A server that plays `scenario` under virtual time. `seed` decides what chance decides on a real server (how
    /// long a watch without `timeoutSeconds` lives).
    pub fn new(scenario: SharedScenario, seed: u64) -> Self {
        Self::with_limits(scenario, seed, Limits::sim())
    }

    /// The same, with other bounds on how long a run may take.
    pub fn with_limits(scenario: SharedScenario, seed: u64, limits: Limits) -> Self {
        let mut api = ApiServer::new(scenario.server.clone(), seed);
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
        api.begin_here();
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

    /// May a connection come in at `now`? False while connections are refused, and that is recorded.
    pub fn accepts(&mut self, now: Duration) -> bool {
        let accepts = self.api.accepts(now);
        self.observe(now);
        accepts
    }

    /// Until when connections are refused; in the past if they are not.
    pub fn refused_until(&self) -> Duration {
        self.api.refused_until()
    }

    /// Takes in what happened at `now`. Times never go back.
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
            Input::Taken(stream) => self.api.taken(stream),
            Input::Abandoned(stream) => self.api.broke_off(now, stream, Side::Client),
            Input::CutOff(stream) => self.api.broke_off(now, stream, Side::Server),
            Input::Report(report) => self.report(now, report),
            Input::StopRequested => self.api.record(now, What::StopRequested),
            Input::LeftOpen(connections) => self.api.record(now, What::LeftOpen { connections }),
            Input::Control(control) => self.api.control(now, control),
            Input::Tick => {}
        }
        self.advance(now);
    }

    /// The next thing to do, if any. Call until `None` after every [`Server::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        self.api.poll_output()
    }

    /// When to hand in [`Input::Tick`], if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let now = self.api.now();
        let run = self.run.as_ref();
        let run = run.and_then(|run| run.poll_timeout(now, || self.api.watches_followed()));
        let due = [self.api.poll_timeout(), run].into_iter().flatten().min();
        due.map(|at| at.max(now))
    }

    /// Why the run is over, once it is. A server without a scenario is never over.
    pub fn finished(&self) -> Option<&RunEnd> {
        self.run.as_ref().and_then(Run::finished)
    }

    /// The step that waits, by its index, and what for; `None` once every step is done.
    pub fn waiting_step(&self) -> Option<(usize, String)> {
        self.run.as_ref().and_then(Run::waiting_step)
    }

    /// Where the script stands, for progress lines; empty without a scenario.
    pub fn waiting_for(&self) -> String {
        self.run.as_ref().map(Run::waiting_for).unwrap_or_default()
    }

    /// Keeps only the newest records, `kept` of them at least: for servers that run for long.
    #[must_use]
    pub fn keeping(mut self, kept: usize) -> Self {
        self.api.keep(kept);
        self
    }

    /// The trace so far, without what was forgotten: a record's place is its `seq`.
    pub fn records(&self) -> &[Record] {
        self.api.records()
    }

    /// The trace, taken out.
    pub fn into_records(self) -> Vec<Record> {
        self.api.into_records()
    }

    // ---- what happened

    /// The scenario speaks before the rules, and both before the truth.
    fn request(&mut self, now: Duration, stream: StreamId, conn: ConnId, request: HttpRequest) {
        self.api.receive(now, stream, conn, request);
        self.observe(now);
        let Some(asked) = self.api.asked(stream) else {
            return;
        };
        if let Some(run) = &mut self.run {
            let collection = asked.collection.as_ref();
            let of_target = collection.is_none_or(|collection| self.api.is_followed(collection));
            if let Some(step) = run.on_request(now, asked, of_target) {
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

    // ---- onwards

    /// Runs every step and sends every byte that is due at `now`.
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
            for what in run.advance(now, || self.api.watches_followed()) {
                self.api.record(now, what);
            }
        }
    }

    fn due_step(&mut self, now: Duration) -> Option<usize> {
        let (api, run) = (&self.api, self.run.as_mut()?);
        run.due_step(now, || api.newest_watch().is_some(), || api.watches_followed())
    }

    /// Moves what the truth has to say on one answer, and lets out what may leave.
    fn pump(&mut self, now: Duration, stream: StreamId) {
        self.api.pump(now, stream, &mut self.run);
    }

    /// Tells the run what is new.
    fn observe(&mut self, now: Duration) {
        let Some(run) = &mut self.run else { return };
        let changed_at = self.api.changed_at();
        run.observe(self.api.records_from(run.next_record()), changed_at);
        while let Some((key, state)) = self.api.poll_change() {
            run.on_write(now, &key, state);
        }
    }
}

/// Without a scenario nobody is told what left.
impl Observer for Option<Run> {
    fn on_left(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) -> Vec<What> {
        match self {
            Some(run) => run.on_left(now, stream, asked, records),
            None => Vec::new(),
        }
    }
}
