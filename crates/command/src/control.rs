//! The control API: the same verbs as `ctl`, over HTTP on a separate loopback port, for tests in any language.
//!
//! It forwards requests to the server and returns its responses; rules are parsed and executed elsewhere. Every request needs
//! the token, because rules change what clients receive. docs/control-api.md is its manual.

mod answer;
mod history;
mod openapi;
mod page;
mod trace;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_apiserver::net::Edge;
use fake_apiserver::record::What;
use fake_apiserver::scenario::parse_rule;
use fake_apiserver::server::{MemoryView, Ruled, Server};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use self::answer::{ControlResponse, Refusal, allowed, json_answer};
pub(crate) use self::openapi::document as openapi;
pub(crate) use self::page::url as page_url;
use crate::Failure;
use crate::judging::Judge;
use crate::watches::{Filter, Watches};

/// Maximum length of a body: a rule can contain objects.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Timeout for the head of a request on a connection, and for a body.
const REQUEST_WAIT: Duration = Duration::from_secs(30);

/// Maximum number of connections. Tests and `ctl` use one per request. A further one replaces the oldest that never sent the
/// token, or waits until one ends.
const CONNECTIONS_MAX: usize = 256;

/// Maximum number of watches in a response, unless the request has another limit.
const WATCHES_LISTED: usize = 500;

/// Delay after a failed accept: the limit of open files is reached, and an immediate retry would fail too.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Information about the server.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// Kubernetes minor version.
    pub(crate) kubernetes: String,
    /// What is served: the id of a scenario, or the number of objects.
    pub(crate) what: String,
    /// Whether an upstream answers the requests.
    pub(crate) forwards: bool,
    /// Names and addresses of the replicas.
    pub(crate) servers: Vec<(String, String)>,
    /// Path of the kubeconfig.
    pub(crate) kubeconfig: String,
}

/// A listening control API.
pub(crate) struct Control {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

/// State shared by all requests.
struct Room {
    edge: Edge,
    token: String,
    about: About,
    judge: Judge,
    watches: Watches,
    /// The live view, if it is served.
    page: Option<report::live::Page>,
}

impl Control {
    /// Listens on a loopback port; 0 selects a free one.
    ///
    /// # Errors
    ///
    /// The port is in use.
    pub(crate) async fn listen(port: u16, token: String) -> Result<Self, Failure> {
        let refused =
            |error| Failure::System(format!("cannot listen on 127.0.0.1:{port} for control"), error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self {
            listener,
            address,
            token,
        })
    }

    /// Returns its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns its token.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Serves until dropped. `shows_page`: with the live view.
    pub(crate) async fn serve(
        self,
        edge: Edge,
        about: About,
        judge: Judge,
        watches: Watches,
        shows_page: bool,
    ) {
        let page = shows_page.then(|| edge.steer(|server, _| page::of(server)));
        let room = Arc::new(Room {
            edge,
            token: self.token,
            about,
            judge,
            watches,
            page: page.flatten(),
        });
        let mut connections = Connections::default();
        let mut failed = false;
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept(), if !failed && connections.can_grow() => accepted,
                Some(over) = connections.tasks.join_next() => {
                    connections.left(over.ok());
                    continue;
                }
                () = pause(), if failed => {
                    failed = false;
                    continue;
                }
            };
            let socket = match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    tracing::warn!(%error, "a control connection could not be accepted");
                    failed = true;
                    continue;
                }
            };
            let room = room.clone();
            let trusted = Arc::new(AtomicBool::new(false));
            connections.admit(trusted.clone(), async move {
                let service = service_fn(move |request| answer(room.clone(), trusted.clone(), request));
                let served = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(REQUEST_WAIT)
                    .serve_connection(TokioIo::new(socket), service)
                    .await;
                if let Err(error) = served {
                    tracing::debug!(%error, "a control connection failed");
                }
            });
        }
    }
}

/// The open connections.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<u64>,
    /// In the order in which they were accepted; true once a request on it had the token.
    open: BTreeMap<u64, (AbortHandle, Arc<AtomicBool>)>,
    accepted: u64,
}

impl Connections {
    /// Returns whether one more can be accepted.
    fn can_grow(&self) -> bool {
        self.open.len() < CONNECTIONS_MAX || self.strange().is_some()
    }

    /// Returns the oldest connection without a request that had the token.
    fn strange(&self) -> Option<u64> {
        let mut strange = self
            .open
            .iter()
            .filter(|(_, (_, trusted))| !trusted.load(Ordering::Relaxed));
        strange.next().map(|(number, _)| *number)
    }

    /// Serves a connection.
    fn admit(&mut self, trusted: Arc<AtomicBool>, serve: impl Future<Output = ()> + Send + 'static) {
        if self.open.len() >= CONNECTIONS_MAX
            && let Some((task, _)) = self.strange().and_then(|number| self.open.remove(&number))
        {
            task.abort();
        }
        let number = self.accepted;
        self.accepted += 1;
        let task = self.tasks.spawn(async move {
            serve.await;
            number
        });
        self.open.insert(number, (task, trusted));
    }

    /// A connection ended; `None`: it was aborted, and is removed already, or its task panicked.
    fn left(&mut self, number: Option<u64>) {
        match number {
            Some(number) => drop(self.open.remove(&number)),
            None => self.open.retain(|_, (task, _)| !task.is_finished()),
        }
    }
}

async fn answer(
    room: Arc<Room>,
    trusted: Arc<AtomicBool>,
    request: Request<Incoming>,
) -> Result<ControlResponse, Infallible> {
    let answered = route(&room, &trusted, request).await;
    Ok(page::secured(answered.unwrap_or_else(Refusal::into_answer)))
}

async fn route(
    room: &Arc<Room>,
    trusted: &AtomicBool,
    request: Request<Incoming>,
) -> Result<ControlResponse, Refusal> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_end_matches('/').to_owned();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    page::from_here(&head.headers, segments == [""])?;
    if let Some(page) = room.page.as_ref().filter(|_| segments == [""]) {
        allowed(&head.method, &[Method::GET])?;
        return Ok(page::answer(page));
    }
    if segments == ["v1", "openapi.json"] && head.method == Method::GET {
        return Ok(json_answer(200, &openapi::document()));
    }
    answer::authenticated(&head.headers, &room.token)?;
    trusted.store(true, Ordering::Relaxed);
    let query = head.uri.query().unwrap_or_default().to_owned();
    match segments.as_slice() {
        ["v1"] => {
            allowed(&head.method, &[Method::GET])?;
            Ok(json_answer(200, &state(room)?))
        }
        ["v1", "streams"] => {
            allowed(&head.method, &[Method::GET])?;
            let streams = steered(room.edge.steer(|server, now| server.streams(now)))?;
            Ok(json_answer(200, &json!({ "streams": streams })))
        }
        ["v1", "watches"] => {
            allowed(&head.method, &[Method::GET])?;
            watches(room, &query).await
        }
        ["v1", "history"] => {
            allowed(&head.method, &[Method::POST])?;
            history(room, &text(body).await?).await
        }
        ["v1", "rules"] => {
            allowed(&head.method, &[Method::GET, Method::POST, Method::DELETE])?;
            if head.method == Method::POST {
                return add(room, &text(body).await?).await;
            }
            let clears = head.method == Method::DELETE;
            let rules = steered(room.edge.steer(|server, _| {
                let rules = server.rules();
                if clears {
                    for rule in &rules {
                        server.remove_rule(rule.id);
                    }
                }
                rules
            }))?;
            let key = if clears { "removed" } else { "rules" };
            Ok(json_answer(200, &json!({ key: rules })))
        }
        ["v1", "rules", id] => {
            allowed(&head.method, &[Method::DELETE])?;
            let number: u64 = id.parse().map_err(|_| {
                Refusal::bad(format!("`{id}` is not the number of a rule")).hint("GET /v1/rules lists them")
            })?;
            let removed = steered(room.edge.steer(|server, _| server.remove_rule(number)))?;
            let removed = removed.ok_or_else(|| {
                Refusal::new(404, format!("rule not found: {number}"))
                    .hint("GET /v1/rules lists them; a rule is removed after its last match")
            })?;
            Ok(json_answer(200, &json!({ "removed": [removed] })))
        }
        ["v1", "reset"] => {
            allowed(&head.method, &[Method::POST])?;
            steered(room.edge.steer(|server, now| server.reset(now)))?;
            Ok(json_answer(200, &state(room)?))
        }
        ["v1", "wait"] => {
            allowed(&head.method, &[Method::POST])?;
            wait::wait(room.edge.clone(), &text(body).await?).await
        }
        ["v1", "trace"] => {
            allowed(&head.method, &[Method::GET])?;
            trace::follow(room.edge.clone(), room.watches.clone(), &query)
        }
        ["v1", "verdict"] => {
            allowed(&head.method, &[Method::GET])?;
            Ok(json_answer(200, &json!(room.judge.verdict())))
        }
        _ => Err(Refusal::new(404, format!("there is no {path}"))
            .hint(
            "there are /v1, /v1/streams, /v1/watches, /v1/rules, /v1/wait, /v1/trace, /v1/history, /v1/verdict, \
             /v1/reset, /v1/openapi.json; / is the live view of a server started with --ui",
        )),
    }
}

/// Returns the open watches that a query asks for.
async fn watches(room: &Room, query: &str) -> Result<ControlResponse, Refusal> {
    let (mut filter, mut limit) = (Filter::default(), WATCHES_LISTED);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "client" | "resource" => trace::read_filter(&mut filter, name, value),
            "limit" => {
                let given: usize = value
                    .parse()
                    .map_err(|_| Refusal::bad(format!("limit={value}: expected a number of watches")))?;
                limit = if given > 0 { given } else { WATCHES_LISTED };
            }
            _ => {
                return Err(Refusal::bad(format!("unknown parameter {name}={value}"))
                    .hint("expected client=TEXT, resource=PLURAL, limit=NUMBER"));
            }
        }
    }
    catch_up(&room.edge, &room.watches).await;
    let missed = room.watches.missed();
    let (now, shared, open) = steered(room.edge.steer(|server, now| {
        let open = missed.then(|| server.streams(now));
        (now, shared_plurals(server), open)
    }))?;
    if let Some(open) = open {
        room.watches.reconcile(now, &open);
    }
    let view = room.watches.view(now, &filter, limit, &shared);
    Ok(json_answer(200, &json!(view)))
}

/// Lets the watches take the kept records, a part at a time: the server runs between.
async fn catch_up(edge: &Edge, watches: &Watches) {
    while edge.read_records(0, |records| watches.hear(records)) {
        tokio::task::yield_now().await;
    }
}

/// Returns the plurals that several groups serve.
fn shared_plurals(server: &Server) -> BTreeSet<String> {
    let mut groups: BTreeMap<&str, &str> = BTreeMap::new();
    let kinds = server.catalog().kinds().iter();
    kinds
        .filter(|kind| {
            let group = groups.entry(&kind.plural).or_insert(&kind.group);
            *group != kind.group
        })
        .map(|kind| kind.plural.to_string())
        .collect()
}

/// Returns the history of an object.
async fn history(room: &Room, text: &str) -> Result<ControlResponse, Refusal> {
    let query = serde_saphyr::from_str(text).map_err(|error| {
        Refusal::bad(error.to_string())
            .hint(r#"expected an object: {"resource": "deployments.apps", "object": "default/web"}"#)
    })?;
    catch_up(&room.edge, &room.watches).await;
    let history = room.edge.read_records(0, |records| {
        room.watches
            .known(records, |known| history::history(records, known, query))
    });
    Ok(json_answer(200, &json!(history)))
}

/// Adds a rule. Its mistakes are returned with their positions.
///
/// # Errors
/// Also the reason of the upstream, if an object cannot be written to it.
async fn add(room: &Room, text: &str) -> Result<ControlResponse, Refusal> {
    let served = steered(room.edge.steer(|server, _| server.catalog().clone()))?;
    let rule = parse_rule(Path::new("rule"), text, &served).map_err(|errors| Refusal::mistakes(&errors))?;
    let (ruled, next) = steered(room.edge.steer(|server, now| {
        let next = server.next_record();
        (server.add_rule(now, rule), next)
    }))?;
    match ruled {
        Ok(Ruled::Standing(rule)) => Ok(json_answer(201, &json!({ "rule": rule, "nextRecord": next }))),
        Ok(Ruled::Done {
            streams,
            does,
            writes,
        }) => {
            let mut answer = json!({ "done": does, "streams": streams, "nextRecord": next });
            if !writes.is_empty() {
                answer["writes"] = json!(written(room, next, writes).await?);
            }
            Ok(json_answer(200, &answer))
        }
        Err(refused) => Err(Refusal::new(409, refused.to_string())
            .hint("GET /v1/streams lists the open watches; `when` makes a rule wait for a request")),
    }
}

/// Waits until objects are written to the upstream, and returns what was done to each.
///
/// # Errors
/// One was not written, with the reason of the upstream.
async fn written(room: &Room, since: u64, writes: Vec<u64>) -> Result<Vec<String>, Refusal> {
    let count = writes.len();
    let records = steered(room.edge.upstream_writes(since, writes).await)?;
    let (mut done, mut failures) = (Vec::new(), Vec::new());
    for record in records {
        if let What::UpstreamWrite {
            object, how, failure, ..
        } = record.what
        {
            match failure {
                None => done.push(format!("{object} {how}")),
                Some(why) => failures.push(format!("{object} not {how}: {why}")),
            }
        }
    }
    if failures.is_empty() {
        return Ok(done);
    }
    let hint = match done.as_slice() {
        [] => "nothing was written to the cluster".to_owned(),
        done => format!("{} of {count} were written: {}", done.len(), done.join(", ")),
    };
    Err(Refusal::new(502, failures.join("; ")).hint(hint))
}

fn state(room: &Room) -> Result<Value, Refusal> {
    let (revision, next, rules, streams) = steered(room.edge.steer(|server, _| {
        (
            server.revision(),
            server.next_record(),
            server.rules().len(),
            server.open_streams(),
        )
    }))?;
    let servers: Vec<Value> = room
        .about
        .servers
        .iter()
        .map(|(replica, url)| json!({ "replica": replica, "url": url }))
        .collect();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "kubernetes": room.about.kubernetes,
        "servers": servers,
        "kubeconfig": room.about.kubeconfig,
        "resourceVersion": revision.to_string(),
        "nextRecord": next,
        "rules": rules,
        "openStreams": streams,
        "what": room.about.what,
        "origin": if room.about.forwards { "upstream" } else { "model" },
        "memory": room.edge.memory().map(|server| memory(server, room.judge.bytes())),
    }))
}

/// Returns the memory use of the server and of the judge, which share a budget.
fn memory(server: MemoryView, judge: usize) -> Value {
    let mut memory = json!(server);
    memory["judge"] = json!(judge);
    memory["budget"] = json!(server.budget + judge::wire::BYTES_MAX);
    memory
}

fn steered<T>(answer: Option<T>) -> Result<T, Refusal> {
    answer.ok_or_else(|| Refusal::new(503, "the server is stopping"))
}

#[expect(clippy::disallowed_methods, reason = "the edge carries out its own back-off")]
async fn pause() {
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

async fn text(body: Incoming) -> Result<String, Refusal> {
    let whole = tokio::time::timeout(REQUEST_WAIT, Limited::new(body, BODY_BYTES_MAX).collect());
    let body = whole
        .await
        .map_err(|_| {
            Refusal::new(
                408,
                format!("the body did not arrive within {} s", REQUEST_WAIT.as_secs()),
            )
        })?
        .map_err(|_| Refusal::new(413, format!("a body has at most {BODY_BYTES_MAX} bytes")))?
        .to_bytes();
    String::from_utf8(body.to_vec()).map_err(|_| Refusal::bad("the body is not UTF-8"))
}
