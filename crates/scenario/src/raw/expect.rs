//! File format of a scenario's expectations.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Condition, Duration, Emitted, Query};
use crate::read::{At, Both, Entries, First, OrNothing, Text, WordOr, Words, given};

/// Expectations of the scenario.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expect")]
pub(crate) struct Expectations {
    /// Requests that must be sent, in this order; others may come in between.
    pub(crate) requests: Option<Vec<At<WordOr<RequestExpected>>>>,
    /// Allow no requests but those in `requests`. Default false.
    pub(crate) only: Option<At<bool>>,
    /// Requests that must not be sent.
    pub(crate) never: Option<Vec<At<WordOr<RequestForbidden>>>>,
    /// Number of requests of a kind.
    pub(crate) counts: Option<Vec<At<RequestCounted>>>,
    /// Events that must be reported, in this order; others may come in between.
    pub(crate) events: Option<Vec<At<WordOr<EventExpected>>>>,
    /// Events that must not be reported.
    pub(crate) never_emitted: Option<Vec<At<WordOr<EventForbidden>>>>,
    /// Names of the objects in the cache at the end. Default: those in the store.
    pub(crate) cache: Option<Vec<At<Text>>>,
    /// Requirements that a run is evidence against which does not come to its end: the client crashes, gives up, never does
    /// what a step waits for, or does not hold what the server holds; of those in the scenario's `covers`; `[]`: none.
    /// Default: the only one of them; of several, none.
    pub(crate) converges: Option<At<Vec<At<String>>>>,
    /// Requirements that a client is evidence against which gives up for good, of those in the scenario's `covers`.
    /// Default: those of `converges`.
    pub(crate) goes_on: Option<At<Vec<At<String>>>>,
    /// Requirements that a crash of the client is evidence against, of those in the scenario's `covers`. Default: those of
    /// `converges`.
    pub(crate) survives: Option<At<Vec<At<String>>>>,
    /// Time limit for the end of the run, after the last step. Default 3m.
    pub(crate) within: Option<At<Duration>>,
    /// How long the run continues once the cache equals the store, so that forbidden requests and events can occur.
    /// Default 0ms.
    pub(crate) settle: Option<At<Duration>>,
    /// Why the cache cannot equal the store at the end: the faults last until then.
    pub(crate) not_converged: Option<At<String>>,
    /// Invariants that the scripted faults break, each with a reason: `{INV-07: reason}`.
    pub(crate) excused: Option<Vec<At<Excuses>>>,
}

/// Invariants with reasons.
pub(crate) type Excuses = Entries<At<OrNothing<Text>>>;
/// A request that must be sent.
pub(crate) type RequestExpected = Both<ExpectedKeys, RequestMatch>;
/// A request that must not be sent.
pub(crate) type RequestForbidden = Both<ForbiddenKeys, RequestMatch>;
/// A number of requests.
pub(crate) type RequestCounted = Both<CountedKeys, RequestMatch>;
/// An event that must be reported.
pub(crate) type EventExpected = Both<ExpectedEventKeys, Emitted>;
/// An event that must not be reported.
pub(crate) type EventForbidden = Both<EventWindow, Emitted>;

/// Kind of request and its query: one of `list`, `page`, `watch`, `request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Request")]
pub(crate) struct RequestMatch {
    /// A LIST without a continue token, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) list: Option<At<OrNothing<Query>>>,
    /// Page number (from 2) of a LIST.
    #[schemars(range(min = 2, max = 100_000))]
    pub(crate) page: Option<At<u64>>,
    /// A WATCH, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) watch: Option<At<OrNothing<Query>>>,
    /// A request of any kind, with this query.
    #[serde(default, deserialize_with = "given")]
    pub(crate) request: Option<At<OrNothing<Query>>>,
    /// Query of the `page`.
    pub(crate) query: Option<At<Query>>,
}

impl Words for RequestMatch {
    const WORDS: &'static [&'static str] = &["list", "watch", "request"];
}

/// A request that must be sent: `list`, `page`, `watch`, `request`, `resume`, or `any_of` several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedRequest")]
pub(crate) struct ExpectedKeys {
    /// Alternatives; one must match.
    pub(crate) any_of: Option<At<Vec<At<WordOr<RequestMatch>>>>>,
    /// The next WATCH starts at this version, or the client relists first.
    pub(crate) resume: Option<At<First<Condition>>>,
    /// HTTP status of the response.
    #[schemars(range(min = 100, max = 599))]
    pub(crate) answered: Option<At<u64>>,
    /// Headers the request must have, verbatim.
    pub(crate) headers: Option<At<Headers>>,
    /// Time since the previous expected request.
    pub(crate) gap: Option<At<Gap>>,
    /// Name of the list: `$name` and `$name.continue` in later expectations.
    #[serde(rename = "as")]
    pub(crate) name: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
}

/// Conditions on request headers. Other headers are not checked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Headers {
    /// `Accept`.
    pub(crate) accept: Option<At<First<Condition>>>,
    /// `User-Agent`.
    pub(crate) user_agent: Option<At<First<Condition>>>,
}

/// Limits on the time between two requests.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gap {
    /// Minimum.
    pub(crate) at_least: Option<At<Duration>>,
    /// Maximum.
    pub(crate) at_most: Option<At<Duration>>,
}

/// A request that must not be sent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenRequest")]
pub(crate) struct ForbiddenKeys {
    /// Applies only after the step of this name is done. Default: always.
    pub(crate) after: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
}

/// A number of requests.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CountedRequest")]
pub(crate) struct CountedKeys {
    /// Minimum.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) at_least: Option<At<u64>>,
    /// Maximum.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) at_most: Option<At<u64>>,
    /// Exact number.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) exactly: Option<At<u64>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
}

/// An event that must be reported.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ExpectedEvent")]
pub(crate) struct ExpectedEventKeys {
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
}

/// When an event must not be reported.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForbiddenEvent")]
pub(crate) struct EventWindow {
    /// Applies only before the step of this name is done.
    pub(crate) before: Option<At<String>>,
    /// Applies only after the step of this name is done.
    pub(crate) after: Option<At<String>>,
    /// Requirements that a failure is evidence against, of those in the scenario's `covers`. Default: the first of them.
    pub(crate) requirements: Option<At<Vec<At<String>>>>,
}
