//! The shape of a rule, which is a step without order, and of a wait, which is a rule that does nothing.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ActionKeys, Duration, When};
use crate::read::{At, Both, OneOrMany, Text, WordOr};

/// A rule: whom it concerns, when, and what is done; or just one action.
pub(crate) type Rule = Both<RuleKeys, ActionKeys>;

/// A rule: what is done to which requests. Without `when` it is done at once, to every open watch that `from` means, and
/// then forgotten. A single action may stand in the rule itself instead of under `do`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Rule")]
pub(crate) struct RuleKeys {
    /// A word for the rule, shown in the trace when it is met. Default: its number.
    pub(crate) name: Option<At<String>>,
    /// Whose requests and watches it concerns. Default: everybody's.
    pub(crate) from: Option<At<FromKeys>>,
    /// Which requests it waits for: `list`, `page`, `watch` or `request`, counted from when the rule was made; `request`
    /// means writes and reads of single objects too.
    pub(crate) when: Option<At<WordOr<When>>>,
    /// How many such requests it answers before it is forgotten. Default 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) times: Option<At<u64>>,
    /// It answers every such request for so long, counted from the first one.
    #[serde(rename = "for")]
    pub(crate) lasts: Option<At<Duration>>,
    /// What is done, in order: an action, or a list of them.
    #[serde(rename = "do")]
    pub(crate) actions: Option<At<OneOrMany<At<WordOr<ActionKeys>>>>>,
}

/// Whose requests: all that is given must fit.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "From")]
pub(crate) struct FromKeys {
    /// A part of the User-Agent header.
    pub(crate) user_agent: Option<At<Text>>,
    /// The number of a connection, as the trace shows it (`c4` is 4).
    #[schemars(range(min = 1))]
    pub(crate) connection: Option<At<u64>>,
    /// The number of a request, as the trace shows it (`#7` is 7).
    #[schemars(range(min = 1))]
    pub(crate) stream: Option<At<u64>>,
    /// The replica it was sent to: `primary`, or `secondary` (`serve --secondary`).
    pub(crate) replica: Option<At<ReplicaWord>>,
    /// `configmaps`, `deployments.apps`: the plural, and the group after a dot.
    pub(crate) resource: Option<At<String>>,
    /// A namespace.
    pub(crate) namespace: Option<At<String>>,
    /// `get`, `create`, `update`, `patch`, `delete` or `deletecollection`; `list` and `watch` stand under `when`.
    pub(crate) verb: Option<At<VerbWord>>,
    /// The object in the path, by its `metadata.name`.
    pub(crate) name: Option<At<Text>>,
    /// `status`, `scale`: the segment behind the object's name.
    pub(crate) subresource: Option<At<Text>>,
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub(crate) method: Option<At<MethodWord>>,
    /// The beginning of the path.
    pub(crate) path: Option<At<Text>>,
}

/// One of two apiservers on the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplicaWord {
    /// The first.
    Primary,
    /// The second.
    Secondary,
}

/// A verb of RBAC, beside `list` and `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum VerbWord {
    /// Reads an object.
    Get,
    /// Creates one, or one of a subresource.
    Create,
    /// Replaces one.
    Update,
    /// Changes one.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes all of a collection.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum MethodWord {
    /// Reads.
    #[serde(rename = "GET")]
    Get,
    /// Reads without their body.
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

/// What to wait for: a request (`when`), or something sent (`sent`).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Wait")]
pub(crate) struct WaitKeys {
    /// Whose requests and watches. Default: anybody's.
    pub(crate) from: Option<At<FromKeys>>,
    /// A request: `list`, `page`, `watch` or `request`, counted from `since`.
    pub(crate) when: Option<At<WordOr<When>>>,
    /// Something a watch was sent.
    pub(crate) sent: Option<At<SentKeys>>,
    /// The end of an answer: `any`, or how it ended (`eof`, `fin`, `rst`).
    pub(crate) closed: Option<At<ClosedWord>>,
    /// The number of the first record of the trace that counts. Default: for the `next` request the next record there will
    /// be, else the first that is kept.
    pub(crate) since: Option<At<u64>>,
    /// How long to wait at most. Default 30s.
    pub(crate) timeout: Option<At<Duration>>,
}

/// Something a watch was sent whole: what is given must fit.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sent")]
pub(crate) struct SentKeys {
    /// The resourceVersion of an event or bookmark; one of a later version counts too.
    pub(crate) rv: Option<At<Text>>,
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<At<EventWord>>,
    /// The object's name, or `namespace/name`.
    pub(crate) name: Option<At<Text>>,
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum EventWord {
    /// There now.
    Added,
    /// Changed.
    Modified,
    /// Gone.
    Deleted,
    /// A version.
    Bookmark,
    /// A Status.
    Error,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClosedWord {
    /// In whatever way, by whichever side.
    Any,
    /// Cleanly, by the server.
    Eof,
    /// By a closed connection.
    Fin,
    /// By a reset.
    Rst,
}
