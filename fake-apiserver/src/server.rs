//! Model, script and faults behind one door in and one door out: no I/O, no clock.
//!
//! The driver hands in what happened ([`Server::handle`]) with the time it happened at, then drains what to do
//! ([`Server::poll_output`]) and learns when to come back ([`Server::poll_timeout`]). Every decision is appended to
//! the trace ([`Server::records`]) at the moment it is carried out.

mod act;
mod asking;
mod control;
mod exchange;
mod goal;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use crate::api::{self, Access, Answer, Collection, Form, GetRequest, HttpRequest, ListRequest, Request};
use crate::fault::Ending;
use crate::model::selector::{FieldSelector, LabelSelector, Selector};
use crate::model::{GetOutcome, ListOutcome, Model, Page, WatchPoll, WatchSession};
use crate::record::{ConnId, ObjectRef, Record, RunEnd, Side, StreamId, Verb, What};
use crate::report::Report;
use crate::scenario::{ClientSettings, Expected, Ref, SharedScenario};
use crate::script::{Asked, Script};
use asking::{collection_of, encode_query, form_of, verb};
pub use control::Control;
use exchange::{Exchange, Fate, Head};
use goal::Goal;
pub use goal::Limits;

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// A connection wants in. Ask [`Server::accepts`] first.
    Connected(ConnId),
    /// A connection is gone.
    Disconnected {
        /// Its number.
        conn: ConnId,
        /// Who ended it: the server only if it did what an ending said, or closed it for being idle.
        by: Side,
    },
    /// A request arrived whole.
    Request {
        /// Its number: the driver counts from 1 in order of arrival.
        stream: StreamId,
        /// The connection it came on.
        conn: ConnId,
        /// What was asked.
        request: HttpRequest,
    },
    /// The client gave an answer up before its end.
    Abandoned(StreamId),
    /// The client under test reported something.
    Report(Report),
    /// The client was told to stop.
    StopRequested,
    /// Nobody waits any longer for the stopped client to close these connections.
    LeftOpen(u64),
    /// Something is done to the server from outside of its API.
    Control(Control),
    /// Nothing happened but time.
    Tick,
}

/// What to do, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// Send the head of an answer. Body bytes follow as [`Output::Data`].
    Head {
        /// The request it answers.
        stream: StreamId,
        /// HTTP status.
        status: u16,
        /// Headers; the edge adds `Date` and the framing (`Content-Length` when `length` is known, else chunked).
        headers: Vec<(String, String)>,
        /// Length of the whole body, if it will be sent whole.
        length: Option<u64>,
    },
    /// Send body bytes, in a write of their own.
    Data {
        /// The request they answer.
        stream: StreamId,
        /// The bytes.
        bytes: Bytes,
    },
    /// End the answer so, once everything before it is flushed. Without a head before it, the request is never
    /// answered and the ending concerns the connection.
    End {
        /// The request.
        stream: StreamId,
        /// How.
        how: Ending,
    },
}

/// The append-only trace.
#[derive(Debug, Default)]
struct Log {
    records: Vec<Record>,
}

impl Log {
    fn push(&mut self, at: Duration, what: What) {
        tracing::debug!(at_ms = at.as_millis() as u64, what = what.name(), "recorded");
        self.records.push(Record {
            seq: self.records.len() as u64,
            at,
            what,
        });
    }
}

/// What an exchange is answered from.
#[derive(Debug)]
enum Source {
    /// Nothing is decided yet: the script's actions come first.
    Undecided(Request),
    /// A LIST that waits for the watch cache to reach a resourceVersion.
    Waiting { request: ListRequest, arrived: Duration },
    /// A GET that does.
    WaitingGet { request: GetRequest, arrived: Duration },
    /// A watch session of the model.
    Watch(Box<WatchSession>),
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
    edit: Option<crate::scenario::PageEdit>,
    /// `as:` of the step this request met.
    bind: Option<String>,
}

/// What of a request is needed after it is parsed.
#[derive(Debug)]
struct AskedBy {
    request: HttpRequest,
    form: Form,
    collection: Option<Collection>,
    /// The continue token it carried, as the truth knows it.
    continue_token: Option<String>,
}

/// What a name of the scenario file stands for.
#[derive(Debug, Clone, Default)]
struct Binding {
    resource_version: String,
    continue_token: Option<String>,
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
    open: BTreeMap<StreamId, Open>,
    /// When an exchange has to be looked at again, and that turn's own set of those that must be looked at now.
    wakes: BTreeSet<(Duration, StreamId)>,
    touched: BTreeSet<StreamId>,
    bindings: BTreeMap<String, Binding>,
    /// Continue tokens the script made up, and the truthful ones they stand for.
    aliases: BTreeMap<String, String>,
    refused_until: Duration,
    /// `None`: whoever comes may do everything.
    access: Option<Access>,
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
            open: BTreeMap::new(),
            wakes: BTreeSet::new(),
            touched: BTreeSet::new(),
            bindings: BTreeMap::new(),
            aliases: BTreeMap::new(),
            refused_until: Duration::ZERO,
            access: None,
            requests: 0,
            chance: seed ^ 0x9E37_79B9_7F4A_7C15,
            now: Duration::ZERO,
        };
        for manifest in &scenario.objects {
            server.apply(Duration::ZERO, manifest);
        }
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

    /// Takes in what happened at `now`. Times never go back.
    pub fn handle(&mut self, now: Duration, input: Input) {
        let now = now.max(self.now);
        self.now = now;
        match input {
            Input::Connected(conn) => self.log.push(now, What::Connected { conn }),
            Input::Disconnected { conn, by } => self.disconnected(now, conn, by),
            Input::Request {
                stream,
                conn,
                request,
            } => self.request(now, stream, conn, request),
            Input::Abandoned(stream) => self.abandoned(now, stream),
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
        let goal = self.goal.poll_timeout(self.script.standing());
        // A step that is due and still there waits for an open watch: no tick can help it.
        let script = self.script.poll_timeout().filter(|at| *at > self.now);
        [self.wakes.first().map(|(at, _)| *at), script, goal]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.max(self.now))
    }

    /// Why the run is over, once it is.
    pub fn finished(&self) -> Option<&RunEnd> {
        self.goal.finished()
    }

    /// Where the script stands, for progress lines.
    pub fn waiting_for(&self) -> String {
        self.script.waiting_for()
    }

    /// The trace so far.
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
        let (parsed, continue_token) = self.parse(&request, &query);
        let verb = verb(&parsed, &request, &query);
        self.log.push(
            now,
            What::Request {
                stream,
                conn,
                verb,
                method: request.method.to_string(),
                path: request.path.clone(),
                query: query.clone(),
                accept: header(&request, "accept"),
                violations: api::violations(
                    &request.method,
                    &request.path,
                    &query,
                    self.scenario.server.version,
                ),
            },
        );
        self.count_request(now);

        let asked = AskedBy {
            form: parsed.as_ref().map_or(Form::Full, form_of),
            collection: parsed.as_ref().ok().and_then(collection_of).cloned(),
            continue_token,
            request,
        };
        let mut exchange = Exchange::new(stream, conn);
        let source = match parsed {
            Ok(request) => Source::Undecided(request),
            Err(refusal) => {
                self.answer_with(&mut exchange, &asked, refusal, false);
                Source::Decided
            }
        };
        self.open.insert(
            stream,
            Open {
                exchange,
                source,
                asked,
                edit: None,
                bind: None,
            },
        );
        self.touched.insert(stream);

        if verb != Verb::Other {
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
        self.decide(now, stream);
    }

    /// Reads the request as the truth does: tokens the script made up are replaced by those they stand for.
    fn parse(
        &self,
        request: &HttpRequest,
        query: &[(String, String)],
    ) -> (Result<Request, Answer>, Option<String>) {
        let sent = query
            .iter()
            .find(|(name, _)| name == "continue")
            .map(|(_, token)| token.clone());
        if let Some(Err(status)) = self.access.as_ref().map(|access| access.check(request)) {
            return (Err(status.into_answer()), sent);
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
        if self.open.remove(&stream).is_some() {
            self.log.push(
                now,
                What::End {
                    stream,
                    how: Ending::Fin,
                    by: Side::Client,
                },
            );
        }
    }

    fn disconnected(&mut self, now: Duration, conn: ConnId, by: Side) {
        let streams: Vec<StreamId> = self
            .open
            .iter()
            .filter(|(_, open)| open.exchange.conn == conn)
            .map(|(stream, _)| *stream)
            .collect();
        for stream in streams {
            self.abandoned(now, stream);
        }
        self.log.push(now, What::Disconnected { conn, by });
    }

    // ---- onwards from here

    /// Runs every step and sends every byte that is due at `now`.
    fn advance(&mut self, now: Duration) {
        while let Some(step) = self.script.poll(now, self.newest_watch().is_some()) {
            self.run_step(now, step, None);
        }
        self.pump_due(now);
        // A frame that just left may have been the client's last word on a step that waits for quiet; nothing else
        // that pumping does can arm a step.
        self.goal.advance(now, &self.script, &mut self.log);
    }

    fn pump_due(&mut self, now: Duration) {
        while let Some((at, stream)) = self.wakes.first().copied() {
            if at > now {
                break;
            }
            self.wakes.remove(&(at, stream));
            self.touched.insert(stream);
        }
        for stream in std::mem::take(&mut self.touched) {
            self.pump(now, stream);
        }
    }

    /// Moves what the truth has to say into the queue, and what may leave out of it.
    fn pump(&mut self, now: Duration, stream: StreamId) {
        self.refill(now, stream);
        self.flush(now, stream);
    }

    fn refill(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        match &mut open.source {
            Source::Undecided(_) | Source::Decided => {}
            Source::Waiting { .. } | Source::WaitingGet { .. } => self.decide(now, stream),
            Source::Watch(session) => loop {
                match session.poll(&self.model, now) {
                    WatchPoll::Frame(frame) => {
                        if frame.kind.is_change() {
                            self.script.on_activity(now);
                        }
                        for fate in open.exchange.rules.decide(frame) {
                            match fate {
                                Fate::Send { frame, scripted } => open.exchange.push_line(&frame, scripted),
                                Fate::Withhold(frame) => {
                                    if let Some(object) = frame.object {
                                        self.log.push(now, What::Withheld { stream, object });
                                    }
                                }
                                Fate::Remark {
                                    frame,
                                    initial_events_end,
                                } => {
                                    let Some(collection) = &open.asked.collection else {
                                        continue;
                                    };
                                    let version = frame
                                        .object
                                        .map(|object| object.resource_version)
                                        .unwrap_or_default();
                                    let marker = self.model.bookmark_frame(
                                        collection,
                                        &version,
                                        initial_events_end.as_deref(),
                                        open.asked.form,
                                    );
                                    open.exchange.push_line(&marker, true);
                                }
                            }
                        }
                    }
                    WatchPoll::Pending { wake } => {
                        if let Some(wake) = wake {
                            self.wakes.insert((wake, stream));
                        }
                        break;
                    }
                    WatchPoll::End => {
                        if !open.exchange.decided() {
                            // It waited to its end.
                            let headers = all_headers(stream, &open.asked, api::watch_headers());
                            open.exchange.set_head(watch_head(headers));
                        }
                        open.source = Source::Decided;
                        open.exchange.end(Ending::Eof);
                        break;
                    }
                }
            },
        }
        self.begin_watch(stream);
    }

    /// Sends the head of a watch that no longer waits.
    fn begin_watch(&mut self, stream: StreamId) {
        if let Some(open) = self.open.get_mut(&stream)
            && let Source::Watch(session) = &open.source
            && !session.is_waiting()
            && !open.exchange.decided()
        {
            let headers = all_headers(stream, &open.asked, api::watch_headers());
            open.exchange.set_head(watch_head(headers));
            self.touched.insert(stream);
        }
    }

    fn flush(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let before = self.log.records.len();
        if let Some(at) = open.exchange.flush(now, &mut self.log, &mut self.outputs) {
            self.wakes.insert((at, stream));
        }
        if let Some(name) = &open.bind
            && let Some(binding) = self.log.records[before..]
                .iter()
                .find_map(|record| binding_of(&record.what))
        {
            let name = name.clone();
            open.bind = None;
            self.bind(now, &name, binding);
        }
        let Some(open) = self.open.get(&stream) else {
            return;
        };
        if open.exchange.is_over() {
            let stalled = matches!(
                self.log.records.last().map(|record| &record.what),
                Some(What::End {
                    how: Ending::Stall,
                    ..
                })
            );
            if !stalled {
                self.open.remove(&stream);
            }
        }
    }

    /// Computes the truthful answer of a request nothing is decided about yet.
    fn decide(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        if open.exchange.decided() {
            return;
        }
        match std::mem::replace(&mut open.source, Source::Decided) {
            Source::Decided => {}
            Source::Watch(session) => open.source = Source::Watch(session),
            Source::Undecided(Request::Watch(request)) => {
                let lifetime = self.draw_lifetime();
                match self.model.open_watch(now, &request, lifetime) {
                    Ok(session) => {
                        self.with(stream, |open| open.source = Source::Watch(Box::new(session)));
                        self.begin_watch(stream);
                    }
                    Err(status) => self.answer(stream, status.into_answer()),
                }
            }
            Source::Undecided(Request::List(request)) => self.decide_list(now, stream, request, now),
            Source::Waiting { request, arrived, .. } => self.decide_list(now, stream, request, arrived),
            Source::Undecided(Request::Get(request)) => self.decide_get(now, stream, request, now),
            Source::WaitingGet { request, arrived, .. } => self.decide_get(now, stream, request, arrived),
            Source::Undecided(Request::Write(request)) => self.decide_write(now, stream, &request),
            Source::Undecided(Request::Document(document)) => {
                let answer = document.answer(self.model.catalog(), self.scenario.server.version);
                self.answer(stream, answer);
            }
        }
        if self.open.get(&stream).is_some_and(|open| open.exchange.decided()) {
            self.touched.insert(stream);
        }
    }

    fn decide_list(&mut self, now: Duration, stream: StreamId, request: ListRequest, arrived: Duration) {
        match self.model.list(now, arrived, &request) {
            ListOutcome::Page(page) => self.answer_page(stream, &page),
            ListOutcome::Refused(status) => self.answer(stream, status.into_answer()),
            ListOutcome::Wait { until } => {
                self.wait(now, stream, until, Source::Waiting { request, arrived });
            }
        }
    }

    fn decide_get(&mut self, now: Duration, stream: StreamId, request: GetRequest, arrived: Duration) {
        match self.model.get(now, arrived, &request) {
            GetOutcome::Found { body, .. } => self.answer(stream, api::ok(body)),
            GetOutcome::Refused(status) => self.answer(stream, status.into_answer()),
            GetOutcome::Wait { until } => {
                self.wait(now, stream, until, Source::WaitingGet { request, arrived });
            }
        }
    }

    /// Comes back to the request when the truth changes, and at `until`.
    fn wait(&mut self, now: Duration, stream: StreamId, until: Duration, source: Source) {
        if let Some(open) = self.open.get_mut(&stream) {
            open.source = source;
        }
        self.wakes
            .insert((until.max(now + Duration::from_millis(1)), stream));
    }

    fn answer_page(&mut self, stream: StreamId, page: &Page) {
        let edit = self.open.get_mut(&stream).and_then(|open| open.edit.take());
        let (bytes, record) = match edit {
            None => (page.encode(), page_record(stream, page)),
            Some(edit) => self.edited_page(stream, page, &edit),
        };
        let head = self.head(stream, 200, api::watch_headers(), false);
        self.with(stream, |open| {
            open.exchange.set_head(head);
            let answer = api::ok(bytes).in_the_style_of(&open.asked.request);
            open.exchange.set_body(answer.body, record);
        });
    }

    fn answer(&mut self, stream: StreamId, answer: Answer) {
        let Some(mut open) = self.open.remove(&stream) else {
            return;
        };
        let answer = answer.in_the_style_of(&open.asked.request);
        self.answer_with(&mut open.exchange, &open.asked, answer, false);
        self.open.insert(stream, open);
    }

    fn answer_with(&mut self, exchange: &mut Exchange, asked: &AskedBy, answer: Answer, scripted: bool) {
        let record = body_record(exchange.id, &answer.body);
        let mut headers = all_headers(exchange.id, asked, answer.headers);
        if answer.status == 401 && !scripted {
            // Flow control comes after authentication.
            headers.retain(|(name, _)| !name.starts_with("X-Kubernetes-Pf-"));
        }
        exchange.set_head(Head {
            status: answer.status,
            headers,
            scripted,
        });
        exchange.set_body(answer.body, record);
    }

    fn head(&self, stream: StreamId, status: u16, headers: Vec<(String, String)>, scripted: bool) -> Head {
        let asked = self.open.get(&stream).map(|open| &open.asked);
        let headers = match asked {
            Some(asked) => all_headers(stream, asked, headers),
            None => headers,
        };
        Head {
            status,
            headers,
            scripted,
        }
    }

    fn with(&mut self, stream: StreamId, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&stream) {
            change(open);
        }
        self.touched.insert(stream);
    }

    /// The watch opened last, among those that can still say something.
    fn newest_watch(&self) -> Option<StreamId> {
        self.open
            .iter()
            .rev()
            .find(|(_, open)| matches!(open.source, Source::Watch(_)) && !open.exchange.is_over())
            .map(|(stream, _)| *stream)
    }

    fn bind(&mut self, now: Duration, name: &str, binding: Binding) {
        self.log.push(
            now,
            What::Bound {
                name: name.to_owned(),
                value: binding.resource_version.clone(),
                continue_token: binding.continue_token.clone(),
            },
        );
        self.bindings.insert(name.to_owned(), binding);
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

/// What the client is told to select. A scenario's selectors were read once by its parser, so they can be read again.
fn selector(client: &ClientSettings) -> Selector {
    let labels = client.labels.as_deref().map(LabelSelector::parse);
    let fields = client.fields.as_deref().map(FieldSelector::parse);
    Selector {
        labels: labels.and_then(Result::ok).unwrap_or_default(),
        fields: fields.and_then(Result::ok).unwrap_or_default(),
    }
}

fn expand(bindings: &BTreeMap<String, Binding>, wanted: &Expected) -> Option<String> {
    match wanted {
        Expected::Is(text) => Some(text.clone()),
        Expected::Ref(Ref::Start) => bindings
            .get("start")
            .map(|binding| binding.resource_version.clone()),
        Expected::Ref(Ref::ResourceVersion(name)) => {
            bindings.get(name).map(|binding| binding.resource_version.clone())
        }
        Expected::Ref(Ref::Continue(name)) => bindings
            .get(name)
            .and_then(|binding| binding.continue_token.clone()),
        Expected::Not(_) | Expected::Absent | Expected::Present => None,
    }
}

fn header(request: &HttpRequest, name: &str) -> Option<String> {
    request
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// The headers every answer has, and then its own; its own `Cache-Control` replaces the common one.
fn all_headers(stream: StreamId, asked: &AskedBy, own: Vec<(String, String)>) -> Vec<(String, String)> {
    let replaced = |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let mut headers = api::common_headers(&asked.request, stream.0);
    headers.retain(|(name, _)| !replaced(name));
    headers.extend(own);
    headers
}

fn watch_head(headers: Vec<(String, String)>) -> Head {
    Head {
        status: 200,
        headers,
        scripted: false,
    }
}

fn page_record(stream: StreamId, page: &Page) -> What {
    What::Page {
        stream,
        resource_version: page.resource_version.to_string(),
        continue_token: page.continue_token.clone().unwrap_or_default(),
        remaining: page.remaining,
        items: page
            .items
            .iter()
            .map(|item| item.object_ref())
            .collect::<Vec<ObjectRef>>(),
        scripted: false,
    }
}

fn body_record(stream: StreamId, body: &Bytes) -> What {
    let status: Option<serde_json::Value> = serde_json::from_slice(body)
        .ok()
        .filter(|value: &serde_json::Value| value.get("kind").is_some_and(|kind| kind == "Status"));
    let text = |pointer: &str| {
        status
            .as_ref()
            .and_then(|status| status.pointer(pointer))
            .and_then(|value| value.as_str())
            .map(str::to_owned)
    };
    What::Body {
        stream,
        bytes: body.len() as u64,
        reason: text("/reason"),
        message: text("/message"),
        continue_token: text("/metadata/continue"),
    }
}

fn binding_of(what: &What) -> Option<Binding> {
    if let What::Page {
        resource_version,
        continue_token,
        ..
    } = what
    {
        let continue_token = Some(continue_token.clone()).filter(|token| !token.is_empty());
        return Some(Binding {
            resource_version: resource_version.clone(),
            continue_token,
        });
    }
    let What::Body { continue_token, .. } = what else {
        return None;
    };
    Some(Binding {
        resource_version: String::new(),
        continue_token: continue_token.clone(),
    })
}
