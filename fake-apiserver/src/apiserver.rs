//! An apiserver without its sockets and without a scenario: it authenticates, authorizes, and answers every request from
//! the model. No I/O, no clock.
//!
//! It is driven by [`Server`](crate::server::Server), which hands in what happened and may ask for deviations: of an answer
//! (`deviate.rs`), of the truth (`truth.rs`). Every decision is appended to the trace (`log.rs`) at the moment it is carried
//! out. It must not know why a deviation is wanted: no step, no rule, no goal of a run.

mod admission;
mod answer;
mod asking;
mod backlog;
mod compaction;
mod control;
mod deviate;
mod exchange;
mod flow;
mod joined;
mod log;
mod memory;
mod output;
mod review;
mod scripted;
mod truth;
mod write;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use apimachinery::Version;
use apimachinery::options::{Collection, Form, GetRequest, ListRequest};
use asking::{collection_of, encode_query, form_of, verb};
use compaction::Compaction;
pub use control::{Control, StreamView};
use exchange::Exchange;
pub(crate) use flow::Observer;
use joined::Joined;
use log::{Log, clipped, clipped_query};
#[cfg(feature = "net")]
pub(crate) use memory::ANSWER_BYTES_MAX;
pub use memory::MemoryView;
pub use output::Output;
use scenario::{PageEdit, ServerSettings};
use trace::fault::Ending;
use trace::record::{ConnId, Record, Replica, Side, StreamId, Verb, What};
pub(crate) use truth::Followed;

use crate::api;
use crate::api::access::Issuer;
use crate::api::{Access, Answer, HttpRequest, Request, StyledText, User};
use crate::model::{Model, PageText, WatchSession};

/// What an exchange is answered from.
#[derive(Debug)]
enum Source {
    /// Nothing is decided yet: deviations come first.
    Undecided(Request),
    /// The request is one the truth refuses; deviations come before that, too.
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
    asked: Asked,
    /// How the LIST page is to be changed.
    edit: Option<PageEdit>,
    /// When its watch wants to be looked at, as `wakes` has it.
    wake: Option<Duration>,
}

/// What of a request is needed after it is parsed.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) request: HttpRequest,
    pub(crate) conn: ConnId,
    form: Form,
    pub(crate) collection: Option<Collection>,
    /// The continue token it carried, as the truth knows it.
    continue_token: Option<String>,
    at: Duration,
    /// What it is counted as.
    pub(crate) verb: Verb,
    /// A streaming list where there are none: no rule concerns it.
    pub(crate) only_probes: bool,
}

impl Asked {
    /// Nothing more will be answered by what the head of the request said. An idle watch must not hold the buffer it was
    /// read into; whose watch it is may still be asked.
    fn forget_headers(&mut self) {
        let agent = self.request.headers.remove(http::header::USER_AGENT);
        self.request.headers = http::HeaderMap::new();
        if let Some(agent) = agent.and_then(|agent| http::HeaderValue::from_bytes(agent.as_bytes()).ok()) {
            self.request.headers.insert(http::header::USER_AGENT, agent);
        }
    }

    /// The User-Agent header.
    pub(crate) fn user_agent(&self) -> Option<String> {
        header(&self.request, "user-agent")
    }
}

/// An apiserver without its sockets.
#[derive(Debug)]
pub(crate) struct ApiServer {
    settings: ServerSettings,
    model: Model,
    log: Log,
    /// What a client was told to keep.
    followed: Option<Followed>,
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
    /// When a watch was last given a change.
    changed_at: Duration,
    /// Continue tokens that were made up, and the truthful ones they stand for.
    aliases: BTreeMap<String, String>,
    refused_until: Duration,
    /// Connections to the secondary replica.
    at_the_secondary: BTreeSet<ConnId>,
    /// `None`: no authentication and no authorization.
    access: Option<Access>,
    /// Who signs the tokens of service accounts.
    issuer: Issuer,
    /// Who is at the other end, where a certificate says so.
    users: BTreeMap<ConnId, User>,
    /// Of a server that runs for long.
    compaction: Option<Compaction>,
    chance: u64,
    now: Duration,
}

impl ApiServer {
    /// One over `model`, which was made by `settings`. `seed` decides what chance decides on a real server (how long a
    /// watch without `timeoutSeconds` lives).
    fn over(model: Model, settings: ServerSettings, seed: u64) -> Self {
        Self {
            settings,
            model,
            log: Log::default(),
            followed: None,
            outputs: VecDeque::new(),
            joined: Joined::default(),
            open: BTreeMap::new(),
            by_conn: BTreeSet::new(),
            query_bytes: 0,
            wakes: BTreeSet::new(),
            touched: BTreeSet::new(),
            changed_at: Duration::ZERO,
            aliases: BTreeMap::new(),
            refused_until: Duration::ZERO,
            at_the_secondary: BTreeSet::new(),
            access: None,
            issuer: Issuer::from_seed(seed),
            users: BTreeMap::new(),
            compaction: None,
            chance: seed ^ 0x9E37_79B9_7F4A_7C15,
            now: Duration::ZERO,
        }
    }

    /// May a connection come in at `now`? False while connections are refused, and that is recorded.
    pub(crate) fn accepts(&mut self, now: Duration) -> bool {
        let accepts = now >= self.refused_until;
        if !accepts {
            self.log.push(now, What::Refused);
        }
        accepts
    }

    /// Until when connections are refused; in the past if they are not.
    pub(crate) fn refused_until(&self) -> Duration {
        self.refused_until
    }

    /// Refuses connections until then.
    pub(crate) fn refuse_until(&mut self, until: Duration) {
        self.refused_until = until;
    }

    /// A turn begins at `now`, or at the last turn's time if that is later.
    pub(crate) fn begin_turn(&mut self, now: Duration) -> Duration {
        let now = now.max(self.now);
        self.now = now;
        self.log.trim();
        if self.model.storage_mut().follow(now) {
            self.touch_all();
        }
        now
    }

    /// The time of this turn.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// The next thing to do, if any.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to look again, if nothing happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let compaction = self.compaction.as_ref().map(Compaction::poll_timeout);
        let wake = self.wakes.first().map(|(at, _)| *at);
        let caches = self.model.storage().poll_timeout();
        [wake, compaction, caches].into_iter().flatten().min()
    }

    /// Keeps only the newest records, `kept` of them at least.
    pub(crate) fn keep(&mut self, kept: usize) {
        self.log.kept = Some(kept);
    }

    /// Appends to the trace what happened at `now` beside the apiserver.
    pub(crate) fn record(&mut self, now: Duration, what: What) {
        self.log.push(now, what);
    }

    /// The trace so far, without what was forgotten.
    pub(crate) fn records(&self) -> &[Record] {
        &self.log.records
    }

    /// The records from this number on, without what was forgotten.
    pub(crate) fn records_from(&self, seq: u64) -> &[Record] {
        let known = seq.saturating_sub(self.log.forgotten);
        let from = usize::try_from(known)
            .unwrap_or(usize::MAX)
            .min(self.log.records.len());
        &self.log.records[from..]
    }

    /// The trace, taken out.
    pub(crate) fn into_records(self) -> Vec<Record> {
        self.log.records
    }

    /// The number the next record will have.
    pub(crate) fn next_record(&self) -> u64 {
        self.log.forgotten + self.log.records.len() as u64
    }

    /// When a watch was last given a change of the truth; zero if none was.
    pub(crate) fn changed_at(&self) -> Duration {
        self.changed_at
    }

    // ---- what happened

    /// A connection came in, to `replica`, from port `peer`.
    pub(crate) fn connected(&mut self, now: Duration, conn: ConnId, replica: Replica, peer: Option<u16>) {
        if replica == Replica::Secondary {
            self.at_the_secondary.insert(conn);
        }
        self.log.push(now, What::Connected { conn, replica, peer });
    }

    /// The client of a connection presented a certificate that names `user`.
    pub(crate) fn authenticated(&mut self, conn: ConnId, user: User) {
        tracing::debug!(conn = conn.0, user = user.name, "a client certificate was shown");
        self.users.insert(conn, user);
    }

    /// Takes in a request. Nothing is answered before [`ApiServer::decide`].
    pub(crate) fn receive(&mut self, now: Duration, stream: StreamId, conn: ConnId, request: HttpRequest) {
        let query = api::query_pairs(&request.query);
        let (mut parsed, continue_token) = self.parse(conn, &request, &query);
        let mut verb = verb(&parsed, &request, &query);
        let only_probes = verb == Verb::WatchList && self.settings.streaming_lists == Some(false);
        if only_probes {
            if parsed.is_ok() {
                // The last minor whose gate is off by default: its refusal is that of every later one.
                parsed = api::parse(&request, self.model.catalog(), Version::V1_33);
            }
            verb = Verb::Other;
        }
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
                replica: self.replica_of(conn),
                violations: api::violations(
                    &request.method,
                    &request.path,
                    &query,
                    self.model.catalog(),
                    self.settings.version,
                ),
            },
        );

        self.by_conn.insert((conn, stream));
        self.query_bytes += request.query.len();
        self.touched.insert(stream);
        let asked = Asked {
            form: parsed.as_ref().map_or(Form::Full, form_of),
            collection: parsed.as_ref().ok().and_then(collection_of).cloned(),
            continue_token,
            at: now,
            verb,
            only_probes,
            conn,
            request,
        };
        let source = match parsed {
            Ok(request) => Source::Undecided(request),
            Err(refusal) => Source::Refused(refusal),
        };
        self.open.insert(
            stream,
            Box::new(Open {
                exchange: Exchange::new(stream),
                source,
                asked,
                edit: None,
                wake: None,
            }),
        );
    }

    /// An answer was given up before its end, by that side.
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

    /// A connection is gone, and with it the answers on it.
    pub(crate) fn disconnected(&mut self, now: Duration, conn: ConnId, by: Side) {
        let of_it = (conn, StreamId(0))..=(conn, StreamId(u64::MAX));
        let streams: Vec<StreamId> = self.by_conn.range(of_it).map(|(_, stream)| *stream).collect();
        for stream in streams {
            self.broke_off(now, stream, by);
        }
        self.users.remove(&conn);
        self.at_the_secondary.remove(&conn);
        self.log.push(now, What::Disconnected { conn, by });
    }

    /// What was asked, while the answer is open.
    pub(crate) fn asked(&self, stream: StreamId) -> Option<&Asked> {
        self.open.get(&stream).map(|open| &open.asked)
    }

    /// Is the answer open?
    pub(crate) fn is_open(&self, stream: StreamId) -> bool {
        self.open.contains_key(&stream)
    }

    /// The watches that can still say something, in the order of their requests.
    pub(crate) fn watches(&self) -> impl DoubleEndedIterator<Item = (StreamId, &Asked)> {
        self.open
            .iter()
            .filter(|(_, open)| matches!(open.source, Source::Watch(_)) && !open.exchange.is_over())
            .map(|(stream, open)| (*stream, &open.asked))
    }

    /// The watch opened last, among those that can still say something.
    pub(crate) fn newest_watch(&self) -> Option<StreamId> {
        self.watches().next_back().map(|(stream, _)| stream)
    }

    /// The port a connection came to.
    pub(crate) fn replica_of(&self, conn: ConnId) -> Replica {
        if self.at_the_secondary.contains(&conn) {
            Replica::Secondary
        } else {
            Replica::Primary
        }
    }

    /// Reads the request as the truth does: tokens that were made up are replaced by those they stand for.
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
        let (catalog, version) = (self.model.catalog(), self.settings.version);
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

    /// Forgets a request. False if it is not open.
    fn close(&mut self, stream: StreamId) -> bool {
        let open = self.open.remove(&stream);
        if let Some(open) = &open {
            self.by_conn.remove(&(open.asked.conn, stream));
            self.query_bytes -= open.asked.request.query.len();
        }
        open.is_some()
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
