//! Decodes response bodies into the machine's input. Depends on JSON and the shapes of LIST and WATCH bodies, not on
//! HTTP.
//!
//! Names, versions and event types are parsed separately from the object, so they are known even when the object does
//! not fit its type: an undecodable object is distinguished from malformed bytes.

mod codec;
mod cut;
#[cfg(feature = "client")]
mod dynamic;
mod envelope;
mod identify;
mod kinds;
mod list;
mod plain;
mod prune;
mod scan;
mod values;

use bytes::Bytes;

pub use self::codec::Codec;
use self::envelope::{Envelope, Head, plain_object};
pub(crate) use self::identify::{identity, is_one_value};
pub use self::kinds::Kinds;
pub use self::list::ListDecoder;
pub(crate) use self::plain::from_str;
use self::values::{Cut, Values};
use crate::error::{DecodeError, Malformed};
use crate::machine::{Change, ResponsePart};
pub use crate::prune::Prune;
use crate::status::Status;

/// Incremental decoder for a watch body, received in chunks of any size.
///
/// Events are delimited by the end of their JSON value and not by newlines (as in client-go's framer): blank lines,
/// CRLF, two events on a line, an event over several lines and a last event without a newline are all accepted.
#[derive(Debug)]
pub struct WatchDecoder {
    values: Values,
}

impl WatchDecoder {
    /// Creates a decoder that rejects events longer than `max_event_bytes`.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            values: Values::new(max_event_bytes),
        }
    }

    /// Adds a chunk. Earlier chunks must have been consumed with [`next`](Self::next).
    pub fn push(&mut self, chunk: Bytes) {
        self.values.push(chunk);
    }

    /// Passes the next event to the callback; returns `false` if more bytes are needed. After bytes that are not JSON
    /// no more events are produced, because the start of the next event is unknown.
    ///
    /// Produces one event at a time, so that a consumer can release one object before the next is allocated.
    pub fn next<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut emit: impl FnMut(ResponsePart<'_, K>),
    ) -> bool {
        let mut emitted = false;
        self.values.next(|cut| {
            let accepted = emit_cut(&cut, codec, kinds, &mut emit);
            emitted |= accepted;
            accepted
        });
        emitted
    }

    /// Ends the body: passes on a last event that is complete except for its newline. A truncated event is dropped;
    /// returns its length in bytes.
    pub fn finish<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut emit: impl FnMut(ResponsePart<'_, K>),
    ) -> usize {
        while self
            .values
            .next_at_end(|cut| emit_cut(&cut, codec, kinds, &mut emit))
        {}
        self.values.torn()
    }
}

/// Returns false if the line needs the full parser.
fn emit_cut<K>(
    cut: &Cut<'_>,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    emit: &mut impl FnMut(ResponsePart<'_, K>),
) -> bool {
    match cut {
        Cut::Line(line) => {
            let Some((change, json)) = plain_object(line).filter(|(_, json)| kinds.knows(json)) else {
                return false;
            };
            // On any error, the full parser reports the reason.
            let Ok(payload) = codec.decode(json) else {
                return false;
            };
            emit(ResponsePart::Changed { change, payload });
        }
        Cut::Value { envelope, text } => tell_event(envelope, text, codec, kinds, emit),
        Cut::Malformed(why) => emit(ResponsePart::Malformed(why.clone())),
    }
    true
}

fn tell_event<K>(
    envelope: &Envelope<'_>,
    text: &str,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    emit: &mut impl FnMut(ResponsePart<'_, K>),
) {
    let object = envelope.object.map(serde_json::value::RawValue::get);
    let change = match envelope.event_type() {
        Some("ADDED") => Change::Added,
        Some("MODIFIED") => Change::Modified,
        Some("DELETED") => Change::Deleted,
        Some("BOOKMARK") => {
            let bookmark = envelope::Bookmark::read(object.unwrap_or("null"));
            return emit(ResponsePart::Bookmark {
                resource_version: bookmark.resource_version.into(),
                initial_events_end: bookmark.initial_events_end,
            });
        }
        Some("ERROR") => return emit(ResponsePart::ErrorEvent(Status::from_error_event(object))),
        Some(other) => return emit(ResponsePart::Malformed(Malformed::UnknownEventType(short(other)))),
        // Before the first event a server may still respond with a Status, under HTTP 200.
        None => {
            return emit(match Status::from_object(text) {
                Some(status) => ResponsePart::ErrorEvent(status),
                None => ResponsePart::Malformed(Malformed::NotExpected {
                    kind: envelope.kind().map(short),
                }),
            });
        }
    };
    let Some((json, head)) = object.and_then(|json| Some((json, Head::read(json)?))) else {
        return emit(ResponsePart::Malformed(Malformed::NoObject));
    };
    if let Err(why) = kinds.check_object(head.api_version(), head.kind()) {
        return emit(ResponsePart::Malformed(why));
    }
    kinds.learn(json);
    match codec.decode(json) {
        Ok(payload) => emit(ResponsePart::Changed { change, payload }),
        Err(error) => {
            emit(ResponsePart::Undecodable {
                object: head.object().to_id(change.word()),
                error: DecodeError::from(error),
            });
        }
    }
}

/// Kinds and event types are quoted in errors; truncated, so that a body of another format is not quoted with them.
fn short(word: &str) -> String {
    word.chars().take(64).collect()
}

#[cfg(test)]
mod tests;
