//! The shape of a step: its trigger and its actions.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use trace::fault::Http2Error;

use super::{Duration, Loose, Names, Object};
use crate::read::{At, Both, Entries, First, Json, OneOrMany, OrNothing, Text, WordOr, Words, given};

/// A step: a trigger and actions; or just one action.
pub(crate) type Step = Both<StepKeys, ActionKeys>;

/// A step: when it happens and what is done. Without `when` it happens as soon as the step before it is done. A single
/// action may stand in the step itself instead of under `do`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step")]
pub(crate) struct StepKeys {
    /// What the step waits for.
    pub(crate) when: Option<At<WordOr<When>>>,
    /// The step is skipped when a step behind it is met first. Default false.
    pub(crate) optional: Option<At<bool>>,
    /// How many such requests the step answers before it is done. Default 1.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) times: Option<At<u64>>,
    /// The step answers every such request for so long, counted from the first one.
    #[serde(rename = "for")]
    pub(crate) lasts: Option<At<Duration>>,
    /// How long the step may wait before the verdict is *stuck*. Default 10m in sim, 20s in live.
    pub(crate) within: Option<At<Duration>>,
    /// What is done, in order: an action, or a list of them.
    #[serde(rename = "do")]
    pub(crate) actions: Option<At<OneOrMany<At<WordOr<ActionKeys>>>>>,
}

/// What a step waits for: one of `list`, `page`, `watch`, `request`, `emitted`, `after`, `quiet`, `synced`.
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
    /// So long after the step before it was done.
    pub(crate) after: Option<At<Duration>>,
    /// When neither side did anything for so long (bookmarks do not count).
    pub(crate) quiet: Option<At<Duration>>,
    /// When the client has a watch open and its cache equals the truth.
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

/// Conditions on query parameters. Parameters not named here are free.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Query {
    /// The version asked for.
    pub(crate) resource_version: Option<At<First<Condition>>>,
    /// `Exact` or `NotOlderThan`.
    pub(crate) resource_version_match: Option<At<First<Condition>>>,
    /// Items a page.
    pub(crate) limit: Option<At<First<Condition>>>,
    /// The continue token.
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<At<First<Condition>>>,
    /// `true` on a WATCH.
    pub(crate) watch: Option<At<First<Condition>>>,
    /// `true` asks for bookmarks.
    pub(crate) allow_watch_bookmarks: Option<At<First<Condition>>>,
    /// `true` makes a WATCH a streaming list.
    pub(crate) send_initial_events: Option<At<First<Condition>>>,
    /// The watch's lifetime in seconds.
    pub(crate) timeout_seconds: Option<At<First<Condition>>>,
    /// The label selector.
    pub(crate) label_selector: Option<At<First<Condition>>>,
    /// The field selector.
    pub(crate) field_selector: Option<At<First<Condition>>>,
}

/// What a value must be: a text, `absent`, `present`, `$name`, `$name.continue` or `$start`; or a map with `not` or `is`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// A bare value.
    #[schemars(skip)]
    pub(crate) bare: Option<At<Text>>,
    /// Exactly this text, even if it is `absent` or begins with `$`.
    pub(crate) is: Option<At<Text>>,
    /// Anything but this: a text, `absent`, `$name`.
    pub(crate) not: Option<At<Text>>,
}

/// An event the client reports: one of six kinds, with the object's name or `any`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emitted {
    /// A (re)list began.
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
    /// The client surfaced an error.
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
    /// What the message of an `error` contains.
    pub(crate) message: Option<At<Text>>,
}

impl Words for Emitted {
    const WORDS: &'static [&'static str] = &["init", "init_apply", "init_done", "apply", "delete", "error"];
}

/// One action: a word, or a map with one of these keys. Actions on the truth come first, then those on the answer, then
/// those on the socket.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Action")]
pub(crate) struct ActionKeys {
    /// On a step: its name; `$name` is the version of the list it answered, `$name.continue` its token. Beside an action
    /// that writes: `$name` is the resourceVersion written.
    #[serde(rename = "as")]
    pub(crate) name: Option<At<String>>,

    // ---- the truth
    /// Create the objects, or replace those that exist.
    pub(crate) apply: Option<At<OneOrMany<At<Object>>>>,
    /// Delete the objects.
    pub(crate) delete: Option<At<Names>>,
    /// Change the labels of an object; `null` removes one.
    pub(crate) relabel: Option<At<Relabel>>,
    /// Forget history: older exact lists, continue tokens and watch starts are 410 from now on.
    #[serde(default, deserialize_with = "given")]
    pub(crate) compact: Option<At<()>>,
    /// Rebuild the watch cache: open watches of the target end cleanly, and older watch starts are 410.
    #[serde(default, deserialize_with = "given")]
    pub(crate) clear_watch_cache: Option<At<()>>,
    /// The watch cache stops following the store: cached reads are stale, watches get nothing new.
    #[serde(default, deserialize_with = "given")]
    pub(crate) freeze_watch_cache: Option<At<()>>,
    /// The watch cache sees every write so much later: cached reads and watches are that far behind.
    pub(crate) lag_watch_cache: Option<At<Duration>>,
    /// The watch cache catches up, and follows at once again.
    #[serde(default, deserialize_with = "given")]
    pub(crate) thaw_watch_cache: Option<At<()>>,
    /// The store goes back to the state it had at `$name`, as after restoring a backup.
    pub(crate) restore: Option<At<Text>>,

    // ---- the answer
    /// Answer the request with this instead of the truth.
    pub(crate) reply: Option<At<Reply>>,
    /// Answer a LIST truthfully but for this.
    pub(crate) edit_page: Option<At<EditPage>>,
    /// Put these lines on the watch, as they are.
    pub(crate) send: Option<At<OneOrMany<First<RawLine>>>>,
    /// Send a watch event the truth knows nothing of.
    pub(crate) event: Option<At<SentEvent>>,
    /// Send an ERROR event with this Status. The stream stays open until an `end` says otherwise.
    pub(crate) error: Option<At<StatusKeys>>,
    /// Send a bookmark now.
    #[serde(default, deserialize_with = "given")]
    pub(crate) bookmark: Option<At<OrNothing<Bookmark>>>,
    /// The next so many truthful events of the stream are never sent.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) drop_events: Option<At<u64>>,
    /// The next truthful event is sent so many times.
    #[schemars(range(min = 2, max = 1_000))]
    pub(crate) repeat_event: Option<At<u64>>,
    /// The next so many truthful events are held back, bookmarks too, and sent in reverse order; at the latest when the watch ends.
    #[schemars(range(min = 2, max = 1_000))]
    pub(crate) reorder_events: Option<At<u64>>,
    /// The stream sends no bookmarks from now on, not even the end marker.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_bookmarks: Option<At<()>>,
    /// The end marker's annotation has this value instead of `"true"`; `absent`: the bookmark comes without it.
    pub(crate) end_marker: Option<At<Text>>,

    // ---- the socket
    /// The answer, head and all, comes so late.
    pub(crate) delay: Option<At<Duration>>,
    /// The body drips: so many bytes at a time, so long apart.
    pub(crate) drip: Option<At<Drip>>,
    /// Writes end inside multi-byte characters where there are any.
    #[serde(default, deserialize_with = "given")]
    pub(crate) split_utf8: Option<At<()>>,
    /// So many events are sent in one write.
    #[schemars(range(min = 2, max = 10_000))]
    pub(crate) coalesce: Option<At<u64>>,
    /// The body is compressed where the request takes gzip, however short it is; of a watch, event by event.
    #[serde(default, deserialize_with = "given")]
    pub(crate) gzip: Option<At<()>>,
    /// The body is cut there and ends so.
    pub(crate) truncate: Option<At<Truncate>>,
    /// The request is never answered, not even with a head: the connection is closed (`fin`), reset (`rst`), or silent
    /// (`stall`), the stream is reset (`{rst_stream: REFUSED_STREAM}`), and so on.
    pub(crate) no_answer: Option<At<WordOr<EndingKeys>>>,
    /// The answer ends so, after its head and what this step already sent.
    pub(crate) end: Option<At<WordOr<EndingKeys>>>,
    /// `end: eof`: a clean end; the connection may be used again.
    #[serde(default, deserialize_with = "given")]
    pub(crate) eof: Option<At<()>>,
    /// `end: fin`: the connection is closed inside the body.
    #[serde(default, deserialize_with = "given")]
    pub(crate) fin: Option<At<()>>,
    /// `end: rst`: the connection is reset.
    #[serde(default, deserialize_with = "given")]
    pub(crate) rst: Option<At<()>>,
    /// `end: stall`: nothing more is sent; the connection stays open.
    #[serde(default, deserialize_with = "given")]
    pub(crate) stall: Option<At<()>>,
    /// `end: no_close_notify`: the connection is closed without the farewell of TLS.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_close_notify: Option<At<()>>,
    /// `end: {rst_stream: CODE}`: the HTTP/2 stream is reset with this code; the connection lives on.
    pub(crate) rst_stream: Option<At<Http2Error>>,
    /// The HTTP/2 connection of this answer takes no more requests (GOAWAY with NO_ERROR); what is under way goes on.
    #[serde(default, deserialize_with = "given")]
    pub(crate) goaway: Option<At<()>>,
    /// New connections are refused for so long.
    pub(crate) refuse: Option<At<Duration>>,
}

impl Words for ActionKeys {
    const WORDS: &'static [&'static str] = &[
        "compact",
        "clear_watch_cache",
        "freeze_watch_cache",
        "thaw_watch_cache",
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

/// New labels for an object.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relabel {
    /// `metadata.name`, or `namespace/name`.
    #[schemars(required)]
    pub(crate) name: Option<At<String>>,
    /// Default: that of the target, or `default`.
    pub(crate) namespace: Option<At<String>>,
    /// Default: the target's resource.
    pub(crate) resource: Option<At<String>>,
    /// Label to value; `null` removes the label.
    #[schemars(required)]
    pub(crate) labels: Option<At<Entries<OrNothing<Text>>>>,
}

/// A scripted answer. Its body is a Status made of `reason`, `message` … unless `body`, `json` or `truth` says otherwise.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// The HTTP status.
    #[schemars(required, range(min = 200, max = 599))]
    pub(crate) status: Option<At<u64>>,
    /// The `Retry-After` header, as is: seconds or a date.
    pub(crate) retry_after: Option<Text>,
    /// Headers beside those every answer has. `Content-Type` replaces the usual one.
    pub(crate) headers: Option<Entries<Text>>,
    /// The body, as is.
    pub(crate) body: Option<At<Text>>,
    /// The body, as JSON.
    pub(crate) json: Option<At<Json>>,
    /// The body is what the truthful answer would have been. Always `true`.
    pub(crate) truth: Option<At<bool>>,
    /// `code` of the Status; `absent` leaves it out. Default: `status`.
    pub(crate) code: Option<At<Text>>,
    /// `reason` of the Status.
    pub(crate) reason: Option<At<Text>>,
    /// `message` of the Status.
    pub(crate) message: Option<At<Text>>,
    /// `details.retryAfterSeconds` of the Status.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) retry_after_seconds: Option<At<u64>>,
    /// The reasons of `details.causes`.
    pub(crate) causes: Option<At<OneOrMany<Text>>>,
    /// Offer an inconsistent continue token made from the one in the request.
    pub(crate) inconsistent_token: Option<At<bool>>,
}

/// A Kubernetes Status. What is not given is left out of it.
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
    /// The reasons of `details.causes`.
    pub(crate) causes: Option<At<OneOrMany<Text>>>,
}

/// Changes to a truthful LIST answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditPage {
    /// `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub(crate) rv: Option<At<First<Condition>>>,
    /// `metadata.continue`: a made-up text that means the truthful token when it comes back, or `absent`.
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<At<First<Condition>>>,
    /// `metadata.remainingItemCount`.
    pub(crate) remaining: Option<At<i64>>,
    /// Names of items to leave out; `"*"`: all.
    pub(crate) without: Option<At<OneOrMany<At<Text>>>>,
    /// Items to add at the end.
    pub(crate) add: Option<At<OneOrMany<At<Loose>>>>,
    /// How an empty `items` is written: `"null"`, or `missing` altogether.
    #[serde(default, deserialize_with = "given")]
    pub(crate) items: Option<At<ItemsWord>>,
    /// Replaces the list's `kind`, e.g. `Table`.
    pub(crate) kind: Option<At<Text>>,
}

/// How an empty `items` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemsWord {
    /// As `"items": null`.
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
    /// Instead of `text`: each character is the byte of its number, so that `"\xff"` is one that no text has.
    pub(crate) bytes: Option<At<Text>>,
    /// End it with a newline. Default true.
    pub(crate) newline: Option<At<bool>>,
}

/// A watch event the truth knows nothing of.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Event")]
pub(crate) struct SentEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, or any other word.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<At<Text>>,
    /// The object; its name sends that object of the target again as it is in the store.
    #[schemars(required)]
    pub(crate) object: Option<At<Loose>>,
    /// Replaces `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub(crate) rv: Option<At<First<Condition>>>,
}

/// A bookmark.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bookmark {
    /// Its resourceVersion: a text, `$name`, or `absent`. Default: the version up to which this watch was sent everything.
    pub(crate) rv: Option<At<First<Condition>>>,
    /// The value of the annotation `k8s.io/initial-events-end`. Default: no annotation.
    pub(crate) initial_events_end: Option<At<Text>>,
}

/// A slow link.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drip {
    /// Bytes a write.
    #[schemars(required, range(min = 1, max = 16_777_216))]
    pub(crate) bytes: Option<At<u64>>,
    /// Time between writes.
    #[schemars(required)]
    pub(crate) every: Option<At<Duration>>,
}

/// Where a body is cut, and how it ends: `after_bytes`, or `after_events` and `percent` of the next line.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truncate {
    /// After so many more bytes of the body.
    pub(crate) after_bytes: Option<At<u64>>,
    /// After so many more whole events.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) after_events: Option<At<u64>>,
    /// And this share of the next line. Default 0.
    #[schemars(range(min = 0, max = 99))]
    pub(crate) percent: Option<At<u64>>,
    /// How it ends.
    #[schemars(required)]
    pub(crate) then: Option<At<WordOr<EndingKeys>>>,
}

/// How a body comes to its end: a word, or a map with a code of HTTP/2.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ending")]
pub(crate) struct EndingKeys {
    /// Clean: the body is complete and the connection may be used again.
    #[serde(default, deserialize_with = "given")]
    pub(crate) eof: Option<At<()>>,
    /// The connection is closed inside the body.
    #[serde(default, deserialize_with = "given")]
    pub(crate) fin: Option<At<()>>,
    /// The connection is reset.
    #[serde(default, deserialize_with = "given")]
    pub(crate) rst: Option<At<()>>,
    /// Nothing more is sent; the connection stays open.
    #[serde(default, deserialize_with = "given")]
    pub(crate) stall: Option<At<()>>,
    /// The connection is closed without the farewell of TLS.
    #[serde(default, deserialize_with = "given")]
    pub(crate) no_close_notify: Option<At<()>>,
    /// The HTTP/2 stream is reset with this code; the connection lives on.
    pub(crate) rst_stream: Option<At<Http2Error>>,
    /// The HTTP/2 connection is closed behind a GOAWAY with this code.
    pub(crate) goaway: Option<At<Http2Error>>,
}

impl Words for EndingKeys {
    const WORDS: &'static [&'static str] = &["eof", "fin", "rst", "stall", "no_close_notify"];
}
