//! File format of a scenario's expectations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, Duration, Emitted, Query};
use crate::read::{At, Both, Entries, First, OrNothing, Text, WordOr, Words, given};

/// Expectations of the scenario.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
pub struct Expectations {
    /// Requests that must be sent, in this order; others may come in between.
    pub requests: Option<Vec<At<WordOr<RequestExpected>>>>,
    /// Allow no requests but those in `requests`. Default false.
    pub only: Option<At<bool>>,
    /// Requests that must not be sent.
    pub never: Option<Vec<At<WordOr<RequestForbidden>>>>,
    /// Number of requests of a kind.
    pub counts: Option<Vec<At<RequestCounted>>>,
    /// Events that must be reported, in this order; others may come in between.
    pub events: Option<Vec<At<WordOr<EventExpected>>>>,
    /// Events that must not be reported.
    pub never_emitted: Option<Vec<At<WordOr<EventForbidden>>>>,
    /// Names of the objects in the cache at the end. Default: those in the store.
    pub cache: Option<Vec<At<Text>>>,
    /// Requirements that a run is evidence against which does not come to its end: the client crashes, gives up, never does
    /// what a step waits for, or does not hold what the server holds; of those in the scenario's `covers`; `[]`: none.
    /// Default: the only one of them; of several, none.
    pub converges: Option<At<Vec<At<String>>>>,
    /// Requirements that a client is evidence against which gives up for good, of those in the scenario's `covers`.
    /// Default: those of `converges`.
    pub goes_on: Option<At<Vec<At<String>>>>,
    /// Requirements that a crash of the client is evidence against, of those in the scenario's `covers`. Default: those of
    /// `converges`.
    pub survives: Option<At<Vec<At<String>>>>,
    /// Time limit for the end of the run, after the last step. Default 3m.
    pub within: Option<At<Duration>>,
    /// How long the run continues once the cache equals the store, so that forbidden requests and events can occur.
    /// Default 0ms.
    pub settle: Option<At<Duration>>,
    /// Why the cache cannot equal the store at the end: the faults last until then.
    pub not_converged: Option<At<String>>,
    /// Invariants that the scripted faults break, each with a reason: `{INV-07: reason}`.
    pub excused: Option<Vec<At<Excuses>>>,
}

/// Invariants with reasons.
pub type Excuses = Entries<At<OrNothing<Text>>>;
/// A request that must be sent.
pub type RequestExpected = Both<ExpectedKeys, RequestMatch>;
/// A request that must not be sent.
pub type RequestForbidden = Both<ForbiddenKeys, RequestMatch>;
/// A number of requests.
pub type RequestCounted = Both<CountedKeys, RequestMatch>;
/// An event that must be reported.
pub type EventExpected = Both<ExpectedEventKeys, Emitted>;
/// An event that must not be reported.
pub type EventForbidden = Both<EventWindow, Emitted>;

/// Kind of request and its query: one of `list`, `page`, `watch`, `request`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Request")]
pub struct RequestMatch {
    /// A LIST without a continue token, with this query.
    #[serde(default, deserialize_with = "given")]
    pub list: Option<At<OrNothing<Query>>>,
    /// Page number (from 2) of a LIST.
    #[schemars(range(min = 2, max = 100_000))]
    pub page: Option<At<u64>>,
    /// A WATCH, with this query.
    #[serde(default, deserialize_with = "given")]
    pub watch: Option<At<OrNothing<Query>>>,
    /// A request of any kind, with this query.
    #[serde(default, deserialize_with = "given")]
    pub request: Option<At<OrNothing<Query>>>,
    /// Query of the `page`.
    pub query: Option<At<Query>>,
}

impl Words for RequestMatch {
    const WORDS: &'static [&'static str] = &["list", "watch", "request"];
}

/// A request that must be sent: `list`, `page`, `watch`, `request`, `resume`, or `any_of` several.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedRequest")]
pub struct ExpectedKeys {
    /// Alternatives; one must match.
    pub any_of: Option<At<Vec<At<WordOr<RequestMatch>>>>>,
    /// The next WATCH starts at this version, or the client relists first.
    pub resume: Option<At<First<Condition>>>,
    /// HTTP status of the response.
    #[schemars(range(min = 100, max = 599))]
    pub answered: Option<At<u64>>,
    /// Headers the request must have, verbatim.
    pub headers: Option<At<Headers>>,
    /// Time since the previous expected request.
    pub gap: Option<At<Gap>>,
    /// Name of the list: `$name` and `$name.continue` in later expectations.
    #[serde(rename = "as")]
    pub name: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub requirements: Option<At<Vec<At<String>>>>,
}

/// Conditions on request headers. Other headers are not checked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Headers {
    /// `Accept`.
    pub accept: Option<At<First<Condition>>>,
    /// `User-Agent`.
    pub user_agent: Option<At<First<Condition>>>,
}

/// Limits on the time between two requests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Minimum.
    pub at_least: Option<At<Duration>>,
    /// Maximum.
    pub at_most: Option<At<Duration>>,
}

/// A request that must not be sent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenRequest")]
pub struct ForbiddenKeys {
    /// Applies only after the step of this name is done. Default: always.
    pub after: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub requirements: Option<At<Vec<At<String>>>>,
}

/// A number of requests.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CountedRequest")]
pub struct CountedKeys {
    /// Minimum.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub at_least: Option<At<u64>>,
    /// Maximum.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub at_most: Option<At<u64>>,
    /// Exact number.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub exactly: Option<At<u64>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub requirements: Option<At<Vec<At<String>>>>,
}

/// An event that must be reported.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedEvent")]
pub struct ExpectedEventKeys {
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub requirements: Option<At<Vec<At<String>>>>,
}

/// When an event must not be reported.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenEvent")]
pub struct EventWindow {
    /// Applies only before the step of this name is done.
    pub before: Option<At<String>>,
    /// Applies only after the step of this name is done.
    pub after: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub requirements: Option<At<Vec<At<String>>>>,
}
