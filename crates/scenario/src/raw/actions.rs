//! File format of actions. A row of [`actions!`] is the one place that has the key of an action, its documentation, the type
//! of its value, and what it stands for.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use trace::fault::{Ending, Http2Error, Pace};

use super::{Condition, Duration, Loose, Names, Object, ReplicaWord};
use crate::read::{At, Entries, First, Json, Nothing, OneOrMany, OrNothing, Text, WordOr, Words, given};
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
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "the schema is all that it is for")]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Action")]
        struct ActionSchema {
            /// On a step: its name; `$name` is the version of the list it handled, `$name.continue` its token. On an action
            /// that writes: `$name` is the resourceVersion written.
            #[serde(rename = "as")]
            name: Option<At<String>>,
            $($($(#[$attribute])*
            $key: Option<At<$value>>,)+)+
        }

        /// A key of an action, with its value.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ActionKey {
            $($(
                #[doc = concat!("`", stringify!($key), "`.")]
                $variant(At<$value>),
            )+)+
        }

        impl ActionKey {
            /// Returns the key.
            pub fn word(&self) -> &'static str {
                match self {
                    $($(Self::$variant(_) => stringify!($key),)+)+
                }
            }

            fn span(&self) -> Span {
                match self {
                    $($(Self::$variant(at) => at.span,)+)+
                }
            }

            /// Reads the value of a key.
            fn read<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Self, A::Error> {
                match key {
                    $($(stringify!($key) => map.next_value().map(Self::$variant),)+)+
                    unknown => Err(A::Error::unknown_field(unknown, FIELDS)),
                }
            }

            /// Writes the key and its value.
            fn write<S: SerializeStruct>(&self, map: &mut S) -> Result<(), S::Error> {
                match self {
                    $($(Self::$variant(at) => map.serialize_field(stringify!($key), at),)+)+
                }
            }
        }

        /// The keys of the map.
        const FIELDS: &[&str] = &["as", $($(stringify!($key)),+),+];

        impl ActionKeys {
            /// All keys.
            pub(crate) const KEYS: &'static [&'static str] = &[$($(stringify!($key)),+),+];

            /// The keys by section of the manual.
            pub(crate) const SECTIONS: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($section), &[$(stringify!($key)),+])),+];
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

impl ActionKey {
    /// Returns its section of the manual: `store`, `request`, `watch`, `socket`.
    pub fn section(&self) -> &'static str {
        let mut sections = ActionKeys::SECTIONS.iter();
        let own = sections.find(|(_, keys)| keys.contains(&self.word()));
        own.map_or("", |(section, _)| section)
    }

    /// Returns the replica that it is limited to.
    pub fn replica(&self) -> Option<ReplicaWord> {
        let replica = if let Self::LagWatchCache(lag) = self {
            lag.value.0.replica.as_ref()
        } else if let Self::Restart(restart) = self {
            restart.value.0.as_ref()?.replica.as_ref()
        } else if let Self::ClearWatchCache(at) | Self::FreezeWatchCache(at) | Self::ThawWatchCache(at) = self
        {
            at.value.0.as_ref()?.replica.as_ref()
        } else {
            None
        };
        replica.map(|replica| replica.value)
    }

    /// Returns how it ends a response or its connection.
    pub fn ending(&self) -> Option<Ending> {
        if let Self::End(how) | Self::NoAnswer(how) | Self::LoseAnswer(how) = self {
            return how.value.0.ending();
        }
        if let Self::Truncate(truncate) = self {
            return truncate.value.then.as_ref()?.value.0.ending();
        }
        if let Self::EndAfter(limit) = self {
            return limit.value.then.as_ref()?.value.0.ending();
        }
        if let Self::RstStream(code) = self {
            return Some(Ending::RstStream(code.value));
        }
        let words = [
            ("eof", Ending::Eof),
            ("fin", Ending::Fin),
            ("rst", Ending::Rst),
            ("stall", Ending::Stall),
            ("no_close_notify", Ending::NoCloseNotify),
        ];
        let own = words.into_iter().find(|(word, _)| *word == self.word());
        own.map(|(_, ending)| ending)
    }

    /// Returns the objects that it writes.
    pub(crate) fn applied(&self) -> Option<&At<OneOrMany<At<Object>>>> {
        if let Self::Apply(objects) = self {
            Some(objects)
        } else {
            None
        }
    }
}

/// An action: its keys, of which a valid one has one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionKeys {
    /// `as:`. On a step: its name; on an action that writes: the name of the version written.
    pub name: Option<At<String>>,
    /// The keys given, in the order of the file.
    pub keys: Vec<ActionKey>,
}

impl ActionKeys {
    /// Returns the first key given.
    pub fn key(&self) -> Option<&ActionKey> {
        self.keys.first()
    }

    /// Returns the keys given and their positions, in the order of [`Self::KEYS`].
    pub(crate) fn given(&self) -> Vec<(&'static str, Span)> {
        let mut given: Vec<_> = self.keys.iter().map(|key| (key.word(), key.span())).collect();
        given.sort_by_key(|(word, _)| Self::KEYS.iter().position(|key| key == word));
        given
    }
}

impl From<ActionKey> for ActionKeys {
    fn from(key: ActionKey) -> Self {
        Self {
            name: None,
            keys: vec![key],
        }
    }
}

impl<'de> Deserialize<'de> for ActionKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = ActionKeys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an action")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ActionKeys, A::Error> {
                let mut read = ActionKeys::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "as" => read.name = map.next_value()?,
                        key => read.keys.push(ActionKey::read(key, &mut map)?),
                    }
                }
                Ok(read)
            }
        }
        deserializer.deserialize_struct("Action", FIELDS, Keys)
    }
}

impl Serialize for ActionKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Action", FIELDS.len())?;
        self.keys.iter().try_for_each(|key| key.write(&mut map))?;
        map.serialize_field("as", &self.name)?;
        map.end()
    }
}

impl JsonSchema for ActionKeys {
    fn schema_name() -> Cow<'static, str> {
        ActionSchema::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ActionSchema::json_schema(generator)
    }
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
        compact Compact(Nothing) alone = Action::Store(StoreAction::Compact),
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
        no_bookmarks NoBookmarks(Nothing) alone = Action::Rule(RuleAction::NoBookmarks),
        /// Replace the value `"true"` of the end marker's annotation; `absent`: send the bookmark without it.
        end_marker EndMarker(Text) = Action::Rule(RuleAction::EndMarker(_)),
    }
    socket {
        /// Delay the response, including its head.
        delay Delay(Duration) = Action::Shape(ShapeAction::Delay(_)),
        /// Send the body slowly: `bytes` per write, and the time between writes, `every`.
        drip Drip(Drip) = Action::Shape(ShapeAction::Pace(Pace::Drip { .. })),
        /// End writes inside multi-byte characters if there are any.
        split_utf8 SplitUtf8(Nothing) alone = Action::Shape(ShapeAction::Pace(Pace::SplitUtf8)),
        /// Send this many events in one write.
        #[schemars(range(min = 2, max = 10_000))]
        coalesce Coalesce(u64) = Action::Shape(ShapeAction::Pace(Pace::Coalesce { .. })),
        /// Compress the body if the request accepts gzip, regardless of its length; on a watch, event by event. Before a
        /// `reply`.
        gzip Gzip(Nothing) alone = Action::Shape(ShapeAction::Gzip),
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
        eof Eof(Nothing) alone,
        /// `end: fin`: the connection is closed within the body.
        fin Fin(Nothing) alone,
        /// `end: rst`: the connection is reset.
        rst Rst(Nothing) alone,
        /// `end: stall`: no more bytes are sent; the connection stays open.
        stall Stall(Nothing) alone,
        /// `end: no_close_notify`: the connection is closed without TLS close_notify.
        no_close_notify NoCloseNotify(Nothing) alone,
        /// `end: {rst_stream: CODE}`: the HTTP/2 stream is reset with this code; the connection stays open.
        rst_stream RstStream(Http2Error),
        /// Send GOAWAY with NO_ERROR on the HTTP/2 connection of this response: it accepts no more requests; open streams
        /// continue.
        goaway Goaway(Nothing) alone = Action::Stream(StreamAction::Goaway),
        /// Refuse new connections for this time.
        refuse Refuse(Duration) = Action::Refuse(_),
    }
}

/// Which watch cache of the target's resource.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turned {
    /// That of `primary` or `secondary`. Default: both.
    pub replica: Option<At<ReplicaWord>>,
}

/// Delay of a watch cache: a time, or a map.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    /// How much later it receives every write.
    #[schemars(required)]
    pub by: Option<At<Duration>>,
    /// That of `primary` or `secondary`. Default: both.
    pub replica: Option<At<ReplicaWord>>,
}

/// Restart of an apiserver.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// How long it accepts no connection. Default 0s.
    pub down: Option<At<Duration>>,
    /// How long after that its watch caches are not filled: watches, and lists without `limit` or with a selector, are
    /// 429. Default 0s.
    pub filling: Option<At<Duration>>,
    /// `primary` or `secondary`. Default: both.
    pub replica: Option<At<ReplicaWord>>,
}

/// Change of the server's wall clock: one of the two.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JumpClock {
    /// Set it forward by this time.
    pub forward: Option<At<Duration>>,
    /// Set it back by this time.
    pub back: Option<At<Duration>>,
}

/// New labels for an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Relabel {
    /// `metadata.name`, or `namespace/name`.
    #[schemars(required)]
    pub name: Option<At<String>>,
    /// Default: the target's namespace, or `default`.
    pub namespace: Option<At<String>>,
    /// Default: the target's resource.
    pub resource: Option<At<String>>,
    /// Label to value; `null` removes the label.
    #[schemars(required)]
    pub labels: Option<At<Entries<OrNothing<Text>>>>,
}

/// A scripted response. The body is a Status built from `reason`, `message` … unless `body`, `json` or `unmodified` is
/// given.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The HTTP status.
    #[schemars(required, range(min = 200, max = 599))]
    pub status: Option<At<u64>>,
    /// `Retry-After` header, verbatim: seconds or a date.
    pub retry_after: Option<Text>,
    /// Additional headers. `Content-Type` replaces the default one.
    pub headers: Option<Entries<Text>>,
    /// The body, verbatim.
    pub body: Option<At<Text>>,
    /// The body, as JSON.
    pub json: Option<At<Json>>,
    /// Send the body of the normal response. Always `true`.
    pub unmodified: Option<At<bool>>,
    /// `code` of the Status; `absent` omits it. Default: `status`.
    pub code: Option<At<Text>>,
    /// `reason` of the Status.
    pub reason: Option<At<Text>>,
    /// `message` of the Status.
    pub message: Option<At<Text>>,
    /// `details.retryAfterSeconds` of the Status.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_after_seconds: Option<At<u64>>,
    /// Reasons in `details.causes`.
    pub causes: Option<At<OneOrMany<Text>>>,
    /// Add an inconsistent continue token derived from the one in the request.
    pub inconsistent_token: Option<At<bool>>,
    /// Carry the request out first: a write is stored although the response is this one.
    pub after_write: Option<At<bool>>,
}

/// A Kubernetes Status. Missing keys are omitted from it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Status")]
pub struct StatusKeys {
    /// `code`.
    #[schemars(range(min = 0, max = 999))]
    pub code: Option<At<u64>>,
    /// `reason`.
    pub reason: Option<At<Text>>,
    /// `message`.
    pub message: Option<At<Text>>,
    /// `details.retryAfterSeconds`.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retry_after_seconds: Option<At<u64>>,
    /// Reasons in `details.causes`.
    pub causes: Option<At<OneOrMany<Text>>>,
}

/// Changes to a LIST response.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditPage {
    /// `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub rv: Option<At<First<Condition>>>,
    /// `metadata.continue`: an alias for the original token when the client sends it back, or `absent`.
    #[serde(rename = "continue")]
    pub continue_token: Option<At<First<Condition>>>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<At<i64>>,
    /// Names of items to remove; `"*"`: all.
    pub without: Option<At<OneOrMany<At<Text>>>>,
    /// Items to append.
    pub add: Option<At<OneOrMany<At<Loose>>>>,
    /// How an empty `items` is written: `"null"`, or `missing` to omit the key.
    #[serde(default, deserialize_with = "given")]
    pub items: Option<At<ItemsWord>>,
    /// Replaces the list's `kind`, e.g. `Table`.
    pub kind: Option<At<Text>>,
}

/// How an empty `items` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemsWord {
    /// Written as `"items": null`.
    #[serde(rename = "null")]
    Null,
    /// No `items` key.
    Missing,
}

/// A line for a watch: a text, or a map.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawLine {
    /// The line.
    pub text: Option<Text>,
    /// Instead of `text`: each character is one byte, so that `"\xff"` sends a byte that is invalid in UTF-8.
    pub bytes: Option<At<Text>>,
    /// Append a newline. Default true.
    pub newline: Option<At<bool>>,
}

/// A watch event that is not in the store's history.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Event")]
pub struct SentEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, or any other text.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub kind: Option<At<Text>>,
    /// The object; a name sends that object of the target in its current state.
    #[serde(deserialize_with = "given")]
    #[schemars(required)]
    pub object: Option<At<Loose>>,
    /// Replaces `metadata.resourceVersion`: a text, `$name`, or `absent`.
    pub rv: Option<At<First<Condition>>>,
}

/// A bookmark.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bookmark {
    /// Its resourceVersion: a text, `$name`, or `absent`. Default: the version up to which this watch received all
    /// events.
    pub rv: Option<At<First<Condition>>>,
    /// Value of the annotation `k8s.io/initial-events-end`. Default: no annotation.
    pub initial_events_end: Option<At<Text>>,
}

/// A slow link.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drip {
    /// Bytes per write.
    #[schemars(required, range(min = 1, max = 16_777_216))]
    pub bytes: Option<At<u64>>,
    /// Time between writes.
    #[schemars(required)]
    pub every: Option<At<Duration>>,
}

/// Where to truncate a body and how to end it: `after_bytes`, or `after_events` and `percent` of the next line.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Truncate {
    /// Number of further bytes of the body.
    pub after_bytes: Option<At<u64>>,
    /// Number of further complete events.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub after_events: Option<At<u64>>,
    /// Percentage of the next line. Default 0.
    #[schemars(range(min = 0, max = 99))]
    pub percent: Option<At<u64>>,
    /// How the body ends.
    #[schemars(required)]
    pub then: Option<At<WordOr<EndingKeys>>>,
}

/// How long a response may take.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndAfter {
    /// The time from its head.
    #[schemars(required)]
    pub time: Option<At<Duration>>,
    /// How it ends. Default: `eof`.
    pub then: Option<At<WordOr<EndingKeys>>>,
}

/// How a body ends: a word, or a map with an HTTP/2 error code.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ending")]
pub struct EndingKeys {
    /// Clean end: the body is complete and the connection is reusable.
    #[serde(default, deserialize_with = "given")]
    pub eof: Option<At<Nothing>>,
    /// The connection is closed within the body.
    #[serde(default, deserialize_with = "given")]
    pub fin: Option<At<Nothing>>,
    /// The connection is reset.
    #[serde(default, deserialize_with = "given")]
    pub rst: Option<At<Nothing>>,
    /// No more bytes are sent; the connection stays open.
    #[serde(default, deserialize_with = "given")]
    pub stall: Option<At<Nothing>>,
    /// The connection is closed without TLS close_notify.
    #[serde(default, deserialize_with = "given")]
    pub no_close_notify: Option<At<Nothing>>,
    /// The HTTP/2 stream is reset with this code; the connection stays open.
    pub rst_stream: Option<At<Http2Error>>,
    /// The HTTP/2 connection is closed after a GOAWAY with this code.
    pub goaway: Option<At<Http2Error>>,
}

impl Words for EndingKeys {
    const WORDS: &'static [&'static str] = &["eof", "fin", "rst", "stall", "no_close_notify"];
}

impl EndingKeys {
    /// Returns the first ending given.
    pub fn ending(&self) -> Option<Ending> {
        self.given().first().map(|(ending, ..)| *ending)
    }

    /// Returns the endings given, with words and positions.
    pub(crate) fn given(&self) -> Vec<(Ending, &'static str, Span)> {
        let words = [
            (&self.eof, Ending::Eof, "eof"),
            (&self.fin, Ending::Fin, "fin"),
            (&self.rst, Ending::Rst, "rst"),
            (&self.stall, Ending::Stall, "stall"),
            (&self.no_close_notify, Ending::NoCloseNotify, "no_close_notify"),
        ];
        let words = words
            .into_iter()
            .filter_map(|(key, ending, word)| Some((ending, word, key.as_ref()?.span)));
        let reset = self.rst_stream.as_ref();
        let goaway = self.goaway.as_ref();
        words
            .chain(reset.map(|code| (Ending::RstStream(code.value), "rst_stream", code.span)))
            .chain(goaway.map(|code| (Ending::Goaway(code.value), "goaway", code.span)))
            .collect()
    }
}

impl From<Ending> for EndingKeys {
    fn from(ending: Ending) -> Self {
        let mut keys = Self::default();
        match ending {
            Ending::Eof => keys.eof = Some(().into()),
            Ending::Fin => keys.fin = Some(().into()),
            Ending::Rst => keys.rst = Some(().into()),
            Ending::Stall => keys.stall = Some(().into()),
            Ending::NoCloseNotify => keys.no_close_notify = Some(().into()),
            Ending::RstStream(code) => keys.rst_stream = Some(code.into()),
            Ending::Goaway(code) => keys.goaway = Some(code.into()),
        }
        keys
    }
}

impl From<Ending> for At<WordOr<EndingKeys>> {
    fn from(ending: Ending) -> Self {
        WordOr(ending.into()).into()
    }
}
