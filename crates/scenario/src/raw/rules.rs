//! File format of rules (steps without order) and waits (rules without actions).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ActionKeys, Duration, When};
use crate::read::{At, Both, OneOrMany, Text, WordOr};

/// A rule: requests, trigger and actions, or a single action.
pub type Rule = Both<RuleKeys, ActionKeys>;

/// A rule: which requests it applies to, and what it does. Without `when` it is applied immediately to every open
/// watch selected by `from`, and then removed. A single action may be a key of the rule instead of under `do`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rule")]
pub struct RuleKeys {
    /// Name of the rule, recorded in the trace when it matches. Default: its number.
    pub name: Option<At<String>>,
    /// Requests and watches that the rule applies to. Default: all.
    pub from: Option<At<FromKeys>>,
    /// Requests it waits for: `list`, `page`, `watch` or `request`, counted from when the rule was added; `request`
    /// includes writes and reads of single objects.
    pub when: Option<At<WordOr<When>>>,
    /// Number of matching requests before the rule is removed. Default 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub times: Option<At<u64>>,
    /// Handle every matching request for this time, from the first one.
    #[serde(rename = "for")]
    pub lasts: Option<At<Duration>>,
    /// Actions, in order: one or a list.
    #[serde(rename = "do")]
    pub actions: Option<At<OneOrMany<At<WordOr<ActionKeys>>>>>,
}

/// Request filter: all keys must match.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "From")]
pub struct FromKeys {
    /// Substring of the User-Agent header.
    pub user_agent: Option<At<Text>>,
    /// Number of a connection, as in the trace (`c4` is 4).
    #[schemars(range(min = 1))]
    pub connection: Option<At<u64>>,
    /// Number of a request, as in the trace (`#7` is 7).
    #[schemars(range(min = 1))]
    pub stream: Option<At<u64>>,
    /// The replica that received it: `primary`, or `secondary` (`serve --secondary`).
    pub replica: Option<At<ReplicaWord>>,
    /// Plural and group: `configmaps`, `deployments.apps`.
    pub resource: Option<At<String>>,
    /// A namespace.
    pub namespace: Option<At<String>>,
    /// `get`, `create`, `update`, `patch`, `delete` or `deletecollection`; `list` and `watch` are keys of `when`.
    pub verb: Option<At<VerbWord>>,
    /// `metadata.name` of the object in the path.
    pub name: Option<At<Text>>,
    /// Subresource in the path, e.g. `status` or `scale`.
    pub subresource: Option<At<Text>>,
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: Option<At<MethodWord>>,
    /// Prefix of the path.
    pub path: Option<At<Text>>,
}

/// One of two apiservers on the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaWord {
    /// The primary replica.
    Primary,
    /// The secondary replica.
    Secondary,
}

/// An RBAC verb other than `list` and `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerbWord {
    /// Reads an object.
    Get,
    /// Creates an object, or a subresource of one.
    Create,
    /// Replaces an object.
    Update,
    /// Patches an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl VerbWord {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum MethodWord {
    /// Reads.
    #[serde(rename = "GET")]
    Get,
    /// Reads without a response body.
    #[serde(rename = "HEAD")]
    Head,
    /// Creates.
    #[serde(rename = "POST")]
    Post,
    /// Replaces.
    #[serde(rename = "PUT")]
    Put,
    /// Changes.
    #[serde(rename = "PATCH")]
    Patch,
    /// Deletes.
    #[serde(rename = "DELETE")]
    Delete,
}

impl MethodWord {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What to wait for: a request (`when`), a sent event (`sent`), or the end of a response (`closed`).
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Wait")]
pub struct WaitKeys {
    /// Requests and watches that count. Default: all.
    pub from: Option<At<FromKeys>>,
    /// A request: `list`, `page`, `watch` or `request`, counted from `since`.
    pub when: Option<At<WordOr<When>>>,
    /// An event sent on a watch.
    pub sent: Option<At<SentKeys>>,
    /// The end of a response: `any`, or how it ended (`eof`, `fin`, `rst`).
    pub closed: Option<At<ClosedWord>>,
    /// Number of the first trace record that counts. Default: the next record for a `next` request, otherwise the
    /// oldest record kept.
    pub since: Option<At<u64>>,
    /// Maximum time to wait. Default 30s.
    pub timeout: Option<At<Duration>>,
}

/// A complete event sent on a watch: all keys must match.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sent")]
pub struct SentKeys {
    /// resourceVersion of an event or bookmark; later versions count too.
    pub rv: Option<At<Text>>,
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type")]
    pub kind: Option<At<EventWord>>,
    /// The object's name, or `namespace/name`.
    pub name: Option<At<Text>>,
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventWord {
    /// An object was added.
    Added,
    /// An object was modified.
    Modified,
    /// An object was deleted.
    Deleted,
    /// A bookmark.
    Bookmark,
    /// An error with a Status.
    Error,
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClosedWord {
    /// Any end, by either side.
    Any,
    /// Clean end by the server.
    Eof,
    /// The connection was closed.
    Fin,
    /// The connection was reset.
    Rst,
}
