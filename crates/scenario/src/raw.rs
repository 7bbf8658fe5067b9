//! The shape of a scenario file: one source for what serde reads and for the JSON Schema editors complete from.
//!
//! The comments of these types are the schema's descriptions, written for the author of a scenario. Nothing here knows
//! whether a file makes sense; [`validate`](super::validate) does.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

pub(crate) use self::expect::*;
pub(crate) use self::rules::*;
pub(crate) use self::steps::*;
use super::read::{At, Entries, First, Json, OneOrMany, Text, WordOr};

mod expect;
mod rules;
mod steps;

/// One behaviour of a list/watch client: what the server holds, where it lies, and what must come of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Scenario")]
pub(crate) struct File {
    /// The version of this language. Always `v1`.
    #[schemars(required)]
    pub(crate) scenario: Option<At<LanguageVersion>>,
    /// The claim, one sentence: what a good client does.
    #[schemars(required)]
    pub(crate) title: Option<At<String>>,
    /// Why the claim matters: what breaks in the world when a client gets it wrong.
    #[schemars(required)]
    pub(crate) why: Option<At<String>>,
    /// The requirement ids (e.g. `PAGE-05`) this scenario can tell broken from kept. See requirements/catalogue.yaml.
    #[schemars(required)]
    pub(crate) covers: Option<At<Vec<At<String>>>>,
    /// Where it comes from: URLs, or `owner/repo#number`.
    pub(crate) refs: Option<Vec<At<String>>>,
    /// The collection the client watches: a resource (`pods`, `widgets.probe.example.com`), or a map with its namespace.
    /// Default: `configmaps` in namespace `default`.
    pub(crate) target: Option<At<First<Target>>>,
    /// What the server is, where it differs from the default.
    pub(crate) server: Option<Server>,
    /// What the client is told, where it differs from the default.
    pub(crate) client: Option<Client>,
    /// In the store before the client starts, in order of creation.
    pub(crate) objects: Option<Vec<At<Object>>>,
    /// What happens, read top to bottom. A step is armed when the one before it is done.
    pub(crate) steps: Option<Vec<At<WordOr<Step>>>>,
    /// What must come of it, beside what always holds (the invariants, and the cache equal to the truth at the end).
    pub(crate) expect: Option<Expectations>,
}

/// The version of the scenario language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum LanguageVersion {
    /// The first and only version.
    #[serde(rename = "v1")]
    V1,
}

/// The collection under watch.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// `configmaps`, `pods`, `widgets.probe.example.com`: the plural, and the group after a dot.
    #[schemars(required)]
    pub(crate) resource: Option<At<String>>,
    /// A namespace, or `all` for all of them. Default `default`. Cluster-scoped resources have none.
    pub(crate) namespace: Option<At<String>>,
}

/// A span of time: a whole number and `ms`, `s`, `m` or `h`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Duration(pub(crate) String);

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

/// What the server is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// The Kubernetes minor the server answers as. Default `"1.36"`.
    pub(crate) version: Option<At<ServerVersion>>,
    /// The revision the store starts at; the first object written gets the next one. Default 1000.
    pub(crate) revision: Option<At<u64>>,
    /// How many events of a resource the watch cache keeps before it forgets the oldest. Default 100.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) watch_cache_capacity: Option<At<u64>>,
    /// Time between periodic bookmarks. Default 60s.
    pub(crate) bookmark_interval: Option<At<Duration>>,
    /// Does the server stream lists? Default: as its version does; to a client that is expected to list,
    /// `fake-apiserver run` refuses them.
    pub(crate) streaming_lists: Option<At<bool>>,
    /// What is spoken with the client. Default `http1`.
    pub(crate) transport: Option<At<Transport>>,
    /// Requests the client may have under way on one connection (`tls_h2` only). Default 100.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_concurrent_streams: Option<At<u64>>,
}

/// What is spoken with a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    /// HTTP/1.1 over bare TCP.
    Http1,
    /// HTTP/1.1 over TLS.
    TlsHttp1,
    /// HTTP/2 over TLS, agreed on by ALPN.
    TlsH2,
}

/// A Kubernetes minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum ServerVersion {
    #[serde(rename = "1.33")]
    V1_33,
    #[serde(rename = "1.34")]
    V1_34,
    #[serde(rename = "1.35")]
    V1_35,
    #[serde(rename = "1.36")]
    V1_36,
}

impl JsonSchema for ServerVersion {
    fn schema_name() -> Cow<'static, str> {
        "ServerVersion".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        // Without quotes an editor reads a number, and the parser the same text.
        json_schema!({
            "description": "A Kubernetes minor, with or without quotes. 1.33 has no streaming lists, and an exact list of the future is a 500.",
            "enum": ["1.33", "1.34", "1.35", "1.36", 1.33, 1.34, 1.35, 1.36],
        })
    }
}

/// What the client under test is told. Each key is the option of the same meaning of `watcher::Config`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// What of the library is started. Default `informer`.
    pub(crate) contract: Option<At<Contract>>,
    /// The resourceVersion that the watch starts at (contract `watch`).
    pub(crate) resource_version: Option<At<String>>,
    /// Which entry point is driven. Default `watcher`; `object` when `object:` is given.
    pub(crate) mode: Option<At<Mode>>,
    /// The name of the one object to watch (mode `object`).
    pub(crate) object: Option<At<String>>,
    /// A label selector, e.g. `app=x,tier in (a,b)`.
    pub(crate) labels: Option<At<String>>,
    /// A field selector, e.g. `metadata.name=a`.
    pub(crate) fields: Option<At<String>>,
    /// `timeoutSeconds` of each watch, in whole seconds. Default: the client's.
    pub(crate) timeout: Option<At<Duration>>,
    /// Which state a LIST may answer from. Default `most_recent`.
    pub(crate) list_semantic: Option<At<Semantic>>,
    /// How the first set is read. Default `list_watch`.
    pub(crate) initial_list: Option<At<FirstSet>>,
    /// Items a page, or `none` for no paging. Default 500.
    pub(crate) page_size: Option<At<PageSize>>,
    /// Ask for bookmarks. Default true.
    pub(crate) bookmarks: Option<At<bool>>,
    /// Silence on a watch after which it is given up. Default: the client's own.
    pub(crate) idle_timeout: Option<At<Duration>>,
    /// Silence on a LIST after which it is given up. Default: the client's own.
    pub(crate) list_timeout: Option<At<Duration>>,
    /// Time without an event or bookmark after which a LIST of one item checks that the server has not gone back in time,
    /// or `none` for never. Default: the client's own.
    pub(crate) staleness_probe_after: Option<At<ProbeAfter>>,
    /// Delays after failures. Default: the client's own.
    pub(crate) backoff: Option<At<Backoff>>,
    /// Time the consumer takes for each event (a slow consumer). Default 0ms.
    pub(crate) consumer_delay: Option<At<Duration>>,
    /// The one event about an object over which the consumer takes that time, counted from 1. Default: over each.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) consumer_delay_event: Option<At<u64>>,
    /// Its HTTP client offers gzip and decodes it, as kube_client's does with the feature `gzip`. Default false.
    pub(crate) gzip: Option<At<bool>>,
}

/// Delays after failures. What is left out is the client's own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backoff {
    /// First delay, before jitter.
    pub(crate) initial: Option<At<Duration>>,
    /// Longest delay, before jitter.
    pub(crate) max: Option<At<Duration>>,
    /// What a delay is multiplied by for the next.
    pub(crate) factor: Option<At<u32>>,
    /// Time without failures after which the next delay is the first one again.
    pub(crate) reset_after: Option<At<Duration>>,
    /// Longest `Retry-After` that is obeyed.
    pub(crate) retry_after_max: Option<At<Duration>>,
}

/// What of the library is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Contract {
    /// Lists, watches and recovery, as the library offers them.
    Informer,
    /// One watch, to its end.
    Watch,
    /// One complete list.
    List,
}

/// Which entry point of the client is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// A watcher of whole objects.
    Watcher,
    /// A watcher of metadata only.
    Metadata,
    /// A watcher of one object, named by `object:`.
    Object,
}

/// Which state a LIST may answer from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Semantic {
    /// The newest: `resourceVersion` unset.
    MostRecent,
    /// Any: `resourceVersion=0`.
    Any,
}

/// How the first set is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FirstSet {
    /// LIST, then WATCH.
    ListWatch,
    /// One WATCH with `sendInitialEvents=true`.
    StreamingList,
}

/// A number of items, or `none`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct PageSize(pub(crate) String);

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

/// A time, or `none`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct ProbeAfter(pub(crate) Duration);

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

/// An object: a short form (`configmap: {name: a}`), or a whole manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename = "\0short-unless-typed")]
pub(crate) enum Object {
    Short(Box<ShortObject>),
    Whole(Json),
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

/// An object the truth need not know: a short form, or any JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename = "\0short-or-anything")]
pub(crate) enum Loose {
    Short(Box<ShortObject>),
    Whole(Json),
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

/// A short form: one of the kinds, and what is special about the object.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShortObject {
    /// Write so many; `{i}` in any text counts from 0.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) repeat: Option<At<u64>>,
    /// The name bound to the resourceVersion of this write: `$name`.
    #[serde(rename = "as")]
    pub(crate) binds: Option<At<String>>,
    /// A ConfigMap.
    pub(crate) configmap: Option<At<ShortBody>>,
    /// A Secret; `data` is written as is (base64).
    pub(crate) secret: Option<At<ShortBody>>,
    /// A Pod.
    pub(crate) pod: Option<At<ShortBody>>,
    /// A Service.
    pub(crate) service: Option<At<ShortBody>>,
    /// A Namespace (cluster-scoped).
    pub(crate) namespace: Option<At<ShortBody>>,
    /// A Node (cluster-scoped).
    pub(crate) node: Option<At<ShortBody>>,
    /// An Event (the object, of the core group).
    pub(crate) event: Option<At<ShortBody>>,
    /// A Deployment (apps/v1).
    pub(crate) deployment: Option<At<ShortBody>>,
    /// A Job (batch/v1).
    pub(crate) job: Option<At<ShortBody>>,
    /// A Lease (coordination.k8s.io/v1).
    pub(crate) lease: Option<At<ShortBody>>,
    /// A Widget, the custom resource of group probe.example.com.
    pub(crate) widget: Option<At<ShortBody>>,
}

/// What is special about an object in short form.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShortBody {
    /// `metadata.name`.
    #[schemars(required)]
    pub(crate) name: Option<At<String>>,
    /// `metadata.namespace`. Default: that of the target, or `default`.
    pub(crate) namespace: Option<At<String>>,
    /// `metadata.labels`.
    pub(crate) labels: Option<Entries<Text>>,
    /// `metadata.annotations`.
    pub(crate) annotations: Option<Entries<Text>>,
    /// `metadata.finalizers`.
    pub(crate) finalizers: Option<Vec<Text>>,
    /// `data` of a ConfigMap or Secret, each value as written.
    pub(crate) data: Option<At<Entries<Text>>>,
    /// `data.filler` of a ConfigMap: so many letters, for objects of a certain size.
    #[schemars(range(min = 1, max = 33_554_432))]
    pub(crate) filler: Option<At<u64>>,
    /// Any other keys beside `metadata`, as is: `{immutable: true}`, `{type: Warning}`.
    pub(crate) fields: Option<At<Entries<Json>>>,
    /// `spec`, as is.
    pub(crate) spec: Option<At<Json>>,
    /// `status`, as is.
    pub(crate) status: Option<At<Json>>,
}

/// One object: its name (`name` or `namespace/name`), or a map.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// `metadata.name`, or `namespace/name`.
    #[schemars(required)]
    pub(crate) name: Option<At<String>>,
    /// Default: that of the target, or `default`.
    pub(crate) namespace: Option<At<String>>,
    /// Default: the target's resource.
    pub(crate) resource: Option<At<String>>,
}

/// One name, or several.
pub(crate) type Names = OneOrMany<First<Name>>;
