//! File format of scenarios: the single source of the serde types and the JSON Schema.
//!
//! The doc comments of these types are the schema's descriptions, written for authors of scenarios.
//! `validate` checks the meaning. A generator of scenarios builds these values, [`build`](super::build)
//! validates them without text, and their `Display` is the file.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

pub use self::actions::*;
pub use self::expect::*;
pub use self::rules::*;
pub use self::steps::*;
use super::Version;
use super::catalogue::Provoker;
use super::kinds::short_kinds;
pub use super::read::{At, Both, Entries, First, Json, Nothing, OneOrMany, OrNothing, Text, WordOr};
use super::words::duration_ms;

mod actions;
mod expect;
mod rules;
mod steps;

/// One behaviour of a list/watch client: the content of the store, the server's faults, and the expected requests and
/// events.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Scenario")]
pub struct File {
    /// The version of this language. Always `v1`.
    #[schemars(required)]
    pub scenario: Option<At<LanguageVersion>>,
    /// The expected behaviour, in one sentence.
    #[schemars(required)]
    pub title: Option<At<String>>,
    /// Why it matters: what breaks in practice if a client gets it wrong. Required in this repository's `scenarios/`.
    pub why: Option<At<String>>,
    /// Requirement ids (e.g. `PAGE-05`) that this scenario tests. See requirements/catalogue.yaml. Required in this
    /// repository's `scenarios/`.
    pub covers: Option<At<Vec<At<String>>>>,
    /// Who is known to send what the script sends, where that is stricter than what the catalogue says of the requirements.
    /// What only an aggregated or old server sends counts as a SHOULD, and what nobody is known to send does not count.
    pub provoked_by: Option<At<Provoker>>,
    /// Words by which scenarios of several groups are selected, e.g. `minor`: what a client meets in a new Kubernetes minor.
    pub tags: Option<Vec<At<String>>>,
    /// Sources: URLs, or `owner/repo#number`.
    pub refs: Option<Vec<At<String>>>,
    /// The collection the client watches: a resource (`pods`, `widgets.probe.example.com`), or a map with its namespace.
    /// Default: `configmaps` in namespace `default`.
    pub target: Option<At<First<Target>>>,
    /// Server configuration, where it differs from the default.
    pub server: Option<Server>,
    /// Client configuration, where it differs from the default.
    pub client: Option<Client>,
    /// Objects in the store before the client starts, in order of creation.
    pub objects: Option<Vec<At<Object>>>,
    /// Script, from top to bottom. A step is armed when the previous one is done.
    pub steps: Option<Vec<At<WordOr<Step>>>>,
    /// Expectations, in addition to those that always apply (the invariants, and that the cache equals the store at
    /// the end).
    pub expect: Option<Expectations>,
}

/// The version of the scenario language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum LanguageVersion {
    /// The first and only version.
    #[serde(rename = "v1")]
    V1,
}

/// The watched collection.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Plural and group: `configmaps`, `pods`, `widgets.probe.example.com`.
    #[schemars(required)]
    pub resource: Option<At<String>>,
    /// A namespace, or `all` for all of them. Default `default`. Cluster-scoped resources have none.
    pub namespace: Option<At<String>>,
}

/// A duration: an integer and `ms`, `s`, `m` or `h`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// Returns a duration of milliseconds, in the largest unit of which it is a whole number.
    pub fn ms(ms: u64) -> Self {
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        let fits = units
            .into_iter()
            .find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
        let (unit, name) = fits.unwrap_or((1, "ms"));
        Self(format!("{}{name}", ms / unit))
    }

    /// Returns the milliseconds; `None`: it is no duration.
    pub fn as_ms(&self) -> Option<u64> {
        duration_ms(&self.0)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A span of time: a whole number and `ms`, `s`, `m` or `h`, e.g. `250ms`.",
            "type": "string",
            "pattern": "^[0-9]+(ms|s|m|h)$",
        })
    }
}

/// Server configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The emulated Kubernetes minor version. Default `"1.37"`.
    pub version: Option<At<ServerVersion>>,
    /// Initial revision of the store; the first object written gets the next one. Default 1000.
    // No list is at version 0, etcd's revisions have 63 bits, and there must be some left for writes.
    #[schemars(range(min = 1, max = 9_000_000_000_000_000_000_u64))]
    pub revision: Option<At<u64>>,
    /// Number of events per resource that the watch cache keeps. Default 100.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub watch_cache_capacity: Option<At<u64>>,
    /// Time between periodic bookmarks. Default 60s.
    pub bookmark_interval: Option<At<Duration>>,
    /// Whether the server supports streaming lists. Default: as in the emulated version; if the client is expected to
    /// list, `fake-apiserver run` rejects them.
    pub streaming_lists: Option<At<bool>>,
    /// Transport used with the client. Default `http1`.
    pub transport: Option<At<Transport>>,
    /// Concurrent streams per connection (`tls_h2` only). Default 100.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrent_streams: Option<At<u64>>,
    /// Number of apiservers on the store, each with separate watch caches; connections are assigned to them in turn.
    /// Default 1.
    #[schemars(range(min = 1, max = 2))]
    pub replicas: Option<At<u64>>,
}

/// Transport used with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// HTTP/1.1 over bare TCP.
    Http1,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS, negotiated by ALPN.
    TlsH2,
}

/// A Kubernetes minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ServerVersion(pub Version);

impl JsonSchema for ServerVersion {
    fn schema_name() -> Cow<'static, str> {
        "ServerVersion".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        // Without quotes an editor reads a number; the parser reads the same text.
        let numbers = Version::ALL.map(|version| f64::from(version.minor()).mul_add(0.01, 1.0));
        let texts = Version::ALL.map(Version::name);
        let versions: Vec<serde_json::Value> = texts
            .into_iter()
            .map(Into::into)
            .chain(numbers.into_iter().map(Into::into))
            .collect();
        json_schema!({
            "description": "A Kubernetes minor, with or without quotes.",
            "enum": versions,
        })
    }
}

/// Configuration of the client under test. Each key corresponds to the option of that meaning in `watcher::Config`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Part of the library that is started. Default `informer`.
    pub contract: Option<At<Contract>>,
    /// resourceVersion at which the watch starts (contract `watch`).
    pub resource_version: Option<At<String>>,
    /// Entry point. Default `watcher`; `object` if `object:` is given.
    pub mode: Option<At<Mode>>,
    /// Name of the object to watch (mode `object`).
    pub object: Option<At<String>>,
    /// Label selector, e.g. `app=x,tier in (a,b)`.
    pub labels: Option<At<String>>,
    /// Field selector, e.g. `metadata.name=a`.
    pub fields: Option<At<String>>,
    /// `timeoutSeconds` of each watch, in whole seconds. Default: the client's.
    pub timeout: Option<At<Duration>>,
    /// Which state a LIST may be served from. Default `most_recent`.
    pub list_semantic: Option<At<Semantic>>,
    /// How the initial snapshot is read. Default `list_watch`.
    pub initial_list: Option<At<FirstSet>>,
    /// Page size, or `none` for no paging. Default 500.
    pub page_size: Option<At<PageSize>>,
    /// Whether to request bookmarks. Default true.
    pub bookmarks: Option<At<bool>>,
    /// Time without bytes after which a watch is abandoned. Default: the client's.
    pub idle_timeout: Option<At<Duration>>,
    /// Time without bytes after which a LIST is abandoned. Default: the client's.
    pub list_timeout: Option<At<Duration>>,
    /// Time without an event or bookmark after which a LIST with limit=1 checks that the server has not gone back in
    /// time, or `none` for never. Default: the client's.
    pub staleness_probe_after: Option<At<ProbeAfter>>,
    /// Delays after failures. Default: the client's.
    pub backoff: Option<At<Backoff>>,
    /// Time that the consumer takes per event (a slow consumer). Default 0ms.
    pub consumer_delay: Option<At<Duration>>,
    /// The only event about an object, counted from 1, for which the consumer takes that time. Default: every event.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub consumer_delay_event: Option<At<u64>>,
    /// Whether its HTTP client offers gzip and decodes it, as kube_client's does with the feature `gzip`. Default
    /// false.
    pub gzip: Option<At<bool>>,
}

/// Delays after failures. Missing keys: the client's default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// First delay, before jitter.
    pub initial: Option<At<Duration>>,
    /// Maximum delay, before jitter.
    pub max: Option<At<Duration>>,
    /// Factor from one delay to the next.
    pub factor: Option<At<u32>>,
    /// Time without failures after which the delay is reset.
    pub reset_after: Option<At<Duration>>,
    /// Cap for `Retry-After`.
    pub retry_after_max: Option<At<Duration>>,
}

/// Part of the library that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// Lists, watches and recovery, as the library offers them.
    Informer,
    /// One watch, to its end.
    Watch,
    /// One complete list.
    List,
}

/// Entry point of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A watcher of full objects.
    Watcher,
    /// A watcher of metadata only.
    Metadata,
    /// A watcher of one object, named by `object:`.
    Object,
}

/// Which state a LIST may be served from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Semantic {
    /// The most recent: `resourceVersion` unset.
    MostRecent,
    /// Any: `resourceVersion=0`.
    Any,
}

/// How the initial snapshot is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirstSet {
    /// LIST, then WATCH.
    ListWatch,
    /// One WATCH with `sendInitialEvents=true`.
    StreamingList,
}

/// A number of items, or `none`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct PageSize(pub String);

impl Serialize for PageSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number_or_word(&self.0, serializer)
    }
}

/// Writes a number without quotes.
fn number_or_word<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match text.parse::<u64>() {
        Ok(number) => serializer.serialize_u64(number),
        Err(_) => serializer.serialize_str(text),
    }
}

impl JsonSchema for PageSize {
    fn schema_name() -> Cow<'static, str> {
        "PageSize".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Items a page, or `none` for no paging.",
            "anyOf": [{ "type": "integer", "minimum": 1 }, { "enum": ["none"] }],
        })
    }
}

/// A duration, or `none`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ProbeAfter(pub Duration);

impl JsonSchema for ProbeAfter {
    fn schema_name() -> Cow<'static, str> {
        "ProbeAfter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Duration>();
        json_schema!({
            "description": "A time, or `none` for never.",
            "anyOf": [time, { "enum": ["none"] }],
        })
    }
}

/// An object: a short form (`configmap: {name: a}`), or a full manifest.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "\0short-unless-typed")]
pub enum Object {
    /// The short form.
    Short(Box<ShortObject>),
    /// A manifest, or another value.
    Whole(Json),
}

impl Object {
    /// Returns the short form; `None`: it is a manifest.
    pub fn short(&self) -> Option<&ShortObject> {
        match self {
            Self::Short(short) => Some(short),
            Self::Whole(_) => None,
        }
    }

    /// Returns the short form; `None`: it is a manifest.
    pub fn short_mut(&mut self) -> Option<&mut ShortObject> {
        match self {
            Self::Short(short) => Some(short),
            Self::Whole(_) => None,
        }
    }
}

impl From<ShortObject> for At<Object> {
    fn from(short: ShortObject) -> Self {
        Object::Short(Box::new(short)).into()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Short(short) => short.serialize(serializer),
            Self::Whole(value) => value.serialize(serializer),
        }
    }
}

impl JsonSchema for Object {
    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let short = generator.subschema_for::<ShortObject>();
        json_schema!({
            "description": "An object: a short form (`configmap: {name: a}`), or a whole manifest as kubectl prints it.",
            "anyOf": [short, {
                "type": "object",
                "required": ["apiVersion", "kind", "metadata"],
                "properties": {
                    "apiVersion": { "description": "`v1`, or group and version.", "type": "string" },
                    "kind": { "description": "One of the kinds the fake serves.", "type": "string" },
                    "metadata": {
                        "description": "At least a `name`.",
                        "type": "object",
                        "required": ["name"],
                        "properties": { "name": { "type": "string" } },
                    },
                    "repeat": {
                        "description": "Write so many; `{i}` in any text counts from 0.",
                        "type": "integer", "minimum": 1, "maximum": 100_000,
                    },
                },
            }],
        })
    }
}

/// An object that need not be in the store: a short form, or any JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename = "\0short-or-anything")]
pub enum Loose {
    /// The short form.
    Short(Box<ShortObject>),
    /// A manifest, or another value.
    Whole(Json),
}

impl Loose {
    /// Returns the short form; `None`: it is another value.
    pub fn short_mut(&mut self) -> Option<&mut ShortObject> {
        match self {
            Self::Short(short) => Some(short),
            Self::Whole(_) => None,
        }
    }
}

impl Serialize for Loose {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Short(short) => short.serialize(serializer),
            Self::Whole(value) => value.serialize(serializer),
        }
    }
}

impl JsonSchema for Loose {
    fn schema_name() -> Cow<'static, str> {
        "Loose".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let short = generator.subschema_for::<ShortObject>();
        json_schema!({
            "description": "What is put on the wire as an object: a short form (`configmap: {name: a}`), or anything, as is.",
            "anyOf": [{}, short],
        })
    }
}

macro_rules! short_object {
    ($($(#[$attribute:meta])* $kind:ident,)+) => {
        /// A short form: a kind, and the fields of the object.
        #[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct ShortObject {
            /// Number of copies; `{i}` in any text counts from 0.
            #[schemars(range(min = 1, max = 100_000))]
            pub repeat: Option<At<u64>>,
            /// The name bound to the resourceVersion of this write: `$name`.
            #[serde(rename = "as")]
            pub binds: Option<At<String>>,
            $($(#[$attribute])*
            pub $kind: Option<At<ShortBody>>,)+
        }

        impl ShortObject {
            /// Returns an object of the kind of this word, of no kind if there is none.
            pub fn new(kind: &str, body: ShortBody) -> Self {
                let mut object = Self::default();
                match kind {
                    $(stringify!($kind) => object.$kind = Some(body.into()),)+
                    _ => {}
                }
                object
            }

            /// Returns the kinds given, with their words.
            pub fn bodies(&self) -> Vec<(&'static str, &At<ShortBody>)> {
                let bodies = [$((stringify!($kind), self.$kind.as_ref())),+];
                bodies.into_iter().filter_map(|(word, body)| Some((word, body?))).collect()
            }

            /// Returns the fields of the object.
            pub fn body_mut(&mut self) -> Option<&mut ShortBody> {
                let mut bodies = [$(self.$kind.as_mut()),+].into_iter().flatten();
                bodies.next().map(|body| &mut body.value)
            }
        }
    };
}

short_kinds!(short_object);

/// Fields of an object in short form.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShortBody {
    /// `metadata.name`.
    #[schemars(required)]
    pub name: Option<At<String>>,
    /// `metadata.namespace`. Default: the target's, or `default`.
    pub namespace: Option<At<String>>,
    /// `metadata.labels`.
    pub labels: Option<Entries<Text>>,
    /// `metadata.annotations`.
    pub annotations: Option<Entries<Text>>,
    /// `metadata.finalizers`.
    pub finalizers: Option<Vec<Text>>,
    /// `data` of a ConfigMap or Secret, each value as written.
    pub data: Option<At<Entries<Text>>>,
    /// `data.filler` of a ConfigMap: this many letters, for objects of a certain size.
    #[schemars(range(min = 1, max = 33_554_432))]
    pub filler: Option<At<u64>>,
    /// Other top-level keys, verbatim: `{immutable: true}`, `{type: Warning}`.
    pub fields: Option<At<Entries<Json>>>,
    /// `spec`, verbatim.
    pub spec: Option<At<Json>>,
    /// `status`, verbatim.
    pub status: Option<At<Json>>,
}

/// Reference to an object: its name (`name` or `namespace/name`), or a map.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// `metadata.name`, or `namespace/name`.
    #[schemars(required)]
    pub name: Option<At<String>>,
    /// Default: the target's, or `default`.
    pub namespace: Option<At<String>>,
    /// Default: the target's resource.
    pub resource: Option<At<String>>,
}

/// One name, or several.
pub type Names = OneOrMany<First<Name>>;
