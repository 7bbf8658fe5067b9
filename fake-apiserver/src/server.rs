//! Model, script and faults behind one door in and one door out: no I/O, no clock.
//!
//! The driver hands in what happened ([`Server::handle`]) with the time it happened at, then drains what to do
//! ([`Server::poll_output`]) and learns when to come back ([`Server::poll_timeout`]). Every decision is appended to
//! the trace ([`Server::records`]) at the moment it is carried out.

mod act;
mod admission;
mod answer;
mod asking;
mod assumed;
mod backlog;
mod compaction;
mod control;
mod door;
mod exchange;
mod flow;
mod goal;
mod joined;
mod log;
mod memory;
mod names;
mod review;
mod rules;
mod scripted;
mod truth;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use apimachinery::Version;
use apimachinery::options::{Collection, Form, GetRequest, ListRequest};
use apimachinery::selector::Selector;
use asking::{collection_of, encode_query, form_of, verb};
use compaction::Compaction;
pub use control::{Control, StreamView};
pub use door::{Input, Output};
use exchange::Exchange;
use goal::Goal;
pub use goal::Limits;
use joined::Joined;
use log::{Log, clipped, clipped_query};
#[cfg(feature = "net")]
pub(crate) use memory::ANSWER_BYTES_MAX;
pub use memory::MemoryView;
use names::{Binding, expand};
use rules::Rules;
pub use rules::{RuleRefused, RuleView, Ruled};
use scenario::SharedScenario;
use trace::fault::Ending;
use trace::record::{ConnId, Record, Replica, RunEnd, Side, StreamId, Verb, What};
use trace::report::Report;
use truth::selector;

use crate::api;
use crate::api::access::Issuer;
use crate::api::{Access, Answer, HttpRequest, Request, StyledText, User};
use crate::model::{Model, PageText, WatchSession};
use crate::script::{Asked, Script, Standing};

/// What an exchange is answered from.
#[derive(Debug)]
enum Source {
    /// Nothing is decided yet: the script's actions come first.
    Undecided(Request),
    /// The request is one the truth refuses; the script's actions come before that, too.
    Refused(Answer),
    /// A LIST that waits for the watch cache to reach a resourceVersion.
    Waiting { request: ListRequest, arrived: Duration },
    /// A GET that does.
    WaitingGet { request: GetRequest, arrived: Duration },
    /// A watch session of the model.
    Watch(Box<WatchSession>),
    /// A long list that is written out while it leaves, and what is recorded once it did.
    Page {
        text: Box<StyledText<PageText>>,
        record: What,
    },
    /// Everything there will be is queued.
    Decided,
}

/// An exchange and what feeds it.
#[derive(Debug)]
struct Open {
    exchange: Exchange,
    source: Source,
    asked: AskedBy,
    /// How the script wants the LIST page changed.
    edit: Option<scenario::PageEdit>,
    /// `as:` of the step this request met.
    bind: Option<String>,
    /// When its watch wants to be looked at, as `wakes` has it.
    wake: Option<Duration>,
}

/// What of a request is needed after it is parsed.
#[derive(Debug)]
struct AskedBy {
    request: HttpRequest,
    form: Form,
    collection: Option<Collection>,
    /// The continue token it carried, as the truth knows it.
    continue_token: Option<String>,
    at: Duration,
    verb: Verb,
}

impl AskedBy {
    /// Nothing more will be answered by what the head of the request said. An idle watch must not hold the buffer it was
    /// read into; whose watch it is may still be asked.
    fn forget_headers(&mut self) {
        let agent = self.request.headers.remove(http::header::USER_AGENT);
        self.request.headers = http::HeaderMap::new();
        if let Some(agent) = agent.and_then(|agent| http::HeaderValue::from_bytes(agent.as_bytes()).ok()) {
            self.request.headers.insert(http::header::USER_AGENT, agent);
        }
    }
}

/// A fake apiserver without its sockets.
#[derive(Debug)]
pub struct Server {
    scenario: SharedScenario,
    model: Model,
    script: Script,
    goal: Goal,
    /// What the client is told to select.
    selector: Selector,
    log: Log,
    outputs: VecDeque<Output>,
    joined: Joined,
    /// Boxed: a map moves what it holds whenever one comes or goes.
    open: BTreeMap<StreamId, Box<Open>>,
    /// The open requests of each connection.
    by_conn: BTreeSet<(ConnId, StreamId)>,
    /// Bytes of their queries.
    query_bytes: usize,
    /// When an exchange has to be looked at again, and that turn's own set of those that must be looked at now.
    wakes: BTreeSet<(Duration, StreamId)>,
    touched: BTreeSet<StreamId>,
    bindings: BTreeMap<String, Binding>,
    /// Continue tokens the script made up, and the truthful ones they stand for.
    aliases: BTreeMap<String, String>,
    refused_until: Duration,
    rules: Rules,
    /// Connections to the secondary replica.
    at_the_twin: BTreeSet<ConnId>,
    /// `None`: no authentication and no authorization.
    access: Option<Access>,
    /// Who signs the tokens of service accounts.
    issuer: Issuer,
    /// Who is at the other end, where a certificate says so.
    users: BTreeMap<ConnId, User>,
    /// Of a server that runs for long.
    compaction: Option<Compaction>,
    requests: u64,
    chance: u64,
    now: Duration,
}

impl Server {
    /// A server that plays `scenario` under virtual time. `seed` decides what chance decides on a real server (how
    /// long a watch without `timeoutSeconds` lives).
    pub fn new(scenario: SharedScenario, seed: u64) -> Self {
        Self::with_limits(scenario, seed, Limits::sim())
    }

    /// The same, with other bounds on how long a run may take.
    pub fn with_limits(scenario: SharedScenario, seed: u64, limits: Limits) -> Self {
        let model = Model::new(&scenario.server);
        let mut server = Self {
            script: Script::new(scenario.clone()),
            goal: Goal::new(scenario.clone(), limits),
            selector: selector(&scenario.client),
            scenario: scenario.clone(),
            model,
            log: Log::default(),
            outputs: VecDeque::new(),
            joined: Joined::default(),
            open: BTreeMap::new(),
            by_conn: BTreeSet::new(),
            query_bytes: 0,
            wakes: BTreeSet::new(),
            touched: BTreeSet::new(),
            bindings: BTreeMap::new(),
            aliases: BTreeMap::new(),
            refused_until: Duration::ZERO,
            rules: Rules::default(),
            at_the_twin: BTreeSet::new(),
            access: None,
            issuer: Issuer::from_seed(seed),
            users: BTreeMap::new(),
            compaction: None,
            requests: 0,
            chance: seed ^ 0x9E37_79B9_7F4A_7C15,
            now: Duration::ZERO,
        };
        for manifest in &scenario.objects {
            server.apply(Duration::ZERO, manifest);
        }
        server.begin_here();
        let start = server.model.revision().to_string();
        server.bind(
            Duration::ZERO,
            "start",
            Binding {
                resource_version: start,
                continue_token: None,
            },
        );
        server.advance(Duration::ZERO);
        server
    }

    /// May a connection come in at `now`? False while the script refuses connections, and that is recorded.
    pub fn accepts(&mut self, now: Duration) -> bool {
        let accepts = now >= self.refused_until;
        if !accepts {
            self.log.push(now, What::Refused);
            self.script.on_activity(now);
            self.count_request(now);
        }
        accepts
    }

    /// Until when connections are refused; in the past if they are not.
    pub fn refused_until(&self) -> Duration {
        self.refused_until
    }

    /// Takes in what happened at `now`. Times never go back.
    pub fn handle(&mut self, now: Duration, input: Input) {
        let now = now.max(self.now);
        self.now = now;
        self.log.trim();
        if self.model.storage_mut().follow(now) {
            self.touch_all();
        }
        match input {
            Input::Connected { conn, replica, peer } => {
                if replica == Replica::Secondary {
                    self.at_the_twin.insert(conn);
                }
                self.log.push(now, What::Connected { conn, replica, peer });
            }
            Input::Authenticated { conn, user } => {
                tracing::debug!(conn = conn.0, user = user.name, "a client certificate was shown");
                self.users.insert(conn, user);
            }
            Input::Disconnected { conn, by } => self.disconnected(now, conn, by),
            Input::Request {
                stream,
                conn,
                request,
            } => self.request(now, stream, conn, request),
            Input::Taken(stream) => self.taken(stream),
            Input::Abandoned(stream) => self.abandoned(now, stream),
            Input::CutOff(stream) => self.broke_off(now, stream, Side::Server),
            Input::Report(report) => self.report(now, report),
            Input::StopRequested => self.log.push(now, What::StopRequested),
            Input::LeftOpen(connections) => self.log.push(now, What::LeftOpen { connections }),
            Input::Control(control) => self.control(now, control),
            Input::Tick => {}
        }
        self.advance(now);
    }

    /// The next thing to do, if any. Call until `None` after every [`Server::handle`].
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to hand in [`Input::Tick`], if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let goal = self.goal.poll_timeout(&self.script);
        // A step that is due and still there waits for an open watch: no tick can help it.
        let script = self
            .script
            .poll_timeout(self.synced_since())
            .filter(|at| *at > self.now);
        let compaction = self.compaction.as_ref().map(Compaction::poll_timeout);
        let (wake, sight) = (
            self.wakes.first().map(|(at, _)| *at),
            self.model.storage().poll_timeout(),
        );
        [wake, script, goal, compaction, sight]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(self.now))
    }

    /// Why the run is over, once it is.
    pub fn finished(&self) -> Option<&RunEnd> {
        self.goal.finished()
    }

    /// The step that waits, by its index, and what for; `None` once every step is done.
    pub fn waiting_step(&self) -> Option<(usize, String)> {
        match self.script.standing() {
            Standing::Armed { step, .. } => {
                let step = self.script.required().unwrap_or(*step);
                Some((step, self.script.waiting_for()))
            }
            Standing::Missed { .. } | Standing::Done { .. } => None,
        }
    }

    /// Where the script stands, for progress lines.
    pub fn waiting_for(&self) -> String {
        self.script.waiting_for()
    }

    /// Keeps only the newest records, `kept` of them at least: for servers that run for long.
    #[must_use]
    pub fn keeping(mut self, kept: usize) -> Self {
        self.log.kept = Some(kept);
        self
    }

    /// The trace so far, without what was forgotten: a record's place is its `seq`.
    pub fn records(&self) -> &[Record] {
        &self.log.records
    }

    /// The trace, taken out.
    pub fn into_records(self) -> Vec<Record> {
        self.log.records
    }

    // ---- what happened

    fn request(&mut self, now: Duration, stream: StreamId, conn: ConnId, request: HttpRequest) {
        let query = api::query_pairs(&request.query);
        let (mut parsed, continue_token) = self.parse(conn, &request, &query);
        let mut verb = verb(&parsed, &request, &query);
        let only_probes = verb == Verb::WatchList && self.scenario.server.streaming_lists == Some(false);
        if only_probes {
            if parsed.is_ok() {
                // The last minor whose gate is off by default: its refusal is that of every later one.
                parsed = api::parse(&request, self.model.catalog(), Version::V1_33);
            }
            verb = Verb::Other;
        }
        let replica = self.replica_of(conn);
        self.log.push(
            now,
            What::Request {
                stream,
                conn,
                verb,
                method: request.method.to_string(),
                path: clipped(&request.path),
                query: clipped_query(&query),
                accept: header(&request, "accept"),
                user_agent: header(&request, "user-agent"),
                replica,
                violations: api::violations(
                    &request.method,
                    &request.path,
                    &query,
                    self.model.catalog(),
                    self.scenario.server.version,
                ),
            },
        );
        self.count_request(now);

        let asked_bytes = request.query.len();
        let asked = AskedBy {
            form: parsed.as_ref().map_or(Form::Full, form_of),
            collection: parsed.as_ref().ok().and_then(collection_of).cloned(),
            continue_token,
            at: now,
            verb,
            request,
        };
        let exchange = Exchange::new(stream, conn);
        let source = match parsed {
            Ok(request) => Source::Undecided(request),
            Err(refusal) => Source::Refused(refusal),
        };
        self.open.insert(
            stream,
            Box::new(Open {
                exchange,
                source,
                asked,
                edit: None,
                bind: None,
                wake: None,
            }),
        );
        self.by_conn.insert((conn, stream));
        self.query_bytes += asked_bytes;
        self.touched.insert(stream);

        let foreign = self
            .open
            .get(&stream)
            .and_then(|open| open.asked.collection.as_ref())
            .is_some_and(|collection| !self.is_of_target(collection));
        if verb != Verb::Other && !foreign {
            let step = {
                let bindings = &self.bindings;
                let asked = Asked { verb, query: &query };
                self.script
                    .on_request(now, &asked, &|wanted| expand(bindings, wanted))
            };
            if let Some(step) = step {
                self.run_step(now, step, Some(stream));
            }
        } else {
            self.script.on_activity(now);
        }
        if !only_probes {
            self.obey_rules(now, stream, replica, verb, &query);
        }
        self.decide(now, stream);
    }

    /// Is it a collection the scenario is about? A script counts no others: a client may read other resources too.
    pub(super) fn is_of_target(&self, collection: &Collection) -> bool {
        let target = &self.scenario.target;
        collection.kind.group == target.group && collection.kind.plural == target.plural
    }

    /// The port a connection came to.
    fn replica_of(&self, conn: ConnId) -> Replica {
        if self.at_the_twin.contains(&conn) {
            Replica::Secondary
        } else {
            Replica::Primary
        }
    }

    /// Reads the request as the truth does: tokens the script made up are replaced by those they stand for.
    fn parse(
        &self,
        conn: ConnId,
        request: &HttpRequest,
        query: &[(String, String)],
    ) -> (Result<Request, Answer>, Option<String>) {
        let sent = query
            .iter()
            .find(|(name, _)| name == "continue")
            .map(|(_, token)| token.clone());
        let admitted = self.admit(conn, request);
        if let Err(refusal) = admitted.and_then(|()| self.takes_query(request)) {
            return (Err(refusal), sent);
        }
        let (catalog, version) = (self.model.catalog(), self.scenario.server.version);
        match sent.as_ref().and_then(|token| self.aliases.get(token)) {
            None => (api::parse(request, catalog, version), sent),
            Some(truthful) => {
                let query: Vec<(String, String)> = query
                    .iter()
                    .map(|(name, value)| {
                        let value = if name == "continue" { truthful } else { value };
                        (name.clone(), value.clone())
                    })
                    .collect();
                let request = HttpRequest {
                    query: encode_query(&query),
                    ..request.clone()
                };
                (api::parse(&request, catalog, version), Some(truthful.clone()))
            }
        }
    }

    fn count_request(&mut self, now: Duration) {
        self.requests += 1;
        self.goal.on_request(now, self.requests);
    }

    fn report(&mut self, now: Duration, report: Report) {
        self.log.push(now, What::Reported(report.clone()));
        self.goal.on_report(now, &report);
        let bindings = &self.bindings;
        self.script
            .on_report(now, &report, &|wanted| expand(bindings, wanted));
    }

    fn abandoned(&mut self, now: Duration, stream: StreamId) {
        self.broke_off(now, stream, Side::Client);
    }

    fn broke_off(&mut self, now: Duration, stream: StreamId, by: Side) {
        if self.close(stream) {
            self.log.push(
                now,
                What::End {
                    stream,
                    how: Ending::Fin,
                    by,
                },
            );
        }
    }

    /// Forgets a request. False if it is not open.
    fn close(&mut self, stream: StreamId) -> bool {
        let open = self.open.remove(&stream);
        if let Some(open) = &open {
            self.by_conn.remove(&(open.exchange.conn, stream));
            self.query_bytes -= open.asked.request.query.len();
        }
        open.is_some()
    }

    fn disconnected(&mut self, now: Duration, conn: ConnId, by: Side) {
        let of_it = (conn, StreamId(0))..=(conn, StreamId(u64::MAX));
        let streams: Vec<StreamId> = self.by_conn.range(of_it).map(|(_, stream)| *stream).collect();
        for stream in streams {
            self.broke_off(now, stream, by);
        }
        self.users.remove(&conn);
        self.at_the_twin.remove(&conn);
        self.log.push(now, What::Disconnected { conn, by });
    }

    /// How long a watch without `timeoutSeconds` lives: drawn from [1800, 3600) s, as with `--min-request-timeout`.
    fn draw_lifetime(&mut self) -> Duration {
        Duration::from_secs(1800 + self.draw() % 1800)
    }

    /// The next of what chance decides.
    fn draw(&mut self) -> u64 {
        // xorshift64*: chance must come from the seed alone.
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        self.chance.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }
}

fn header(request: &HttpRequest, name: &str) -> Option<String> {
    request
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(clipped)
}
