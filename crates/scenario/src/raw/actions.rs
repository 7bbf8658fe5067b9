//! File format of actions. A row of [`actions!`] is the one place that has the key of an action, its documentation, the type
//! of its value, and what it stands for.

use schemars::JsonSchema;
use serde::Deserialize;
use trace::fault::{Http2Error, Pace};

use super::{Condition, Duration, Loose, Names, Object, ReplicaWord};
use crate::read::{At, Entries, First, Json, OneOrMany, OrNothing, Text, WordOr, Words, given};
use crate::span::Span;
use crate::{Action, RuleAction, ShapeAction, StoreAction, StreamAction};

/// Declares the keys of actions by section of the manual, in the order in which errors list them. A row: the key; its variant
/// of [`ActionKey`] with the type of the value; `alone` if the key without a value is a word; the actions whose word it is,
/// none for a short form.
macro_rules! actions {
    ($($section:ident {
        $($(#[$attribute:meta])* $key:ident $variant:ident($value:ty) $($alone:ident)? $(= $action:pat)?,)+
    })+) => {
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
            $($($(#[$attribute])*
            #[serde(default, deserialize_with = "given")]
            pub(crate) $key: Option<At<$value>>,)+)+
        }

        /// A key of an action, with its value.
        #[derive(Debug, Clone)]
        pub(crate) enum ActionKey {
            $($($variant(At<$value>),)+)+
        }

        impl ActionKeys {
            /// All keys.
            pub(crate) const KEYS: &'static [&'static str] = &[$($(stringify!($key)),+),+];

            /// The keys by section of the manual.
            pub(crate) const SECTIONS: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($section), &[$(stringify!($key)),+])),+];

            /// Returns the keys given and their positions, in the order of [`Self::KEYS`].
            pub(crate) fn given(&self) -> Vec<(&'static str, Span)> {
                let spans = [$($((stringify!($key), self.$key.as_ref().map(|at| at.span))),+),+];
                spans.into_iter().filter_map(|(key, span)| Some((key, span?))).collect()
            }

            /// Returns the first key given with its value.
            pub(crate) fn into_key(self) -> Option<ActionKey> {
                $($(if let Some(at) = self.$key {
                    return Some(ActionKey::$variant(at));
                })+)+
                None
            }
        }

        impl Words for ActionKeys {
            const WORDS: &'static [&'static str] = &[$($($(word!($key $alone),)?)+)+];
        }

        impl Action {
            /// Returns the word in scenario files and transcripts.
            pub fn word(&self) -> &'static str {
                match self {
                    $($($($action => stringify!($key),)?)+)+
                }
            }
        }
    };
}

macro_rules! word {
    ($key:ident alone) => {
        stringify!($key)
    };
}

actions! {
    store {
        /// Create the objects, or replace those that exist.
        apply Apply(OneOrMany<At<Object>>) = Action::Store(StoreAction::Apply(_)),
        /// Delete the objects. A name may be a map of `name`, `namespace`, `resource`.
        delete Delete(Names) = Action::Store(StoreAction::Delete { .. }),
        /// Change the labels of an object: `name`, `namespace`, `resource`, and `labels`, with `null` for removal.
        relabel Relabel(Relabel) = Action::Store(StoreAction::Relabel { .. }),
        /// Compact the store: older exact lists, continue tokens and watch starts fail with 410 from now on.
        compact Compact(()) alone = Action::Store(StoreAction::Compact),
        /// Rebuild the watch cache: open watches of the target end cleanly, and watches from older versions fail with
        /// 410.
        clear_watch_cache ClearWatchCache(OrNothing<Turned>) alone = Action::Store(StoreAction::ClearWatchCache(_)),
        /// Stop the watch cache: cached reads are stale, and watches receive no new events.
        freeze_watch_cache FreezeWatchCache(OrNothing<Turned>) alone = Action::Store(StoreAction::FreezeWatchCache(_)),
        /// Delay the watch cache: it receives every write this much later (`by`), so cached reads and watches lag.
        lag_watch_cache LagWatchCache(First<Lag>) = Action::Store(StoreAction::LagWatchCache { .. }),
        /// Let the watch cache catch up and follow the store without delay.
        thaw_watch_cache ThawWatchCache(OrNothing<Turned>) alone = Action::Store(StoreAction::ThawWatchCache(_)),
        /// Restore the store to its state at `$name`, as from a backup.
        restore Restore(Text) = Action::Store(StoreAction::Restore { .. }),
        /// Restart the apiserver: its connections are closed, its watch caches start at the current version, and older
        /// watch starts are 410. Exact lists and continue tokens stay valid. `down`: how long it accepts no connection;
        /// `filling`: how long after that its watch caches are empty, and requests that need them are 429.
        restart Restart(OrNothing<Restart>) alone = Action::Store(StoreAction::Restart(_)),
        /// Set the server's wall clock, which dates objects and responses, `forward` or `back` by this time. Timers do not move.
        jump_clock JumpClock(JumpClock) = Action::Store(StoreAction::JumpClock { .. }),
    }
    request {
        /// Send this response instead of the normal one. A write is not carried out, unless `after_write`.
        reply Reply(Reply) = Action::Shape(ShapeAction::Reply(_)),
        /// Send the normal LIST response with these changes.
        edit_page EditPage(EditPage) = Action::Shape(ShapeAction::EditPage(_)),
    }
    watch {
        /// Send these lines on the watch, verbatim: a text, or a map of `text` or `bytes`, and `newline`.
        send Send(OneOrMany<First<RawLine>>) = Action::Stream(StreamAction::Send(_)),
        /// Send a watch event that is not in the store's history: `type`, `object`, `rv`.
        event Event(SentEvent) = Action::Stream(StreamAction::SendEvent { .. }),
        /// Send an ERROR event with this Status. The stream stays open until an `end` action.
        error Error(StatusKeys) = Action::Stream(StreamAction::SendError(_)),
        /// Send a bookmark now: `rv` (default: the version sent on this watch), `initial_events_end` (default: none).
        bookmark Bookmark(OrNothing<Bookmark>) alone = Action::Stream(StreamAction::SendBookmark { .. }),
        /// Drop this many of the stream's next events.
        #[schemars(range(min = 1, max = 1_000_000))]
        drop_events DropEvents(u64) = Action::Rule(RuleAction::DropEvents(_)),
        /// Send the next event this many times.
        #[schemars(range(min = 2, max = 1_000))]
        repeat_event RepeatEvent(u64) = Action::Rule(RuleAction::RepeatEvent(_)),
        /// Buffer this many events, and bookmarks in between, and send them in reverse order; at the latest when the
        /// watch ends.
        #[schemars(range(min = 2, max = 1_000))]
        reorder_events ReorderEvents(u64) = Action::Rule(RuleAction::ReorderEvents(_)),
        /// Send no bookmarks on the stream from now on, not even the end marker.
        no_bookmarks NoBookmarks(()) alone = Action::Rule(RuleAction::NoBookmarks),
        /// Replace the value `"true"` of the end marker's annotation; `absent`: send the bookmark without it.
        end_marker EndMarker(Text) = Action::Rule(RuleAction::EndMarker(_)),
    }
    socket {
        /// Delay the response, including its head.
        delay Delay(Duration) = Action::Shape(ShapeAction::Delay(_)),
        /// Send the body slowly: `bytes` per write, and the time between writes, `every`.
        drip Drip(Drip) = Action::Shape(ShapeAction::Pace(Pace::Drip { .. })),
        /// End writes inside multi-byte characters if there are any.
        split_utf8 SplitUtf8(()) alone = Action::Shape(ShapeAction::Pace(Pace::SplitUtf8)),
        /// Send this many events in one write.
        #[schemars(range(min = 2, max = 10_000))]
        coalesce Coalesce(u64) = Action::Shape(ShapeAction::Pace(Pace::Coalesce { .. })),
        /// Compress the body if the request accepts gzip, regardless of its length; on a watch, event by event. Before a
        /// `reply`.
        gzip Gzip(()) alone = Action::Shape(ShapeAction::Gzip),
        /// Truncate the body and end it: `after_bytes`, or `after_events` and `percent` of the next line, and `then`. A
        /// write is stored.
        truncate Truncate(Truncate) = Action::Rule(RuleAction::Truncate { .. }),
        /// Send no response, not even a head: the connection is closed (`fin`), reset (`rst`) or silent (`stall`), the
        /// stream is reset (`{rst_stream: REFUSED_STREAM}`), and so on. A write is not carried out.
        no_answer NoAnswer(WordOr<EndingKeys>) = Action::Shape(ShapeAction::NoAnswer(_)),
        /// As `no_answer`, after the request was carried out: a write is stored, and its client does not learn it (`when:
        /// {request: …}`).
        lose_answer LoseAnswer(WordOr<EndingKeys>) = Action::Shape(ShapeAction::LoseAnswer(_)),
        /// End the response, after its head and the frames that this step already sent. A write is stored.
        end End(WordOr<EndingKeys>) = Action::Stream(StreamAction::End(_)),
        /// End the response this `time` after its head, or after this step if that is sent: `then` is an ending, by default
        /// `eof`. So do gateways that limit the duration of a stream.
        end_after EndAfter(EndAfter) = Action::Rule(RuleAction::EndAfter { .. }),
        /// `end: eof`: a clean end; the connection is reusable.
        eof Eof(()) alone,
        /// `end: fin`: the connection is closed within the body.
        fin Fin(()) alone,
        /// `end: rst`: the connection is reset.
        rst Rst(()) alone,
        /// `end: stall`: no more bytes are sent; the connection stays open.
        stall Stall(()) alone,
        /// `end: no_close_notify`: the connection is closed without TLS close_notify.
        no_close_notify NoCloseNotify(()) alone,
        /// `end: {rst_stream: CODE}`: the HTTP/2 stream is reset with this code; the connection stays open.
        rst_stream RstStream(Http2Error),
        /// Send GOAWAY with NO_ERROR on the HTTP/2 connection of this response: it accepts no more requests; open streams
        /// continue.
        goaway Goaway(()) alone = Action::Stream(StreamAction::Goaway),
        /// Refuse new connections for this time.
        refuse Refuse(Duration) = Action::Refuse(_),
    }
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

/// How long a response may take.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndAfter {
    /// The time from its head.
    #[schemars(required)]
    pub(crate) time: Option<At<Duration>>,
    /// How it ends. Default: `eof`.
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
