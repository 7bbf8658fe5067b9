//! File format of steps and their triggers.

use std::borrow::Cow;

use super::{ActionKeys, Duration};
use crate::read::{At, Both, First, OneOrMany, OrNothing, Text, WordOr, Words, given};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// A step: a trigger and actions, or a single action.
pub(crate) type Step = Both<StepKeys, ActionKeys>;

/// A step: when it runs and what it does. Without `when` it runs as soon as the previous step is done. A single
/// action may be a key of the step instead of under `do`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub(crate) struct StepKeys {
    /// Trigger of the step.
    pub(crate) when: Option<At<WordOr<When>>>,
    /// Skip the step if a later step is met first. Default false.
    pub(crate) optional: Option<At<bool>>,
    /// Number of matching requests handled before the step is done. Default 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) times: Option<At<u64>>,
    /// Handle every matching request for this time, from the first one.
    #[serde(rename = "for")]
    pub(crate) lasts: Option<At<Duration>>,
    /// How long the step may wait before the verdict is *stuck*. Default 10m in sim, 20s in live.
    pub(crate) within: Option<At<Duration>>,
    /// Requirements that a client is evidence against which never does what the step waits for, of those in the scenario's
    /// `covers`. Default: those of `expect.converges`.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
    /// Actions, in order: one or a list.
    #[serde(rename = "do")]
    pub(crate) actions: Option<At<OneOrMany<At<WordOr<ActionKeys>>>>>,
}

/// Trigger of a step: one of `list`, `page`, `watch`, `request`, `emitted`, `after`, `quiet`, `synced`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// The n-th LIST without a continue token since the client started, or the `next`.
    pub(crate) list: Option<At<Nth>>,
    /// A later page (from 2) of the latest LIST; with `list: n`, of that one.
    #[schemars(range(min = 2, max = 100_000))]
    pub(crate) page: Option<At<u64>>,
    /// The n-th WATCH (streaming lists included) since the client started, or the `next`.
    pub(crate) watch: Option<At<Nth>>,
    /// The n-th request of any kind since the client started, or the `next`.
    pub(crate) request: Option<At<Nth>>,
    /// Query parameters the request must have.
    pub(crate) query: Option<At<Query>>,
    /// An event the client reports, counted from when the step is armed: a word (`init_done`), or a map.
    pub(crate) emitted: Option<At<WordOr<Emitted>>>,
    /// This long after the previous step is done.
    pub(crate) after: Option<At<Duration>>,
    /// When neither side sent anything for this time (bookmarks do not count).
    pub(crate) quiet: Option<At<Duration>>,
    /// When the client has an open watch and its cache equals the store.
    #[serde(default, deserialize_with = "given")]
    pub(crate) synced: Option<At<()>>,
}

impl Words for When {
    const WORDS: &'static [&'static str] = &["synced"];
}

/// A number from 1, or `next`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Nth(pub(crate) String);

impl JsonSchema for Nth {
    fn schema_name() -> Cow<'static, str> {
        "Nth".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Which one: a number, counted from 1 since the client started, or `next`.",
            "anyOf": [{ "type": "integer", "minimum": 1 }, { "enum": ["next"] }],
        })
    }
}

/// Conditions on query parameters. Other parameters are not checked.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Query {
    /// `resourceVersion`.
    pub(crate) resource_version: Option<At<First<Condition>>>,
    /// `resourceVersionMatch`: `Exact` or `NotOlderThan`.
    pub(crate) resource_version_match: Option<At<First<Condition>>>,
    /// `limit`: the page size.
    pub(crate) limit: Option<At<First<Condition>>>,
    /// `continue`: the continue token.
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<At<First<Condition>>>,
    /// `watch`: `true` on a WATCH.
    pub(crate) watch: Option<At<First<Condition>>>,
    /// `allowWatchBookmarks`: `true` requests bookmarks.
    pub(crate) allow_watch_bookmarks: Option<At<First<Condition>>>,
    /// `sendInitialEvents`: `true` makes a WATCH a streaming list.
    pub(crate) send_initial_events: Option<At<First<Condition>>>,
    /// `timeoutSeconds` of a watch.
    pub(crate) timeout_seconds: Option<At<First<Condition>>>,
    /// `labelSelector`.
    pub(crate) label_selector: Option<At<First<Condition>>>,
    /// `fieldSelector`.
    pub(crate) field_selector: Option<At<First<Condition>>>,
}

/// Condition on a value: a text, `absent`, `present`, `$name`, `$name.continue` or `$start`; or a map with `not` or
/// `is`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// The value itself.
    #[schemars(skip)]
    pub(crate) bare: Option<At<Text>>,
    /// Exactly this text, even if it is `absent` or starts with `$`.
    pub(crate) is: Option<At<Text>>,
    /// Anything but this: a text, `absent`, `$name`.
    pub(crate) not: Option<At<Text>>,
}

/// An event that the client reports: one of six kinds, with the object's name or `any`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emitted {
    /// A (re)list started.
    #[serde(default, deserialize_with = "given")]
    pub(crate) init: Option<At<()>>,
    /// An object of the (re)list.
    #[serde(default, deserialize_with = "given")]
    pub(crate) init_apply: Option<At<OrNothing<Text>>>,
    /// The (re)list is complete.
    #[serde(default, deserialize_with = "given")]
    pub(crate) init_done: Option<At<()>>,
    /// An object was added or changed.
    #[serde(default, deserialize_with = "given")]
    pub(crate) apply: Option<At<OrNothing<Text>>>,
    /// An object was deleted.
    #[serde(default, deserialize_with = "given")]
    pub(crate) delete: Option<At<OrNothing<Text>>>,
    /// The client reported an error.
    #[serde(default, deserialize_with = "given")]
    pub(crate) error: Option<At<()>>,
    /// The n-th such event. Default 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) nth: Option<At<u64>>,
    /// The object's resourceVersion.
    pub(crate) rv: Option<At<First<Condition>>>,
    /// The code of an `error`.
    #[schemars(range(min = 0, max = 999))]
    pub(crate) code: Option<At<u64>>,
    /// Text that the message of an `error` contains.
    pub(crate) message: Option<At<Text>>,
}

impl Words for Emitted {
    const WORDS: &'static [&'static str] = &["init", "init_apply", "init_done", "apply", "delete", "error"];
}
