//! A parsed and validated scenario: objects in the store, client configuration, scripted faults, and expectations.
//! Code outside `scenario::load` relies on its validity.
//!
//! The file format itself (spans, short forms) is `raw`; [`load`] parses it strictly and converts it to these types,
//! or returns *all* errors with file, line, column and a hint.

use std::path::PathBuf;
use std::sync::Arc;

pub use apimachinery::Version;
use apimachinery::kind::qualified;
use serde_json::{Map, Value};

use self::catalogue::{Level, Provoker};

pub use self::action::{
    Action, Content, ItemsShape, PageEdit, RawFrame, Reply, ReplyBody, Restart, RuleAction, SentObject,
    ShapeAction, StatusSpec, StoreAction, StreamAction, Where,
};
pub use self::admission::{AdmissionPlugin, AdmissionPlugins};
pub use self::awaited::Awaited;
pub use self::client::{BackoffSettings, ClientSettings, Contract};
pub use self::client_view::{ClientView, TargetLoop, form};
pub use self::errors::{LoadError, LoadErrors, Style};
pub use self::files::{ScenarioFile, find};
pub use self::load::{build, load, parse, parse_rule, parse_wait};
pub use self::problem::Code;
pub use self::rule::{Named, Rule, RuleTrigger, Sent, Wait, Waiting, Whose};
pub use self::schema::{action_sections, control_schemas, json_schema};
pub use self::warnings::{Warning, warnings};
pub use self::words::{duration, nearest};

mod action;
mod admission;
mod awaited;
pub mod catalogue;
mod check;
mod client;
mod client_view;
pub mod edition;
pub mod errata;
mod errors;
mod excerpt;
mod files;
mod kinds;
mod lines;
mod load;
pub mod matching;
mod problem;
pub mod raw;
mod read;
pub mod rule;
mod schema;
mod span;
mod tree;
mod validate;
mod warnings;
mod words;
mod yaml;

/// A position in a scenario file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in characters.
    pub column: u32,
}

/// A scenario: one behaviour, one file.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// `gone/expired-mid-stream-forces-relist`: the path below the scenarios folder, without extension.
    pub id: String,
    /// Path of the file.
    pub path: PathBuf,
    /// The expected behaviour, in one sentence.
    pub title: String,
    /// Why the behaviour matters.
    pub why: String,
    /// Requirement ids (`PAGE-06`) that this scenario tests.
    pub covers: Vec<Covered>,
    /// Who is known to send what the script sends, if stricter than what the catalogue says of the requirements.
    pub provoked_by: Option<Provoker>,
    /// Words by which scenarios of several groups are selected.
    pub tags: Vec<String>,
    /// Sources: URLs or `owner/repo#number`.
    pub refs: Vec<String>,
    /// The collection that the client watches.
    pub target: Target,
    /// Server configuration.
    pub server: ServerSettings,
    /// Client configuration.
    pub client: ClientSettings,
    /// Objects in the store before the client starts, in order of creation.
    pub objects: Vec<Manifest>,
    /// Script, from top to bottom.
    pub steps: Vec<Step>,
    /// Expectations.
    pub expect: Expect,
}

impl Scenario {
    /// Returns a scenario without steps, for a server without faults. Its target is the ConfigMaps of all namespaces,
    /// and it expects nothing.
    pub fn empty(server: ServerSettings) -> Self {
        Self {
            id: String::new(),
            path: PathBuf::new(),
            title: String::new(),
            why: String::new(),
            covers: Vec::new(),
            provoked_by: None,
            tags: Vec::new(),
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

impl Scenario {
    /// Returns the level at which a violation in this scenario counts against a requirement of that level; `None`: it does
    /// not count (hardening).
    pub fn counts(&self, level: Level) -> Option<Level> {
        catalogue::counted(self.provoked_by, level)
    }

    /// Returns whether it has one of these tags; true if none is wanted.
    pub fn has_tag(&self, wanted: &[String]) -> bool {
        wanted.is_empty() || self.tags.iter().any(|tag| wanted.contains(tag))
    }

    /// Whether this is one of the requirements that the scenario tests.
    pub fn is_about(&self, requirement: &str) -> bool {
        self.covers.iter().any(|covered| covered.id == requirement)
    }

    /// Whether the script sends what nobody is known to send: run and shown, never scored.
    pub fn is_hardening(&self) -> bool {
        self.provoked_by == Some(Provoker::NobodyKnown)
    }
}

/// A requirement id with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// Id, e.g. `PAGE-06`.
    pub id: String,
    /// Position in the file.
    pub at: Place,
}

/// The watched collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// API group, empty for core.
    pub group: String,
    /// API version, e.g. `v1`.
    pub version: String,
    /// Plural, e.g. `configmaps`.
    pub plural: String,
    /// Kind, e.g. `ConfigMap`.
    pub kind: String,
    /// `None`: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
}

impl Target {
    /// Returns `configmaps`, `deployments.apps`.
    pub fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }
}

/// Server configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// The emulated Kubernetes minor version.
    pub version: Version,
    /// Initial revision of the store; the first object written gets the next one. Default 1000.
    pub revision: u64,
    /// Number of events per resource that the watch cache keeps. Default 100.
    pub watch_cache_capacity: usize,
    /// Milliseconds between periodic bookmarks. Default 60 000.
    pub bookmark_interval_ms: u64,
    /// Whether etcd sends progress notifications for writes to other resources to idle watch caches, as configured by
    /// kubeadm. Without it bookmarks and reads at `resourceVersion=0` return the last revision that the cache
    /// received by other means. Default true.
    pub progress_notify: bool,
    /// Feature gate `WatchList`. `Some(false)`: a streaming list is rejected as with the gate off. Default `None`: as in
    /// the emulated version, in which it is on.
    pub streaming_lists: Option<bool>,
    /// Whether a streaming list that the gate rejects is matched against steps, rules and expectations. Not by default: a
    /// client may send it only to detect support.
    pub rejected_streams_count: bool,
    /// Server start in seconds since 1970, the base of its timestamps. Default 2026-01-01T00:00:00Z.
    pub epoch_seconds: u64,
    /// Transport used with the client under test.
    pub transport: Transport,
    /// Concurrent streams per HTTP/2 connection. Default 100.
    pub max_concurrent_streams: u32,
    /// Number of apiservers on the store, 1 or 2, to which connections are assigned in turn. Default 1.
    pub replicas: u32,
    /// Admission plugins. Default: those of kube-apiserver whose effects last without controllers.
    pub admission: AdmissionPlugins,
}

/// Transport used with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// HTTP/1.1 over bare TCP.
    #[default]
    Http1,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS, negotiated by ALPN.
    TlsHttp2,
}

impl Transport {
    /// Returns true for transports over TLS.
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
            rejected_streams_count: false,
            epoch_seconds: 1_767_225_600,
            transport: Transport::default(),
            max_concurrent_streams: 100,
            replicas: 1,
            admission: AdmissionPlugins::default(),
        }
    }
}

/// Entry point of the client under test.
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

/// How the initial snapshot is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialList {
    /// LIST, then WATCH.
    #[default]
    ListWatch,
    /// One WATCH with `sendInitialEvents=true`.
    StreamingList,
}

/// Which state a LIST may be served from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListSemantic {
    /// The most recent (`resourceVersion` unset).
    #[default]
    MostRecent,
    /// Any (`resourceVersion=0`).
    Any,
}

/// An object to write: its collection and its JSON (with `apiVersion`, `kind` and `metadata.name`, and with
/// `metadata.namespace` for namespaced kinds).
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// API group, empty for core.
    pub group: String,
    /// Plural, e.g. `configmaps`.
    pub plural: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
    /// The object as JSON.
    pub json: Value,
    /// `as:`: the name bound to the resourceVersion of this write.
    pub binds: Option<String>,
    /// Position in the file.
    pub at: Place,
}

impl Manifest {
    /// Returns the reference to the object.
    pub fn object_name(&self) -> ObjectName {
        ObjectName {
            group: self.group.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Reference to an object, by default of the target's kind and namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// API group, empty for core.
    pub group: String,
    /// Plural, e.g. `configmaps`.
    pub plural: String,
    /// `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl ObjectName {
    /// Returns `configmaps`, `deployments.apps`.
    pub fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Returns `namespace/name`, or `name`.
    pub fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A trigger and its actions. A step is armed when the previous one is done.
#[derive(Debug, Clone)]
pub struct Step {
    /// Position of the step.
    pub at: Place,
    /// `as:`. A step that waits for a LIST or a page binds `$name.rv` and `$name.continue` of the response; `before:`
    /// and `after:` may refer to any named step. Names of writes are in their `binds`.
    pub name: Option<String>,
    /// Trigger.
    pub when: Trigger,
    /// Skip the step if a later step is met first. Never set on the last step.
    pub optional: bool,
    /// How often a request trigger may match before the step is done.
    pub times: Times,
    /// Actions, in order: store, response, socket. The response is computed from the store after the earlier actions.
    pub actions: Vec<Action>,
    /// How long the step may wait before the verdict is *stuck*, in milliseconds. Default 5 min in `sim`, 20 s in
    /// `live`.
    pub within_ms: Option<u64>,
    /// Requirements that a client contradicts which never does what the step waits for; empty: those of
    /// [`Expect::converges`].
    pub requirements: Vec<String>,
}

impl Step {
    /// Returns true if the step acts on a watch without being triggered by a request, so that one must be open.
    pub fn needs_watch(&self) -> bool {
        !matches!(self.when, Trigger::Request(_)) && self.actions.iter().any(Action::acts_on_response)
    }
}

/// How often a request trigger matches before its step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Number of requests. Default 1.
    Count(u32),
    /// Every matching request within this many milliseconds of the first one.
    For(u64),
}

/// When a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// As soon as the previous step is done.
    Now,
    /// When a matching request arrives, before it is answered.
    Request(RequestTrigger),
    /// When the client reports a matching event (counted from when the step is armed).
    Emitted(EmittedMatch),
    /// This many milliseconds after the step is armed.
    After(u64),
    /// When neither side sent anything for this many milliseconds (bookmarks do not count).
    Quiet(u64),
    /// When the client has an open watch and its cache equals the store. For a client without reports: when it has an
    /// open watch and neither side sent anything for one second.
    Synced,
}

/// Conditions of a request trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTrigger {
    /// LIST, a later page, WATCH, any.
    pub kind: RequestKind,
    /// The n-th of its kind since the client started; `None`: the next one.
    pub nth: Option<u32>,
    /// Query parameters it must have.
    pub query: Vec<QueryMatch>,
}

/// The kind of request of a trigger or expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A LIST without a continue token. Its `nth` counts LIST attempts.
    List,
    /// Page `page` (from 2) of the latest LIST, or of the `nth`.
    Page {
        /// Page number; page 1 is [`RequestKind::List`].
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
    /// Condition on its value.
    pub value: Expected,
    /// Position in the file.
    pub at: Place,
}

/// Condition on a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This text, verbatim.
    Is(String),
    /// Anything but this text (an absent value counts as different).
    Not(Box<Expected>),
    /// Absent or empty.
    Absent,
    /// Present and not empty.
    Present,
    /// The value of a name at the time of comparison.
    Ref(Ref),
}

/// Reference to a value: `$name`, `$name.rv`, `$name.continue`, `$start`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ref {
    /// `$start`: the version of the first list that the client was sent; until then, the store's.
    Start,
    /// `$name` or `$name.rv`: the resourceVersion of the write, list or watch bookmark of this name.
    ResourceVersion(String),
    /// `$name.continue`: the continue token of the response of this name.
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

/// Conditions on a reported event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedMatch {
    /// Event kind: `init`, `init_apply`, `init_done`, `apply`, `delete` or `error`.
    pub kind: EmittedKind,
    /// The object's name (`name` or `namespace/name`); `None`: any.
    pub name: Option<String>,
    /// resourceVersion of the object.
    pub resource_version: Option<Expected>,
    /// Code of an error.
    pub code: Option<u16>,
    /// Text that the message of an error contains.
    pub message: Option<String>,
    /// The n-th such event; default 1.
    pub nth: u32,
    /// Position in the file.
    pub at: Place,
}

/// Event kinds, named as in kube, and `error`.
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
    /// Returns the word in scenario files and transcripts.
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

/// Expectations of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// Requests that must be sent, in this order; others may come in between.
    pub requests: Vec<RequestExpect>,
    /// Allow no requests but those in `requests` (continuation pages count).
    pub only: bool,
    /// Requests that must not be sent.
    pub never: Vec<RequestNever>,
    /// Limits on the number of requests.
    pub counts: Vec<RequestCount>,
    /// Events that must be reported, in this order; others may come in between.
    pub events: Vec<EmittedExpect>,
    /// Events that must not be reported.
    pub never_emitted: Vec<EmittedNever>,
    /// Names of the objects in the cache at the end (`name` or `namespace/name`); `None`: those in the store.
    pub cache: Option<Vec<String>>,
    /// Requirements that a run is evidence against which does not come to its end, or leaves another cache.
    pub converges: Vec<String>,
    /// Requirements that a client is evidence against which gives up for good.
    pub goes_on: Vec<String>,
    /// Requirements that a crash of the client is evidence against.
    pub survives: Vec<String>,
    /// Why the cache cannot equal the store at the end; `None` (default): it must.
    pub not_converged_because: Option<String>,
    /// Time limit for the end of the run after the last step, in milliseconds. Default 180 000 in `sim`.
    pub within_ms: Option<u64>,
    /// How long the run continues after convergence, in milliseconds, so that forbidden requests and events can
    /// occur.
    pub settle_ms: u64,
    /// Invariants that the scripted faults break, with reasons.
    pub excused: Vec<Excuse>,
}

/// A kind of request and conditions on its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPattern {
    /// Kind of request.
    pub kind: RequestKind,
    /// Conditions that must all hold.
    pub query: Vec<QueryMatch>,
}

/// A request that must be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestExpect {
    /// Alternatives; one must match. Never empty.
    pub any_of: Vec<RequestPattern>,
    /// `resume:`: the request is the next WATCH; a LIST before it or a streaming list in its place satisfies it too.
    pub or_relist: bool,
    /// HTTP status of the response; `None`: any, or no response.
    pub answered: Option<u16>,
    /// Headers the request must have: `Accept`, `User-Agent`.
    pub headers: Vec<QueryMatch>,
    /// Minimum time since the previous expected request, in milliseconds.
    pub at_least_after_ms: Option<u64>,
    /// Maximum time since the previous expected request, in milliseconds.
    pub at_most_after_ms: Option<u64>,
    /// `as:`: the name by which later expectations refer to its list.
    pub name: Option<String>,
    /// Requirements that a failure is evidence against, of those that the scenario covers; empty if it covers none.
    pub requirements: Vec<String>,
    /// Position in the file.
    pub at: Place,
}

/// A request that must not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestNever {
    /// Kind of request.
    pub kind: RequestKind,
    /// The query of the forbidden request.
    pub query: Vec<QueryMatch>,
    /// Forbidden only after the step of this name is done; `None`: always.
    pub after: Option<String>,
    /// Requirements that a failure is evidence against, of those that the scenario covers; empty if it covers none.
    pub requirements: Vec<String>,
    /// Position in the file.
    pub at: Place,
}

/// Limits on the number of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestCount {
    /// Kind of request.
    pub kind: RequestKind,
    /// Conditions on the query.
    pub query: Vec<QueryMatch>,
    /// Minimum.
    pub at_least: Option<u32>,
    /// Maximum.
    pub at_most: Option<u32>,
    /// Requirements that a failure is evidence against, of those that the scenario covers; empty if it covers none.
    pub requirements: Vec<String>,
    /// Position in the file.
    pub at: Place,
}

/// An event that must be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedExpect {
    /// The event.
    pub event: EmittedMatch,
    /// Requirements that a failure is evidence against, of those that the scenario covers; empty if it covers none.
    pub requirements: Vec<String>,
}

/// An event that must not be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedNever {
    /// The event.
    pub event: EmittedMatch,
    /// Forbidden only before the step of this name is done.
    pub before: Option<String>,
    /// Forbidden only after the step of this name is done.
    pub after: Option<String>,
    /// Requirements that a failure is evidence against, of those that the scenario covers; empty if it covers none.
    pub requirements: Vec<String>,
}

/// An invariant that a scenario breaks on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excuse {
    /// Id, e.g. `INV-07`.
    pub invariant: String,
    /// Reason.
    pub because: String,
    /// Position in the file.
    pub at: Place,
}

/// A scenario shared by drivers and checks.
pub type SharedScenario = Arc<Scenario>;

/// A JSON object, in the order of the file.
pub type JsonMap = Map<String, Value>;
