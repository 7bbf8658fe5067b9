//! File format of steps: triggers and actions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use trace::fault::Http2Error;

use super::{Duration, Loose, Names, Object, ReplicaWord};
use crate::read::{At, Both, Entries, First, Json, OneOrMany, OrNothing, Text, WordOr, Words, given};

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

/// An action: a word, or a map with one of these keys. Actions on the store come first, then those on the response,
/// then those on the socket.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Action")]
pub(crate) struct ActionKeys {
    /// On a step: its name; `$name` is the version of the list it handled, `$name.continue` its token. On an action
    /// that writes: `$name` is the resourceVersion written.
    #[serde(rename = "as")]
    pub(crate) name: Option<At<String>>,

    // ---- store
    /// Create the objects, or replace those that exist.
    pub(crate) apply: Option<At<OneOrMany<At<Object>>>>,
    /// Delete the objects.
    pub(crate) delete: Option<At<Names>>,
    /// Change the labels of an object; `null` removes one.
    pub(crate) relabel: Option<At<Relabel>>,
    /// Compact the store: older exact lists, continue tokens and watch starts fail with 410 from now on.
    #[serde(default, deserialize_with = "given")]
    pub(crate) compact: Option<At<()>>,
    /// Rebuild the watch cache: open watches of the target end cleanly, and watches from older versions fail with
    /// 410.
    #[serde(default, deserialize_with = "given")]
    pub(crate) clear_watch_cache: Option<At<OrNothing<Turned>>>,
    /// Stop the watch cache: cached reads are stale, and watches receive no new events.
    #[serde(default, deserialize_with = "given")]
    pub(crate) freeze_watch_cache: Option<At<OrNothing<Turned>>>,
    /// Delay the watch cache: it receives every write this much later, so cached reads and watches lag.
    pub(crate) lag_watch_cache: Option<At<First<Lag>>>,
    /// Let the watch cache catch up and follow the store without delay.
    #[serde(default, deserialize_with = "given")]
    pub(crate) thaw_watch_cache: Option<At<OrNothing<Turned>>>,
    /// Restore the store to its state at `$name`, as from a backup.
    pub(crate) restore: Option<At<Text>>,
    /// Restart the apiserver: its connections are closed, and its watch caches are those of a new process. Nothing
    /// stored is lost.
    #[serde(default, deserialize_with = "given")]
    pub(crate) restart: Option<At<OrNothing<Restart>>>,
    /// Set the server's wall clock, which dates objects and responses. Timers do not move.
    pub(crate) jump_clock: Option<At<JumpClock>>,

    // ---- response
    /// Send this response instead of the normal one.
    pub(crate) reply: Option<At<Reply>>,
    /// Send the normal LIST response with these changes.
    pub(crate) edit_page: Option<At<EditPage>>,
    /// Send these lines on the watch, verbatim.
    pub(crate) send: Option<At<OneOrMany<First<RawLine>>>>,
    /// Send a watch event that is not in the store's history.
    pub(crate) event: Option<At<SentEvent>>,
    /// Send an ERROR event with this Status. The stream stays open until an `end` action.
    pub(crate) error: Option<At<StatusKeys>>,
    /// Send a bookmark now.
    #[serde(default, deserialize_with = "given")]
    pub(crate) bookmark: Option<At<OrNothing<Bookmark>>>,
    /// Drop this many of the stream's next events.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) drop_events: Option<At<u64>>,
    /// Send the next event this many times.
    #[schemars(range(min = 2, max = 1_000))]
    pub(crate) repeat_event: Option<At<u64>>,
    /// Buffer this many events, and bookmarks in between, and send them in reverse order; at the latest when the
    /// watch ends.
    #[schemars(range(min = 2, max = 1_000))]
    pub(crate) reorder_events: Option<At<u64>>,
    /// Send no bookmarks on the stream from now on, not even the end marker.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_bookmarks: Option<At<()>>,
    /// Replace the value `"true"` of the end marker's annotation; `absent`: send the bookmark without it.
    pub(crate) end_marker: Option<At<Text>>,

    // ---- socket
    /// Delay the response, including its head.
    pub(crate) delay: Option<At<Duration>>,
    /// Send the body slowly: a number of bytes at a time, at an interval.
    pub(crate) drip: Option<At<Drip>>,
    /// End writes inside multi-byte characters if there are any.
    #[serde(default, deserialize_with = "given")]
    pub(crate) split_utf8: Option<At<()>>,
    /// Send this many events in one write.
    #[schemars(range(min = 2, max = 10_000))]
    pub(crate) coalesce: Option<At<u64>>,
    /// Compress the body if the request accepts gzip, regardless of its length; on a watch, event by event.
    #[serde(default, deserialize_with = "given")]
    pub(crate) gzip: Option<At<()>>,
    /// Truncate the body and end it.
    pub(crate) truncate: Option<At<Truncate>>,
    /// Send no response, not even a head: the connection is closed (`fin`), reset (`rst`) or silent (`stall`), the
    /// stream is reset (`{rst_stream: REFUSED_STREAM}`), and so on.
    pub(crate) no_answer: Option<At<WordOr<EndingKeys>>>,
    /// As `no_answer`, after the request was carried out: a write is stored, and its client does not learn it.
    pub(crate) lose_answer: Option<At<WordOr<EndingKeys>>>,
    /// End the response, after its head and the frames that this step already sent.
    pub(crate) end: Option<At<WordOr<EndingKeys>>>,
    /// `end: eof`: a clean end; the connection is reusable.
    #[serde(default, deserialize_with = "given")]
    pub(crate) eof: Option<At<()>>,
    /// `end: fin`: the connection is closed within the body.
    #[serde(default, deserialize_with = "given")]
    pub(crate) fin: Option<At<()>>,
    /// `end: rst`: the connection is reset.
    #[serde(default, deserialize_with = "given")]
    pub(crate) rst: Option<At<()>>,
    /// `end: stall`: no more bytes are sent; the connection stays open.
    #[serde(default, deserialize_with = "given")]
    pub(crate) stall: Option<At<()>>,
    /// `end: no_close_notify`: the connection is closed without TLS close_notify.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_close_notify: Option<At<()>>,
    /// `end: {rst_stream: CODE}`: the HTTP/2 stream is reset with this code; the connection stays open.
    pub(crate) rst_stream: Option<At<Http2Error>>,
    /// Send GOAWAY with NO_ERROR on the HTTP/2 connection of this response: it accepts no more requests; open streams
    /// continue.
    #[serde(default, deserialize_with = "given")]
    pub(crate) goaway: Option<At<()>>,
    /// Refuse new connections for this time.
    pub(crate) refuse: Option<At<Duration>>,
}

impl Words for ActionKeys {
    const WORDS: &'static [&'static str] = &[
        "compact",
        "clear_watch_cache",
        "freeze_watch_cache",
        "thaw_watch_cache",
        "restart",
        "bookmark",
        "no_bookmarks",
        "split_utf8",
        "gzip",
        "eof",
        "fin",
        "rst",
        "stall",
        "no_close_notify",
        "goaway",
    ];
}

/// Which watch cache of the target's resource.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turned {
    /// That of `primary` or `secondary`. Default: both.
    pub(crate) replica: Option<At<ReplicaWord>>,
}

/// Delay of a watch cache: a time, or a map.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lag {
    /// How much later it receives every write.
    #[schemars(required)]
    pub(crate) by: Option<At<Duration>>,
    /// That of `primary` or `secondary`. Default: both.
    pub(crate) replica: Option<At<ReplicaWord>>,
}

/// Restart of an apiserver.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restart {
    /// How long it accepts no connection. Default 0s.
    pub(crate) down: Option<At<Duration>>,
    /// How long after that its watch caches are not filled: watches, and lists without `limit` or with a selector, are
    /// 429. Default 0s.
    pub(crate) filling: Option<At<Duration>>,
    /// `primary` or `secondary`. Default: both.
    pub(crate) replica: Option<At<ReplicaWord>>,
}

/// Change of the server's wall clock: one of the two.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JumpClock {
    /// Set it forward by this time.
    pub(crate) forward: Option<At<Duration>>,
    /// Set it back by this time.
    pub(crate) back: Option<At<Duration>>,
}

/// New labels for an object.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relabel {
    /// `metadata.name`, or `namespace/name`.
    #[schemars(required)]
    pub(crate) name: Option<At<String>>,
    /// Default: the target's namespace, or `default`.
    pub(crate) namespace: Option<At<String>>,
    /// Default: the target's resource.
    pub(crate) resource: Option<At<String>>,
    /// Label to value; `null` removes the label.
    #[schemars(required)]
    pub(crate) labels: Option<At<Entries<OrNothing<Text>>>>,
}

/// A scripted response. The body is a Status built from `reason`, `message` … unless `body`, `json` or `unmodified` is
/// given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// The HTTP status.
    #[schemars(required, range(min = 200, max = 599))]
    pub(crate) status: Option<At<u64>>,
    /// `Retry-After` header, verbatim: seconds or a date.
    pub(crate) retry_after: Option<Text>,
    /// Additional headers. `Content-Type` replaces the default one.
    pub(crate) headers: Option<Entries<Text>>,
    /// The body, verbatim.
    pub(crate) body: Option<At<Text>>,
    /// The body, as JSON.
    pub(crate) json: Option<At<Json>>,
    /// Send the body of the normal response. Always `true`.
    pub(crate) unmodified: Option<At<bool>>,
    /// `code` of the Status; `absent` omits it. Default: `status`.
    pub(crate) code: Option<At<Text>>,
    /// `reason` of the Status.
    pub(crate) reason: Option<At<Text>>,
    /// `message` of the Status.
    pub(crate) message: Option<At<Text>>,
    /// `details.retryAfterSeconds` of the Status.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) retry_after_seconds: Option<At<u64>>,
    /// Reasons in `details.causes`.
    pub(crate) causes: Option<At<OneOrMany<Text>>>,
    /// Add an inconsistent continue token derived from the one in the request.
    pub(crate) inconsistent_token: Option<At<bool>>,
    /// Carry the request out first: a write is stored although the response is this one.
    pub(crate) after_write: Option<At<bool>>,
}

/// A Kubernetes Status. Missing keys are omitted from it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Status")]
pub(crate) struct StatusKeys {
    /// `code`.
    #[schemars(range(min = 0, max = 999))]
    pub(crate) code: Option<At<u64>>,
    /// `reason`.
    pub(crate) reason: Option<At<Text>>,
    /// `message`.
    pub(crate) message: Option<At<Text>>,
    /// `details.retryAfterSeconds`.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) retry_after_seconds: Option<At<u64>>,
    /// Reasons in `details.causes`.
    pub(crate) causes: Option<At<OneOrMany<Text>>>,
}

/// Changes to a LIST response.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditPage {
    /// `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub(crate) rv: Option<At<First<Condition>>>,
    /// `metadata.continue`: an alias for the original token when the client sends it back, or `absent`.
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<At<First<Condition>>>,
    /// `metadata.remainingItemCount`.
    pub(crate) remaining: Option<At<i64>>,
    /// Names of items to remove; `"*"`: all.
    pub(crate) without: Option<At<OneOrMany<At<Text>>>>,
    /// Items to append.
    pub(crate) add: Option<At<OneOrMany<At<Loose>>>>,
    /// How an empty `items` is written: `"null"`, or `missing` to omit the key.
    #[serde(default, deserialize_with = "given")]
    pub(crate) items: Option<At<ItemsWord>>,
    /// Replaces the list's `kind`, e.g. `Table`.
    pub(crate) kind: Option<At<Text>>,
}

/// How an empty `items` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemsWord {
    /// Written as `"items": null`.
    #[serde(rename = "null")]
    Null,
    /// No `items` key.
    Missing,
}

/// A line for a watch: a text, or a map.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLine {
    /// The line.
    pub(crate) text: Option<Text>,
    /// Instead of `text`: each character is one byte, so that `"\xff"` sends a byte that is invalid in UTF-8.
    pub(crate) bytes: Option<At<Text>>,
    /// Append a newline. Default true.
    pub(crate) newline: Option<At<bool>>,
}

/// A watch event that is not in the store's history.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Event")]
pub(crate) struct SentEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, or any other text.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<At<Text>>,
    /// The object; a name sends that object of the target in its current state.
    #[schemars(required)]
    pub(crate) object: Option<At<Loose>>,
    /// Replaces `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub(crate) rv: Option<At<First<Condition>>>,
}

/// A bookmark.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bookmark {
    /// Its resourceVersion: a text, `$name`, or `absent`. Default: the version up to which this watch received all
    /// events.
    pub(crate) rv: Option<At<First<Condition>>>,
    /// Value of the annotation `k8s.io/initial-events-end`. Default: no annotation.
    pub(crate) initial_events_end: Option<At<Text>>,
}

/// A slow link.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drip {
    /// Bytes per write.
    #[schemars(required, range(min = 1, max = 16_777_216))]
    pub(crate) bytes: Option<At<u64>>,
    /// Time between writes.
    #[schemars(required)]
    pub(crate) every: Option<At<Duration>>,
}

/// Where to truncate a body and how to end it: `after_bytes`, or `after_events` and `percent` of the next line.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truncate {
    /// Number of further bytes of the body.
    pub(crate) after_bytes: Option<At<u64>>,
    /// Number of further complete events.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) after_events: Option<At<u64>>,
    /// Percentage of the next line. Default 0.
    #[schemars(range(min = 0, max = 99))]
    pub(crate) percent: Option<At<u64>>,
    /// How the body ends.
    #[schemars(required)]
    pub(crate) then: Option<At<WordOr<EndingKeys>>>,
}

/// How a body ends: a word, or a map with an HTTP/2 error code.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ending")]
pub(crate) struct EndingKeys {
    /// Clean end: the body is complete and the connection is reusable.
    #[serde(default, deserialize_with = "given")]
    pub(crate) eof: Option<At<()>>,
    /// The connection is closed within the body.
    #[serde(default, deserialize_with = "given")]
    pub(crate) fin: Option<At<()>>,
    /// The connection is reset.
    #[serde(default, deserialize_with = "given")]
    pub(crate) rst: Option<At<()>>,
    /// No more bytes are sent; the connection stays open.
    #[serde(default, deserialize_with = "given")]
    pub(crate) stall: Option<At<()>>,
    /// The connection is closed without TLS close_notify.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_close_notify: Option<At<()>>,
    /// The HTTP/2 stream is reset with this code; the connection stays open.
    pub(crate) rst_stream: Option<At<Http2Error>>,
    /// The HTTP/2 connection is closed after a GOAWAY with this code.
    pub(crate) goaway: Option<At<Http2Error>>,
}

impl Words for EndingKeys {
    const WORDS: &'static [&'static str] = &["eof", "fin", "rst", "stall", "no_close_notify"];
}
