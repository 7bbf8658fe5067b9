//! Sans-IO apiserver without a scenario: authenticates, authorizes, and answers every request from the model. No clock.
//!
//! [`Server`](crate::server::Server) drives it: it passes inputs on, and requests deviations of a response (`deviate.rs`) or
//! changes of the stored state (`store.rs`). Every decision is appended to the trace (`log.rs`) when it takes effect. This
//! module must not depend on steps, rules or the goal of a run.

mod admission;
mod answer;
mod asking;
mod backlog;
mod balancer;
mod compaction;
mod control;
mod deviate;
mod exchange;
mod flow;
mod hooks;
mod joined;
mod log;
mod memory;
mod output;
mod process;
mod review;
mod scripted;
mod store;
mod upstream;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::options::{Collection, GetRequest, ListRequest, Representation};
use asking::{collection_of, encode_query, form_of, verb};
use balancer::Balancer;
use compaction::Compaction;
pub use control::{Control, StreamView};
use exchange::Exchange;
pub(crate) use flow::Observer;
pub use hooks::CallId;
use hooks::{Calling, Waiting};
use joined::Joined;
use log::{Log, clipped, clipped_query};
#[cfg(feature = "net")]
pub(crate) use memory::ANSWER_BYTES_MAX;
pub use memory::MemoryView;
pub use output::Output;
use scenario::{PageEdit, ServerSettings};
pub(crate) use store::Followed;
use trace::content::Kept;
use trace::fault::Ending;
use trace::record::{ConnId, Record, Replica, Side, StreamId, Verb, What};
use upstream::{Forwarded, Upstream};

use crate::api;
use crate::api::access::{AccessSettings, Authorization, Issuer};
use crate::api::{Access, Answer, HttpRequest, Request, StyledText, User};
use crate::model::{Model, PageText, WatchSession};
use crate::upstream::Outbound;

/// Source of a response.
#[derive(Debug)]
enum Source {
    /// Not decided yet: deviations apply first. With the user it is decided for.
    Undecided(Request, Arc<User>),
    /// For the upstream, and not sent yet: deviations apply first.
    Unsent(Box<Outbound>),
    /// The upstream answers.
    Upstream(Box<Forwarded>),
    /// Rejected by the apiserver; deviations apply before the rejection is sent.
    Refused(Answer),
    /// A LIST that waits for the watch cache to reach a resourceVersion.
    Waiting { request: ListRequest, arrived: Duration },
    /// A GET that waits for the same.
    WaitingGet { request: GetRequest, arrived: Duration },
    /// A watch session of the model.
    Watch(Box<WatchSession>),
    /// A long list, encoded while it is sent, and the record to append afterwards.
    Page {
        text: Box<StyledText<PageText>>,
        record: What,
    },
    /// A write that waits for webhooks.
    Hooked(Box<Waiting>),
    /// The whole response is queued.
    Decided,
}

impl Source {
    /// Whether it is a watch that can still send events.
    fn is_watch(&self) -> bool {
        match self {
            Self::Watch(_) => true,
            Self::Upstream(forwarded) => forwarded.is_watch(),
            Self::Undecided(..)
            | Self::Unsent(_)
            | Self::Refused(_)
            | Self::Waiting { .. }
            | Self::WaitingGet { .. }
            | Self::Page { .. }
            | Self::Hooked(_)
            | Self::Decided => false,
        }
    }

    /// The response of the upstream.
    fn forwarded(&self) -> Option<&Forwarded> {
        if let Self::Upstream(forwarded) = self {
            Some(forwarded)
        } else {
            None
        }
    }
}

/// What is read of a request before it is answered.
#[derive(Debug)]
struct Reading {
    source: Source,
    verb: Verb,
    form: Representation,
    collection: Option<Collection>,
    /// The continue token, with aliases resolved.
    continue_token: Option<String>,
    /// Option rules that it violates.
    violations: Vec<String>,
}

/// A parsed request and its user, or the response that refuses it.
type Parsed = Result<(Request, Arc<User>), Answer>;

/// An open request: its exchange and the source of its response.
#[derive(Debug)]
struct Open {
    exchange: Exchange,
    source: Source,
    asked: Asked,
    /// Edit of the LIST page.
    edit: Option<PageEdit>,
    /// Next deadline of its watch, the same as in `wakes`.
    wake: Option<Duration>,
    /// Calls of webhooks without an outcome: until then it is not decided, and a watch sends nothing.
    calls: usize,
}

/// The part of a request that is kept after parsing.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: HttpRequest,
    pub(crate) conn: ConnId,
    form: Representation,
    pub(crate) collection: Option<Collection>,
    /// The continue token of the request, with aliases resolved.
    continue_token: Option<String>,
    at: Duration,
    /// Verb as counted by scripts and rules.
    pub(crate) verb: Verb,
    /// A streaming list request to a server that does not support them: rules ignore it.
    pub(crate) only_probes: bool,
}

impl Asked {
    /// Drops all headers but the User-Agent, so that an idle watch does not keep the read buffer of its request alive.
    fn forget_headers(&mut self) {
        let agent = self.request.headers.remove(http::header::USER_AGENT);
        self.request.headers = http::HeaderMap::new();
        if let Some(agent) = agent.and_then(|agent| http::HeaderValue::from_bytes(agent.as_bytes()).ok()) {
            self.request.headers.insert(http::header::USER_AGENT, agent);
        }
    }

    /// User-Agent header.
    pub(crate) fn user_agent(&self) -> Option<String> {
        header(&self.request, http::header::USER_AGENT)
    }
}

/// Sans-IO apiserver.
#[derive(Debug)]
pub(crate) struct ApiServer {
    settings: ServerSettings,
    model: Model,
    log: Log,
    /// What the trace keeps of content; `None`: nothing.
    kept: Option<Kept>,
    /// The objects a client under test keeps.
    followed: Option<Followed>,
    outputs: VecDeque<Output>,
    joined: Joined,
    /// Boxed, because a map moves its values on every insertion and removal.
    open: BTreeMap<StreamId, Box<Open>>,
    /// Open requests by connection.
    by_conn: BTreeSet<(ConnId, StreamId)>,
    /// Bytes of the queries of open requests.
    query_bytes: usize,
    /// Deadlines of exchanges, and the exchanges to pump in the current turn.
    wakes: BTreeSet<(Duration, StreamId)>,
    touched: Vec<StreamId>,
    /// Time of the last change queued on any watch.
    changed_at: Duration,
    /// Continue tokens invented by page edits, and the real tokens they stand for.
    aliases: BTreeMap<String, String>,
    refused_until: Duration,
    /// Open connections, with the replica of each.
    conns: BTreeMap<ConnId, Replica>,
    /// Assigns connections to replicas, if there is one address for both.
    balancer: Option<Balancer>,
    /// `None`: no authentication and no authorization.
    access: Option<Access>,
    access_settings: AccessSettings,
    /// `None`: RBAC if there is `access`, else AlwaysAllow.
    authorization: Option<Authorization>,
    /// Signer of service account tokens.
    issuer: Issuer,
    /// Users of connections with a client certificate.
    users: BTreeMap<ConnId, Arc<User>>,
    /// Automatic compaction; `None` for scenarios.
    compaction: Option<Compaction>,
    /// What answers instead of the model; `None`: the model does.
    upstream: Option<Upstream>,
    /// Bytes written when the memory of history and events was last measured.
    measured_at: u64,
    /// Calls of webhooks that were begun, and those without an outcome.
    calls: u64,
    calling: BTreeMap<CallId, Calling>,
    chance: u64,
    now: Duration,
}

impl ApiServer {
    /// Returns an apiserver over `model`, which was built from `settings`. `seed`: for all randomness (lifetimes of watches
    /// without `timeoutSeconds`, generated names).
    fn over(model: Model, settings: ServerSettings, seed: u64) -> Self {
        Self {
            settings,
            model,
            log: Log::default(),
            kept: None,
            followed: None,
            outputs: VecDeque::new(),
            joined: Joined::default(),
            open: BTreeMap::new(),
            by_conn: BTreeSet::new(),
            query_bytes: 0,
            wakes: BTreeSet::new(),
            touched: Vec::new(),
            changed_at: Duration::ZERO,
            aliases: BTreeMap::new(),
            refused_until: Duration::ZERO,
            conns: BTreeMap::new(),
            balancer: None,
            access: None,
            access_settings: AccessSettings::default(),
            authorization: None,
            issuer: Issuer::from_seed(seed),
            users: BTreeMap::new(),
            compaction: None,
            upstream: None,
            measured_at: 0,
            calls: 0,
            calling: BTreeMap::new(),
            chance: seed ^ 0x9E37_79B9_7F4A_7C15,
            now: Duration::ZERO,
        }
    }

    /// Whether a connection is accepted at `now`. A refusal is recorded.
    pub(crate) fn accepts(&mut self, now: Duration) -> bool {
        let accepts = now >= self.refused_until();
        if !accepts {
            self.log.push(now, What::Refused);
        }
        accepts
    }

    /// Time until which connections are refused; in the past if they are accepted.
    pub(crate) fn refused_until(&self) -> Duration {
        let down_until = self.balancer.as_ref().map(Balancer::refused_until);
        self.refused_until.max(down_until.unwrap_or_default())
    }

    /// Refuses connections until `until`.
    pub(crate) fn refuse_until(&mut self, until: Duration) {
        self.refused_until = until;
    }

    /// Begins a turn, and returns its time: `now`, or the time of the previous turn if that is later.
    pub(crate) fn begin_turn(&mut self, now: Duration) -> Duration {
        let now = now.max(self.now);
        self.now = now;
        self.log.trim();
        if self.model.storage_mut().follow(now) {
            self.touch_all();
        }
        now
    }

    /// Time of the current turn.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// Returns the next output, if any.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Next deadline.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let compaction = self.compaction.as_ref().map(Compaction::poll_timeout);
        let wake = self.wakes.first().map(|(at, _)| *at);
        let caches = self.model.storage().poll_timeout();
        [wake, compaction, caches].into_iter().flatten().min()
    }

    /// Limits the trace to the newest records, at least `kept` of them.
    pub(crate) fn keep(&mut self, kept: usize) {
        self.log.kept = Some(kept);
    }

    /// Keeps content in the trace from now on.
    pub(crate) fn keep_content(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Records content that no write in the trace has, if the trace keeps content. `text`: JSON, or anything.
    fn record_sent(&mut self, stream: StreamId, resource: &str, text: &[u8]) {
        let Some(kept) = &self.kept else { return };
        let json = serde_json::from_slice(text);
        let json = json.unwrap_or_else(|_| String::from_utf8_lossy(text).into_owned().into());
        if let Some(content) = kept.of(resource, json) {
            self.log.push(self.now, What::Sent { stream, content });
        }
    }

    /// Appends a record of something outside of the apiserver.
    pub(crate) fn record(&mut self, now: Duration, what: What) {
        self.log.push(now, what);
    }

    /// Returns the trace, without trimmed records.
    pub(crate) fn records(&self) -> &[Record] {
        &self.log.records
    }

    /// Returns the records from number `seq` on, without trimmed records.
    pub(crate) fn records_from(&self, seq: u64) -> &[Record] {
        let known = seq.saturating_sub(self.log.forgotten);
        let from = usize::try_from(known)
            .unwrap_or(usize::MAX)
            .min(self.log.records.len());
        &self.log.records[from..]
    }

    /// Consumes the server and returns its trace.
    pub(crate) fn into_records(self) -> Vec<Record> {
        self.log.records
    }

    /// Sequence number of the next record.
    pub(crate) fn next_record(&self) -> u64 {
        self.log.forgotten + self.log.records.len() as u64
    }

    /// Time of the last change queued on any watch; zero if there was none.
    pub(crate) fn changed_at(&self) -> Duration {
        self.changed_at
    }

    // ---- inputs

    /// A connection to `replica` was accepted; `peer`: remote port, `None` without a socket.
    pub(crate) fn connected(&mut self, now: Duration, conn: ConnId, replica: Replica, peer: Option<u16>) {
        let replica = match &mut self.balancer {
            Some(balancer) => balancer.assign(now),
            None => replica,
        };
        self.conns.insert(conn, replica);
        self.log.push(now, What::Connected { conn, replica, peer });
    }

    /// The client presented a certificate with the identity `user`.
    pub(crate) fn authenticated(&mut self, conn: ConnId, user: User) {
        tracing::debug!(conn = conn.0, user = user.name, "a client certificate was shown");
        self.users.insert(conn, user.into());
    }

    /// Parses and records a request. [`ApiServer::decide`] computes its response.
    pub(crate) fn receive(&mut self, now: Duration, stream: StreamId, conn: ConnId, request: HttpRequest) {
        let query = request.query.pairs();
        let Reading {
            source,
            mut verb,
            form,
            collection,
            continue_token,
            violations,
        } = match &self.upstream {
            None => self.read(conn, &request, query),
            Some(upstream) => {
                let (token, unaliased) = self.unaliased(query);
                let query = unaliased.as_deref().unwrap_or(request.query.as_str());
                upstream.read(&request, self.users.get(&conn).map(|user| &**user), token, query)
            }
        };
        let is_rejected = verb == Verb::WatchList && self.settings.streaming_lists == Some(false);
        let only_probes = is_rejected && !self.settings.rejected_streams_count;
        if only_probes {
            verb = Verb::Other;
        }
        self.log.push(
            now,
            What::Request {
                stream,
                conn,
                verb,
                method: request.method.as_str().to_owned(),
                path: clipped(&request.path),
                query: clipped_query(query),
                accept: header(&request, http::header::ACCEPT),
                user_agent: header(&request, http::header::USER_AGENT),
                replica: self.replica_of(conn),
                violations,
            },
        );

        self.by_conn.insert((conn, stream));
        self.query_bytes += request.query.as_str().len();
        self.touched.push(stream);
        let asked = Asked {
            form,
            collection,
            continue_token,
            at: now,
            verb,
            only_probes,
            conn,
            request,
        };
        self.open.insert(
            stream,
            Box::new(Open {
                exchange: Exchange::new(stream),
                source,
                asked,
                edit: None,
                wake: None,
                calls: 0,
            }),
        );
    }

    /// The response was aborted by `by`.
    pub(crate) fn broke_off(&mut self, now: Duration, stream: StreamId, by: Side) {
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

    /// The connection was closed, which aborts its responses.
    pub(crate) fn disconnected(&mut self, now: Duration, conn: ConnId, by: Side) {
        let of_it = (conn, StreamId(0))..=(conn, StreamId(u64::MAX));
        let streams: Vec<StreamId> = self.by_conn.range(of_it).map(|(_, stream)| *stream).collect();
        for stream in streams {
            self.broke_off(now, stream, by);
        }
        self.users.remove(&conn);
        self.conns.remove(&conn);
        self.log.push(now, What::Disconnected { conn, by });
    }

    /// Returns an open request.
    pub(crate) fn asked(&self, stream: StreamId) -> Option<&Asked> {
        self.open.get(&stream).map(|open| &open.asked)
    }

    /// Whether the response is open.
    pub(crate) fn is_open(&self, stream: StreamId) -> bool {
        self.open.contains_key(&stream)
    }

    /// Returns the watches that can still send events, in order of their requests.
    pub(crate) fn watches(&self) -> impl DoubleEndedIterator<Item = (StreamId, &Asked)> + Clone {
        self.open
            .iter()
            .filter(|(_, open)| open.source.is_watch() && !open.exchange.is_over())
            .map(|(stream, open)| (*stream, &open.asked))
    }

    /// Replica of a connection.
    pub(crate) fn replica_of(&self, conn: ConnId) -> Replica {
        self.conns.get(&conn).copied().unwrap_or_default()
    }

    /// Reads a request for the model.
    fn read(&self, conn: ConnId, request: &HttpRequest, query: &[(String, String)]) -> Reading {
        let (parsed, continue_token) = self.parse(conn, request, query);
        let known = parsed.as_ref().ok().map(|(parsed, _)| parsed);
        Reading {
            verb: verb(known, request, query),
            form: known.map_or(Representation::Full, form_of),
            collection: known.and_then(collection_of).cloned(),
            continue_token,
            violations: api::violations(&request.method, &request.path, query, self.model.catalog()),
            source: match parsed {
                Ok((request, user)) => Source::Undecided(request, user),
                Err(refusal) => Source::Refused(refusal),
            },
        }
    }

    /// Returns the real continue token of a query, and the query with it if that has an invented one.
    fn unaliased(&self, query: &[(String, String)]) -> (Option<String>, Option<String>) {
        let sent = query.iter().find(|(name, _)| name == "continue");
        let sent = sent.map(|(_, token)| token);
        let Some(original) = sent.and_then(|token| self.aliases.get(token)) else {
            return (sent.cloned(), None);
        };
        let query: Vec<(String, String)> = query
            .iter()
            .map(|(name, value)| {
                let value = if name == "continue" { original } else { value };
                (name.clone(), value.clone())
            })
            .collect();
        (Some(original.clone()), Some(encode_query(&query)))
    }

    /// Admits the request, and parses it with invented continue tokens replaced by the real ones.
    fn parse(
        &self,
        conn: ConnId,
        request: &HttpRequest,
        query: &[(String, String)],
    ) -> (Parsed, Option<String>) {
        let (token, unaliased) = self.unaliased(query);
        let admitted = self.admit(conn, request);
        let user = match admitted.and_then(|user| self.takes_query(request).map(|()| user)) {
            Ok(user) => user,
            Err(refusal) => return (Err(refusal), token),
        };
        let for_user = |parsed: Request| (parsed, user);
        let catalog = self.model.catalog();
        let watch_list = self.settings.streaming_lists != Some(false);
        let parsed = match unaliased {
            None => api::parse(request, catalog, watch_list),
            Some(query) => {
                let query = query.into();
                let request = HttpRequest {
                    query,
                    ..request.clone()
                };
                api::parse(&request, catalog, watch_list)
            }
        };
        (parsed.map(for_user), token)
    }

    /// Removes a request. Returns false if it was not open.
    fn close(&mut self, stream: StreamId) -> bool {
        let open = self.open.remove(&stream);
        if let Some(open) = &open {
            self.by_conn.remove(&(open.asked.conn, stream));
            self.query_bytes -= open.asked.request.query.as_str().len();
        }
        open.is_some()
    }

    /// Lifetime of a watch without `timeoutSeconds`: random in [1800, 3600) s, as with `--min-request-timeout`.
    fn draw_lifetime(&mut self) -> Duration {
        Duration::from_secs(1800 + self.draw() % 1800)
    }

    /// Returns the next random number.
    fn draw(&mut self) -> u64 {
        // xorshift64*: randomness comes from the seed alone.
        self.chance ^= self.chance >> 12;
        self.chance ^= self.chance << 25;
        self.chance ^= self.chance >> 27;
        self.chance.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }
}

fn header(request: &HttpRequest, name: http::HeaderName) -> Option<String> {
    request
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(clipped)
}
