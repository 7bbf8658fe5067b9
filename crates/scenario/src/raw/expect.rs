//! The shape of what must come of a scenario.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Condition, Duration, Emitted, Query};
use crate::read::{At, Both, Entries, First, OrNothing, Text, WordOr, Words, given};

/// What must come of the scenario.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
pub(crate) struct Expectations {
    /// These requests, in this order; others may come between them.
    pub(crate) requests: Option<Vec<At<WordOr<RequestExpected>>>>,
    /// No requests but those in `requests`. Default false.
    pub(crate) only: Option<At<bool>>,
    /// Never such a request.
    pub(crate) never: Option<Vec<At<WordOr<RequestForbidden>>>>,
    /// How many such requests.
    pub(crate) counts: Option<Vec<At<RequestCounted>>>,
    /// These events, in this order; others may come between them.
    pub(crate) events: Option<Vec<At<WordOr<Emitted>>>>,
    /// Never such an event.
    pub(crate) never_emitted: Option<Vec<At<WordOr<EventForbidden>>>>,
    /// The names in the cache at the end. Default: whatever the truth is.
    pub(crate) cache: Option<Vec<At<Text>>>,
    /// The end comes at the latest so long after the last step. Default 3m.
    pub(crate) within: Option<At<Duration>>,
    /// How long to go on once the cache equals the truth, so that what must not happen could. Default 0ms.
    pub(crate) settle: Option<At<Duration>>,
    /// Why the cache cannot equal the truth at the end, because the server lies to the end.
    pub(crate) not_converged: Option<At<String>>,
    /// Invariants that do not hold here because the server lies, each with the reason: `{INV-07: reason}`.
    pub(crate) excused: Option<Vec<At<Excuses>>>,
}

/// Invariants, each with its reason.
pub(crate) type Excuses = Entries<At<OrNothing<Text>>>;
/// A request that must come.
pub(crate) type RequestExpected = Both<ExpectedKeys, RequestMatch>;
/// A request that must not come.
pub(crate) type RequestForbidden = Both<ForbiddenKeys, RequestMatch>;
/// A number of requests.
pub(crate) type RequestCounted = Both<CountedKeys, RequestMatch>;
/// An event that must not be reported.
pub(crate) type EventForbidden = Both<EventWindow, Emitted>;

/// A kind of request and the query it must have: one of `list`, `page`, `watch`, `request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Request")]
pub(crate) struct RequestMatch {
    /// A LIST without a continue token, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) list: Option<At<OrNothing<Query>>>,
    /// This page (from 2) of a LIST.
    #[schemars(range(min = 2, max = 100_000))]
    pub(crate) page: Option<At<u64>>,
    /// A WATCH, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) watch: Option<At<OrNothing<Query>>>,
    /// A request of any kind, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) request: Option<At<OrNothing<Query>>>,
    /// The query of a `page`.
    pub(crate) query: Option<At<Query>>,
}

impl Words for RequestMatch {
    const WORDS: &'static [&'static str] = &["list", "watch", "request"];
}

/// A request that must come: `list`, `page`, `watch`, `request`, `resume`, or `any_of` several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedRequest")]
pub(crate) struct ExpectedKeys {
    /// Alternatives; any one suffices.
    pub(crate) any_of: Option<At<Vec<At<WordOr<RequestMatch>>>>>,
    /// The next WATCH starts at this version, or the client relisted before it.
    pub(crate) resume: Option<At<First<Condition>>>,
    /// The HTTP status it was answered with.
    #[schemars(range(min = 100, max = 599))]
    pub(crate) answered: Option<At<u64>>,
    /// Headers it must have, verbatim.
    pub(crate) headers: Option<At<Headers>>,
    /// Time since the request expected before it.
    pub(crate) gap: Option<At<Gap>>,
    /// A name for the list it reads: `$name` and `$name.continue` in later expectations.
    #[serde(rename = "as")]
    pub(crate) name: Option<At<String>>,
}

/// Conditions on the request headers that a trace has. Headers not named here are free.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headers {
    /// `Accept`.
    pub(crate) accept: Option<At<First<Condition>>>,
    /// `User-Agent`.
    pub(crate) user_agent: Option<At<First<Condition>>>,
}

/// Bounds on the time between two requests.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gap {
    /// Not sooner.
    pub(crate) at_least: Option<At<Duration>>,
    /// Not later.
    pub(crate) at_most: Option<At<Duration>>,
}

/// A request that must not come.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenRequest")]
pub(crate) struct ForbiddenKeys {
    /// Only after the step of this name was done. Default: ever.
    pub(crate) after: Option<At<String>>,
}

/// A number of requests.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CountedRequest")]
pub(crate) struct CountedKeys {
    /// Not fewer.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) at_least: Option<At<u64>>,
    /// Not more.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) at_most: Option<At<u64>>,
    /// Neither fewer nor more.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) exactly: Option<At<u64>>,
}

/// When an event must not be reported.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenEvent")]
pub(crate) struct EventWindow {
    /// Only before the step of this name was done.
    pub(crate) before: Option<At<String>>,
    /// Only after the step of this name was done.
    pub(crate) after: Option<At<String>>,
}
