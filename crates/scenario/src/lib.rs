//! A scenario, parsed and trusted: what is in the store, what the client is told, where the server lies, and what
//! must come of it. Nothing past `scenario::load` asks whether a step is legal.
//!
//! The file's own shape (spans, short forms) is `raw`; [`load`] reads it strictly and turns it into these types, or
//! into *all* of its errors with file, line, column and a hint.

use std::path::PathBuf;
use std::sync::Arc;

pub use apimachinery::Version;
use serde_json::{Map, Value};

pub use self::action::{
    Action, ItemsShape, PageEdit, RawFrame, Reply, ReplyBody, RuleAction, SayAction, SentObject, ShapeAction,
    StatusSpec, TruthAction,
};
pub use self::client::{BackoffSettings, ClientSettings, Contract};
pub use self::errors::{LoadError, LoadErrors, Style};
pub use self::files::{ScenarioFile, find};
pub use self::load::{load, parse, parse_rule, parse_wait};
pub use self::problem::Code;
pub use self::rule::{Named, Rule, RuleTrigger, Sent, Wait, Waiting, Whose};
pub use self::schema::{control_schemas, json_schema};
pub use self::warnings::{Warning, warnings};
pub use self::words::{duration, nearest};

mod action;
pub mod catalogue;
mod check;
mod client;
pub mod edition;
mod errors;
mod excerpt;
mod files;
mod kinds;
mod lines;
mod load;
pub mod matching;
mod problem;
mod raw;
mod read;
pub mod rule;
mod schema;
mod span;
mod tree;
mod validate;
mod warnings;
mod words;

/// A place in a scenario file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
}

/// One behaviour, one file.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// `gone/expired-mid-stream-forces-relist`: the path below the scenarios folder, without its ending.
    pub id: String,
    /// Where it was read from.
    pub path: PathBuf,
    /// The claim, one sentence.
    pub title: String,
    /// The reason the claim matters.
    pub why: String,
    /// Requirement ids (`PAGE-06`) this scenario can tell broken from kept.
    pub covers: Vec<Covered>,
    /// Where it comes from: URLs or `owner/repo#number`.
    pub refs: Vec<String>,
    /// The collection the client is told to watch.
    pub target: Target,
    /// What the server is.
    pub server: ServerSettings,
    /// What the client is told.
    pub client: ClientSettings,
    /// In the store before the client starts, in order of creation.
    pub objects: Vec<Manifest>,
    /// What happens, read top to bottom.
    pub steps: Vec<Step>,
    /// What must come of it.
    pub expect: Expect,
}

impl Scenario {
    /// A scenario in which nothing happens: what a server that only tells the truth plays. It watches the ConfigMaps of
    /// all namespaces, and expects nothing.
    pub fn empty(server: ServerSettings) -> Self {
        Self {
            id: String::new(),
            path: PathBuf::new(),
            title: String::new(),
            why: String::new(),
            covers: Vec::new(),
            refs: Vec::new(),
            target: Target {
                group: String::new(),
                version: "v1".to_owned(),
                plural: "configmaps".to_owned(),
                kind: "ConfigMap".to_owned(),
                namespace: None,
            },
            server,
            client: ClientSettings::default(),
            objects: Vec::new(),
            steps: Vec::new(),
            expect: Expect::default(),
        }
    }
}

/// A requirement id with the place that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// E.g. `PAGE-06`.
    pub id: String,
    /// Where the file says so.
    pub at: Place,
}

/// The collection under watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for core.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `configmaps`.
    pub plural: String,
    /// `ConfigMap`.
    pub kind: String,
    /// `None`: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
}

/// What the server is, where it differs from the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The Kubernetes minor.
    pub version: Version,
    /// The revision the store starts at; the first object written gets the next one. Default 1000.
    pub revision: u64,
    /// Events the watch cache keeps a resource before it evicts the oldest. Default 100.
    pub watch_cache_capacity: usize,
    /// Milliseconds between periodic bookmarks. Default 60 000.
    pub bookmark_interval_ms: u64,
    /// Does etcd tell idle watch caches of writes to other resources, as kubeadm configures it? Without it bookmarks and
    /// reads at `resourceVersion=0` show the last revision the cache had reason to learn. Default true.
    pub progress_notify: bool,
    /// The feature gate `WatchList`. `Some(false)`: a request for a streaming list is refused as with the gate off, and
    /// meets no step, rule or expectation: a client sends it to learn that it has to LIST. Default `None`, as the version
    /// does.
    pub streaming_lists: Option<bool>,
    /// Seconds from 1970 to the moment the server starts: what its times count from. Default 2026-01-01T00:00:00Z.
    pub epoch_seconds: u64,
    /// What is spoken with the client under test.
    pub transport: Transport,
    /// Requests a client may have under way on one HTTP/2 connection. Default 100.
    pub max_concurrent_streams: u32,
}

/// What is spoken with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// HTTP/1.1 over bare TCP.
    #[default]
    Http1,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS, agreed on by ALPN.
    TlsHttp2,
}

impl Transport {
    /// Is there TLS?
    pub fn is_tls(self) -> bool {
        match self {
            Self::Http1 => false,
            Self::TlsHttp1 | Self::TlsHttp2 => true,
        }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            version: Version::default(),
            revision: 1000,
            watch_cache_capacity: 100,
            bookmark_interval_ms: 60_000,
            progress_notify: true,
            streaming_lists: None,
            epoch_seconds: 1_767_225_600,
            transport: Transport::default(),
            max_concurrent_streams: 100,
        }
    }
}

/// How the client under test is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientMode {
    /// `watcher(api, config)`.
    #[default]
    Watcher,
    /// `metadata_watcher(api, config)`.
    Metadata,
    /// `watch_object(api, name)`; the name is in [`ClientSettings::object`].
    Object,
}

/// How the first set is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialList {
    /// LIST, then WATCH.
    #[default]
    ListWatch,
    /// One WATCH with `sendInitialEvents=true`.
    StreamingList,
}

/// Which state a LIST may answer from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListSemantic {
    /// The newest (`resourceVersion` unset).
    #[default]
    MostRecent,
    /// Any (`resourceVersion=0`).
    Any,
}

/// An object to write: the collection it belongs to and its JSON (`apiVersion`, `kind` and `metadata.name` present,
/// `metadata.namespace` filled in for namespaced kinds).
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// API group, empty for core.
    pub group: String,
    /// `configmaps`.
    pub plural: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// The object.
    pub json: Value,
    /// `as:`: the name bound to the resourceVersion this write gets.
    pub binds: Option<String>,
    /// Where the file says so.
    pub at: Place,
}

/// Names one object: by default of the target's kind and namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// API group, empty for core.
    pub group: String,
    /// `configmaps`.
    pub plural: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectName {
    /// `namespace/name`, or `name`.
    pub fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A trigger and what to do when it is met. A step is armed when the one before it is done.
#[derive(Debug, Clone)]
pub struct Step {
    /// Where the step begins.
    pub at: Place,
    /// `as:`. A step that waits for a LIST or a page binds the answer's `$name.rv` and `$name.continue`; any step with
    /// a name can be meant by `before:` and `after:`. What a write binds stands beside the write (`binds`).
    pub name: Option<String>,
    /// When it runs.
    pub when: Trigger,
    /// It is skipped when a step behind it is met first. Never the last step.
    pub optional: bool,
    /// How often a request trigger may be met before the step is done.
    pub times: Times,
    /// What is done, in order. Truth first, then the answer, then the socket: an answer is computed from the truth as
    /// the earlier actions left it.
    pub actions: Vec<Action>,
    /// How long the step may wait before the verdict is *stuck*, in milliseconds. Default 5 min in `sim`, 20 s in `live`.
    pub within_ms: Option<u64>,
}

impl Step {
    /// Does it act on a watch without being triggered by a request, so that one must be open?
    pub fn needs_watch(&self) -> bool {
        !matches!(self.when, Trigger::Request(_)) && self.actions.iter().any(Action::concerns_answer)
    }
}

/// How often a request trigger is met before its step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// So many requests. Default 1.
    Count(u32),
    /// Every matching request in this many milliseconds from the first one.
    For(u64),
}

/// When a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// As soon as the step before it is done.
    Now,
    /// When a matching request arrives, before it is answered.
    Request(RequestTrigger),
    /// When the client reports a matching event (counted from when the step is armed).
    Emitted(EmittedMatch),
    /// So many milliseconds after the step is armed.
    After(u64),
    /// When neither side did anything for so many milliseconds (bookmarks do not count).
    Quiet(u64),
    /// When the client has a watch open and its cache equals the truth. Of a client that reports nothing: when it has a
    /// watch open and neither side did anything for a second.
    Synced,
}

/// Which request meets a step's trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTrigger {
    /// LIST, a later page, WATCH, any.
    pub kind: RequestKind,
    /// The n-th of its kind since the client started; `None`: the next one.
    pub nth: Option<u32>,
    /// Query parameters it must have.
    pub query: Vec<QueryMatch>,
}

/// What kind of request a trigger or an expectation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A LIST without a continue token. Its `nth` counts LIST attempts.
    List,
    /// Page `page` (from 2) of the latest LIST attempt, or of attempt `nth`.
    Page {
        /// The page's number; the first page is 1 and is [`RequestKind::List`].
        page: u32,
    },
    /// A WATCH, streaming lists included.
    Watch,
    /// Any of the above.
    Any,
}

/// A condition on one query parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryMatch {
    /// The parameter's name, e.g. `resourceVersion`.
    pub name: String,
    /// What it must be.
    pub value: Expected,
    /// Where the file says so.
    pub at: Place,
}

/// What a value must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This text, verbatim.
    Is(String),
    /// Anything but this text (absent counts as different).
    Not(Box<Expected>),
    /// Not there, or empty.
    Absent,
    /// There and not empty.
    Present,
    /// What a name stands for when it is compared.
    Ref(Ref),
}

/// `$name`, `$name.rv`, `$name.continue`, `$start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ref {
    /// `$start`: the store's resourceVersion when the client starts.
    Start,
    /// `$name` or `$name.rv`: the resourceVersion of the write, list or watch bookmark named so.
    ResourceVersion(String),
    /// `$name.continue`: the continue token the answer named so carried.
    Continue(String),
}

impl std::fmt::Display for Ref {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start => write!(f, "$start"),
            Self::ResourceVersion(name) => write!(f, "${name}"),
            Self::Continue(name) => write!(f, "${name}.continue"),
        }
    }
}

/// Which reported event is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedMatch {
    /// `init`, `init_apply`, `init_done`, `apply`, `delete` or `error`.
    pub kind: EmittedKind,
    /// The object's name (`name` or `namespace/name`); `None`: any.
    pub name: Option<String>,
    /// Its resourceVersion.
    pub resource_version: Option<Expected>,
    /// The code of an error.
    pub code: Option<u16>,
    /// What the message of an error contains.
    pub message: Option<String>,
    /// The n-th such event; default 1.
    pub nth: u32,
    /// Where the file says so.
    pub at: Place,
}

/// Kube's names for emitted events, and `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words are those of report::Report")]
pub enum EmittedKind {
    Init,
    InitApply,
    InitDone,
    Apply,
    Delete,
    Error,
}

impl EmittedKind {
    /// The word for it in scenario files and transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::InitApply => "init_apply",
            Self::InitDone => "init_done",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::Error => "error",
        }
    }
}

/// What must come of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// These requests, in this order; others may come between them.
    pub requests: Vec<RequestExpect>,
    /// None but those in `requests` (continuation pages count).
    pub only: bool,
    /// Never such a request.
    pub never: Vec<RequestNever>,
    /// At most, or at least, so many such requests.
    pub counts: Vec<RequestCount>,
    /// These events, in this order; others may come between them.
    pub events: Vec<EmittedMatch>,
    /// Never such an event.
    pub never_emitted: Vec<EmittedNever>,
    /// The cache at the end, as names (`name` or `namespace/name`); `None`: whatever the truth is.
    pub cache: Option<Vec<String>>,
    /// Must the cache equal the truth at the end? Default true; `Some(reason)` when it cannot.
    pub not_converged_because: Option<String>,
    /// The end comes at the latest so long after the last step, in milliseconds. Default 180 000 in `sim`.
    pub within_ms: Option<u64>,
    /// After convergence the scenario goes on for so long, in milliseconds, so that what must not happen could.
    pub settle_ms: u64,
    /// Invariants that do not hold here because the server lies, each with the reason.
    pub excused: Vec<Excuse>,
}

/// A kind of request and conditions on its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPattern {
    /// What kind.
    pub kind: RequestKind,
    /// Conditions that must all hold.
    pub query: Vec<QueryMatch>,
}

/// A request that must come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestExpect {
    /// Alternatives; any one suffices. Never empty.
    pub any_of: Vec<RequestPattern>,
    /// `resume:`. It is the next WATCH, and a LIST before it, or a streaming list in its place, is as good as the query.
    pub or_relist: bool,
    /// The HTTP status it was answered with; `None`: any, or no answer at all.
    pub answered: Option<u16>,
    /// Headers it must have: `Accept`, `User-Agent`.
    pub headers: Vec<QueryMatch>,
    /// At least so many milliseconds after the request expected before it.
    pub at_least_after_ms: Option<u64>,
    /// At most so many milliseconds after the request expected before it.
    pub at_most_after_ms: Option<u64>,
    /// `as:`, so that later expectations can name its list.
    pub name: Option<String>,
    /// Where the file says so.
    pub at: Place,
}

/// A request that must not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestNever {
    /// What kind.
    pub kind: RequestKind,
    /// The query of the forbidden request.
    pub query: Vec<QueryMatch>,
    /// Forbidden only after the step of this name was done; `None`: ever.
    pub after: Option<String>,
    /// Where the file says so.
    pub at: Place,
}

/// How many such requests may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCount {
    /// What kind.
    pub kind: RequestKind,
    /// The query.
    pub query: Vec<QueryMatch>,
    /// At least so many.
    pub at_least: Option<u32>,
    /// At most so many.
    pub at_most: Option<u32>,
    /// Where the file says so.
    pub at: Place,
}

/// An event that must not be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedNever {
    /// The event.
    pub event: EmittedMatch,
    /// Forbidden only before the step of this name was done.
    pub before: Option<String>,
    /// Forbidden only after the step of this name was done.
    pub after: Option<String>,
}

/// An invariant that does not hold in a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excuse {
    /// `INV-07`.
    pub invariant: String,
    /// Why.
    pub because: String,
    /// Where the file says so.
    pub at: Place,
}

/// Shared scenarios are cheap to hand to drivers and checks.
pub type SharedScenario = Arc<Scenario>;

/// A JSON object, in the order written.
pub type JsonMap = Map<String, Value>;
