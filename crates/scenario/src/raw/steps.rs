//! File format of steps and their triggers.

use std::borrow::Cow;

use super::{ActionKeys, Duration};
use crate::read::{At, Both, First, Nothing, OneOrMany, OrNothing, Text, WordOr, Words, given};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// A step: a trigger and actions, or a single action.
pub type Step = Both<StepKeys, ActionKeys>;

/// A step: when it runs and what it does. Without `when` it runs as soon as the previous step is done. A single
/// action may be a key of the step instead of under `do`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub struct StepKeys {
    /// Trigger of the step.
    pub when: Option<At<WordOr<When>>>,
    /// Skip the step if a later step is met first. Default false.
    pub optional: Option<At<bool>>,
    /// Number of matching requests handled before the step is done. Default 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub times: Option<At<u64>>,
    /// Handle every matching request for this time, from the first one.
    #[serde(rename = "for")]
    pub lasts: Option<At<Duration>>,
    /// How long the step may wait before the verdict is *stuck*. Default 10m in sim, 20s in live.
    pub within: Option<At<Duration>>,
    /// Requirements that a client is evidence against which never does what the step waits for, of those in the scenario's
    /// `covers`. Default: those of `expect.converges`.
    pub requirements: Option<At<Vec<At<String>>>>,
    /// Actions, in order: one or a list.
    #[serde(rename = "do")]
    pub actions: Option<At<OneOrMany<At<WordOr<ActionKeys>>>>>,
    /// Comment in the line above the step. The parser skips comments.
    #[serde(skip)]
    pub comment: Option<String>,
}

impl StepKeys {
    /// Returns its actions.
    pub fn items(&self) -> impl Iterator<Item = &ActionKeys> {
        let actions = self.actions.iter().flat_map(|actions| &actions.value.0);
        actions.map(|action| &action.value.0)
    }

    /// Returns the list of its actions.
    pub fn items_mut(&mut self) -> &mut Vec<At<WordOr<ActionKeys>>> {
        let actions = self.actions.get_or_insert_with(|| OneOrMany(Vec::new()).into());
        &mut actions.value.0
    }
}

impl From<StepKeys> for At<WordOr<Step>> {
    fn from(keys: StepKeys) -> Self {
        WordOr(Both(keys, ActionKeys::default())).into()
    }
}

/// Trigger of a step: one of `list`, `page`, `watch`, `request`, `emitted`, `after`, `quiet`, `synced`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The n-th LIST without a continue token since the client started, or the `next`.
    pub list: Option<At<Nth>>,
    /// A later page (from 2) of the latest LIST; with `list: n`, of that one.
    #[schemars(range(min = 2, max = 100_000))]
    pub page: Option<At<u64>>,
    /// The n-th WATCH (streaming lists included) since the client started, or the `next`.
    pub watch: Option<At<Nth>>,
    /// The n-th request of any kind since the client started, or the `next`.
    pub request: Option<At<Nth>>,
    /// Query parameters the request must have.
    pub query: Option<At<Query>>,
    /// An event the client reports, counted from when the step is armed: a word (`init_done`), or a map.
    pub emitted: Option<At<WordOr<Emitted>>>,
    /// This long after the previous step is done.
    pub after: Option<At<Duration>>,
    /// When neither side sent anything for this time (bookmarks do not count).
    pub quiet: Option<At<Duration>>,
    /// When the client has an open watch and its cache equals the store.
    #[serde(default, deserialize_with = "given")]
    pub synced: Option<At<Nothing>>,
}

impl Words for When {
    const WORDS: &'static [&'static str] = &["synced"];
}

/// A number from 1, or `next`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Nth(pub String);

impl Serialize for Nth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        super::number_or_word(&self.0, serializer)
    }
}

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
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Query {
    /// `resourceVersion`.
    pub resource_version: Option<At<First<Condition>>>,
    /// `resourceVersionMatch`: `Exact` or `NotOlderThan`.
    pub resource_version_match: Option<At<First<Condition>>>,
    /// `limit`: the page size.
    pub limit: Option<At<First<Condition>>>,
    /// `continue`: the continue token.
    #[serde(rename = "continue")]
    pub continue_token: Option<At<First<Condition>>>,
    /// `watch`: `true` on a WATCH.
    pub watch: Option<At<First<Condition>>>,
    /// `allowWatchBookmarks`: `true` requests bookmarks.
    pub allow_watch_bookmarks: Option<At<First<Condition>>>,
    /// `sendInitialEvents`: `true` makes a WATCH a streaming list.
    pub send_initial_events: Option<At<First<Condition>>>,
    /// `timeoutSeconds` of a watch.
    pub timeout_seconds: Option<At<First<Condition>>>,
    /// `labelSelector`.
    pub label_selector: Option<At<First<Condition>>>,
    /// `fieldSelector`.
    pub field_selector: Option<At<First<Condition>>>,
}

/// Condition on a value: a text, `absent`, `present`, `$name`, `$name.continue` or `$start`; or a map with `not` or
/// `is`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The value itself.
    #[schemars(skip)]
    pub bare: Option<At<Text>>,
    /// Exactly this text, even if it is `absent` or starts with `$`.
    pub is: Option<At<Text>>,
    /// Anything but this: a text, `absent`, `$name`.
    pub not: Option<At<Text>>,
}

/// An event that the client reports: one of six kinds, with the object's name or `any`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Emitted {
    /// A (re)list started.
    #[serde(default, deserialize_with = "given")]
    pub init: Option<At<Nothing>>,
    /// An object of the (re)list.
    #[serde(default, deserialize_with = "given")]
    pub init_apply: Option<At<OrNothing<Text>>>,
    /// The (re)list is complete.
    #[serde(default, deserialize_with = "given")]
    pub init_done: Option<At<Nothing>>,
    /// An object was added or changed.
    #[serde(default, deserialize_with = "given")]
    pub apply: Option<At<OrNothing<Text>>>,
    /// An object was deleted.
    #[serde(default, deserialize_with = "given")]
    pub delete: Option<At<OrNothing<Text>>>,
    /// The client reported an error.
    #[serde(default, deserialize_with = "given")]
    pub error: Option<At<Nothing>>,
    /// The n-th such event. Default 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub nth: Option<At<u64>>,
    /// The object's resourceVersion.
    pub rv: Option<At<First<Condition>>>,
    /// The code of an `error`.
    #[schemars(range(min = 0, max = 999))]
    pub code: Option<At<u64>>,
    /// Text that the message of an `error` contains.
    pub message: Option<At<Text>>,
}

impl Words for Emitted {
    const WORDS: &'static [&'static str] = &["init", "init_apply", "init_done", "apply", "delete", "error"];
}
