//! Messages of adapter protocol v1, and their JSON Schema. Values only: docs/adapter-protocol.md describes when each is sent,
//! and `session` enforces it.

use std::sync::LazyLock;

use fake_apiserver::scenario;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// A line from the runner to the adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "cmd", rename_all = "kebab-case")]
pub enum Command {
    /// Starts the client. Sent once.
    Start(Box<Start>),
    /// Requests the content of the client's cache. Sent only with the capability `cache`.
    Dump {
        /// Returned in the response.
        id: u64,
    },
    /// Pauses the consumer of events: nothing is printed until `resume`. Sent only with the capability `pause`.
    Pause,
    /// Ends a pause.
    Resume {
        /// Pause again after this number of events about objects; absent: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        events: Option<u32>,
    },
    /// Stops the client; the process continues. Sent only with the capability `close`.
    Close,
    /// Stops the client. The adapter exits with status 0.
    Stop,
}

/// Parameters of the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// Version of the protocol: 1.
    pub protocol: u32,
    /// `informer`, `watch`, `list`, or an unknown contract, which the adapter answers with `unsupported`.
    pub contract: String,
    /// Resource to list and watch.
    pub resource: Resource,
    /// Namespace; absent: all namespaces, or a cluster-scoped resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Settings of the client. Absent settings have the library's default.
    pub options: Options,
    /// Start paused. Sent only with the capability `pause`; absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

impl Start {
    /// Returns the start of a contract on the ConfigMaps of namespace `default`.
    pub fn on_config_maps(contract: &str, options: Options) -> Self {
        Self {
            protocol: PROTOCOL,
            contract: contract.to_owned(),
            resource: Resource {
                group: String::new(),
                version: "v1".to_owned(),
                plural: "configmaps".to_owned(),
                kind: "ConfigMap".to_owned(),
            },
            namespace: Some("default".to_owned()),
            options,
            paused: false,
        }
    }
}

/// An API resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// API group; empty for core.
    pub group: String,
    /// API version, e.g. `v1`.
    pub version: String,
    /// Plural name, e.g. `configmaps`.
    pub plural: String,
    /// Kind, e.g. `ConfigMap`.
    pub kind: String,
}

/// Settings of the client. Each is sent only to adapters that declare its capability.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Options {
    /// Label selector (capability `selectors`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Field selector (capability `field-selectors`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
    /// Items per page of a LIST; 0: no paging (capability `page-size`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// How the initial list is read (capability `streaming-list`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_list: Option<FirstList>,
    /// `resourceVersion` of the first LIST: empty for the most recent state, `0` for any (capability `resource-version`). In
    /// the contract `watch`: the version to watch from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Read metadata only (capability `metadata-only`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_only: Option<bool>,
    /// Watch only the object of this name (capability `single-object`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_name: Option<String>,
    /// `timeoutSeconds` of each watch (capability `timeout`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Request bookmarks (capability `bookmarks`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_bookmarks: Option<bool>,
    /// Idle timeout of a watch, in milliseconds (capability `idle-timeout`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Idle timeout of a LIST, in milliseconds (capability `list-timeout`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_timeout_ms: Option<u64>,
    /// Milliseconds without event or bookmark after which the client checks that the server has not gone back in time; 0:
    /// never (capability `staleness-probe`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staleness_probe_after_ms: Option<u64>,
    /// Backoff after failures (capability `backoff`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Maximum `Retry-After` that is obeyed, in milliseconds (capability `retry-after-max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_max_ms: Option<u64>,
    /// Send `Accept-Encoding: gzip` and decode the response (capability `gzip`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gzip: Option<bool>,
}

/// How the initial list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstList {
    /// LIST, then WATCH.
    List,
    /// One WATCH with `sendInitialEvents=true`.
    Stream,
}

/// Backoff after failures. Absent settings have the library's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    /// First delay in milliseconds, before jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<u64>,
    /// Maximum delay in milliseconds, before jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// Factor from one delay to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<u32>,
    /// Milliseconds without failures after which the backoff is reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_after_ms: Option<u64>,
}

/// A line from the adapter to the runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ev", rename_all = "kebab-case")]
pub enum Event {
    /// What the adapter and its client support. The first line.
    Hello(Hello),
    /// A list or relist begins; the objects up to `init-done` replace the cache.
    Init,
    /// One object of the list.
    InitApply(Object),
    /// The list is complete.
    InitDone,
    /// An object was added or changed.
    Apply(Object),
    /// An object was added, where the library distinguishes that.
    Add(Object),
    /// An object was changed, where the library distinguishes that.
    Update(Object),
    /// An object was deleted, with its last known state.
    Delete(Object),
    /// The library reports its cache as ready.
    Synced,
    /// The library delivered a bookmark.
    Bookmark {
        /// Its resourceVersion.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rv: Option<String>,
    },
    /// The library reported an error, and continues unless `end` follows.
    Error {
        /// Error text of the library.
        message: String,
        /// HTTP or Status code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
        /// Status reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The library gave up for good, or the watch or list of the contract has ended.
    End,
    /// Content of the library's cache, in response to `dump`.
    Dump {
        /// `id` of the command.
        id: u64,
        /// All objects.
        items: Vec<Object>,
    },
    /// The client was stopped, in response to `close`.
    Closed,
    /// The adapter or its client does not support what was requested.
    Unsupported {
        /// What: `contract`, `resource`, `cmd`, or the name of an option.
        what: String,
        /// Reason, in one sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

/// What the adapter and its client support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// Version of the protocol: 1.
    pub protocol: u32,
    /// The library under test.
    pub client: ClientInfo,
    /// Contracts that the adapter offers; at least one.
    pub contracts: Vec<Contract>,
    /// Capabilities.
    #[serde(default)]
    pub caps: Vec<Capability>,
    /// Resources that the adapter supports, as `plural` or `plural.group`; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// What restarts a failed list or watch.
    pub recovers: Recovers,
}

/// The library under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// Name, e.g. `kubernetes-python`.
    pub name: String,
    /// Programming language, e.g. `python`.
    pub lang: String,
    /// Version of the library.
    pub version: String,
    /// Home page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Bug tracker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<String>,
}

/// Type of client that an adapter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Contract {
    /// Keeps a cache of a collection until it is stopped: list, watch, recovery.
    Informer,
    /// One watch from a resourceVersion until it ends.
    Watch,
    /// One complete list, paged or not.
    List,
}

impl Contract {
    /// Returns the contract of a scenario.
    pub fn of(contract: scenario::Contract) -> Self {
        match contract {
            scenario::Contract::Informer => Self::Informer,
            scenario::Contract::Watch => Self::Watch,
            scenario::Contract::List => Self::List,
        }
    }

    /// Returns the word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::Watch => "watch",
            Self::List => "list",
        }
    }
}

/// What restarts a failed list or watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovers {
    /// The library does.
    Library,
    /// The caller does, as the library's documentation requires; the adapter has only that loop.
    Caller,
    /// Nothing does.
    None,
}

impl Recovers {
    /// Returns the word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Library => "library",
            Self::Caller => "caller",
            Self::None => "none",
        }
    }
}

/// A supported setting of the client, or a supported report of its adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    /// Supports `labelSelector`.
    Selectors,
    /// Supports `fieldSelector`.
    FieldSelectors,
    /// Supports `pageSize`.
    PageSize,
    /// Supports `resourceVersion` for the first LIST.
    ResourceVersion,
    /// Supports `initialList`.
    StreamingList,
    /// Supports `metadataOnly`.
    MetadataOnly,
    /// Supports `objectName`.
    SingleObject,
    /// Supports `timeoutSeconds`.
    Timeout,
    /// Supports `allowBookmarks`.
    Bookmarks,
    /// Supports `idleTimeoutMs`.
    IdleTimeout,
    /// Supports `listTimeoutMs`.
    ListTimeout,
    /// Supports `stalenessProbeAfterMs`.
    StalenessProbe,
    /// Supports `backoff`.
    Backoff,
    /// Supports `retryAfterMaxMs`.
    RetryAfterMax,
    /// Supports `gzip`.
    Gzip,
    /// Uses HTTP/2 with an `https` server.
    Http2,
    /// Obeys `pause` and `resume`.
    Pause,
    /// Responds to `dump` with the content of the library's cache.
    Cache,
    /// Obeys `close`: the library can be stopped while the process continues.
    Close,
    /// Prints `error` for every error that the library reports.
    Errors,
    /// Prints `init`, `init-apply` and `init-done` for every list and relist.
    InitEvents,
    /// Every event is printed before the library sends a request that depends on it.
    Ordered,
}

impl Capability {
    /// Returns the word in messages.
    pub fn word(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|word| word.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// Object of an event: complete in `obj`, or its identity and version in the other fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    /// The complete object as the library stores it, in JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obj: Option<Value>,
    /// `metadata.namespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<String>,
    /// `metadata.name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `metadata.uid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// `metadata.resourceVersion`, a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rv: Option<String>,
    /// In `delete`: false if the final state is unknown (client-go: `DeletedFinalStateUnknown`).
    #[serde(default, rename = "final", skip_serializing_if = "Option::is_none")]
    pub is_final: Option<bool>,
}

/// Returns the JSON Schema of one line, in either direction.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft07().with(|settings| settings.definitions_path = "/$defs".into());
        let mut generator = settings.into_generator();
        let (command, event) = (
            generator.subschema_for::<Command>(),
            generator.subschema_for::<Event>(),
        );
        let mut definitions = generator.take_definitions(true);
        for name in ["Command", "Event"] {
            definitions = flattened(definitions, name);
        }
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Adapter protocol v1",
            "description": "One line of an adapter's standard input (cmd) or standard output (ev).",
            "oneOf": [command, event],
            "$defs": definitions,
        })
    });
    &SCHEMA
}

/// Returns the text of schema/adapter.v1.json.
pub fn json_schema() -> String {
    format!("{:#}\n", schema())
}

/// Resolves the reference in each variant of `name`, so that a variant lists all of its keys and forbids others.
fn flattened(mut definitions: Map<String, Value>, name: &str) -> Map<String, Value> {
    let Some(variants) = definitions
        .get(name)
        .and_then(|of| of["oneOf"].as_array())
        .cloned()
    else {
        return definitions;
    };
    let whole: Vec<Value> = variants
        .into_iter()
        .map(|mut variant| {
            let parts = std::iter::once(variant["$ref"].clone()).chain(
                variant["allOf"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|part| part["$ref"].clone()),
            );
            let referred: Vec<Value> = parts
                .filter_map(|part| {
                    let name = part.as_str()?.rsplit('/').next()?.to_owned();
                    definitions.get(&name).cloned()
                })
                .collect();
            for part in referred {
                for (key, property) in part["properties"].as_object().into_iter().flatten() {
                    variant["properties"][key] = property.clone();
                }
                for key in part["required"].as_array().into_iter().flatten() {
                    if let Some(required) = variant["required"].as_array_mut() {
                        required.push(key.clone());
                    }
                }
            }
            if let Some(variant) = variant.as_object_mut() {
                variant.remove("$ref");
                variant.remove("allOf");
                variant.insert("additionalProperties".to_owned(), json!(false));
            }
            variant
        })
        .collect();
    definitions[name]["oneOf"] = Value::Array(whole);
    definitions
}
