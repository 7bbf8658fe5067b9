//! From body bytes to what the machine is told. Knows JSON and the shapes of LIST and WATCH bodies, not HTTP.
//!
//! Names, versions and event types are read by a scan of their own, so they are known also where an object does not fit
//! its type, and a bad object can be told apart from bad bytes.

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
use crate::machine::{Answer, Change};
pub use crate::prune::Prune;
use crate::status::Status;

/// Decodes the body of a watch as it arrives, in whatever chunks.
///
/// Events are told apart by where their JSON ends and not by newlines (client-go's framer does so too): blank lines,
/// CRLF, two events on a line, an event over several lines and a last event without a newline are all fine.
#[derive(Debug)]
pub struct WatchDecoder {
    values: Values,
}

impl WatchDecoder {
    /// A decoder that refuses events longer than so many bytes.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            values: Values::new(max_event_bytes),
        }
    }

    /// Takes more of the body. What was pushed before must have been read by [`next`](Self::next).
    pub fn push(&mut self, chunk: Bytes) {
        self.values.push(chunk);
    }

    /// Tells the next event; `false` when more bytes are needed. After bytes that are no JSON nothing more is told: where
    /// the next event begins is unknown.
    ///
    /// One at a time, so that a consumer has done with one object before the next takes memory.
    pub fn next<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut tell: impl FnMut(Answer<'_, K>),
    ) -> bool {
        let mut is_told = false;
        self.values.next(|cut| {
            let is_taken = tell_cut(&cut, codec, kinds, &mut tell);
            is_told |= is_taken;
            is_taken
        });
        is_told
    }

    /// The body ended: tells a last event that is whole but for its newline. A torn one is dropped; returns how many
    /// bytes of it there were.
    pub fn finish<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut tell: impl FnMut(Answer<'_, K>),
    ) -> usize {
        while self
            .values
            .next_at_end(|cut| tell_cut(&cut, codec, kinds, &mut tell))
        {}
        self.values.torn()
    }
}

/// False for a line that must be looked at closer.
fn tell_cut<K>(
    cut: &Cut<'_>,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    tell: &mut impl FnMut(Answer<'_, K>),
) -> bool {
    match cut {
        Cut::Line(line) => {
            let Some((change, json)) = plain_object(line).filter(|(_, json)| kinds.knows(json)) else {
                return false;
            };
            // Whatever is wrong with it, the closer look says so.
            let Ok(payload) = codec.decode(json) else {
                return false;
            };
            tell(Answer::Changed { change, payload });
        }
        Cut::Value { envelope, text } => tell_event(envelope, text, codec, kinds, tell),
        Cut::Malformed(why) => tell(Answer::Malformed(why.clone())),
    }
    true
}

fn tell_event<K>(
    envelope: &Envelope<'_>,
    text: &str,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    tell: &mut impl FnMut(Answer<'_, K>),
) {
    let object = envelope.object.map(serde_json::value::RawValue::get);
    let change = match envelope.event_type() {
        Some("ADDED") => Change::Added,
        Some("MODIFIED") => Change::Modified,
        Some("DELETED") => Change::Deleted,
        Some("BOOKMARK") => {
            let bookmark = envelope::Bookmark::read(object.unwrap_or("null"));
            return tell(Answer::Bookmark {
                resource_version: bookmark.resource_version.into(),
                initial_events_end: bookmark.initial_events_end,
            });
        }
        Some("ERROR") => return tell(Answer::ErrorEvent(Status::from_error_event(object))),
        Some(other) => return tell(Answer::Malformed(Malformed::UnknownEventType(short(other)))),
        // Before the first event a server may still answer with a Status, and with 200 in the head.
        None => {
            return tell(match Status::from_object(text) {
                Some(status) => Answer::ErrorEvent(status),
                None => Answer::Malformed(Malformed::NotExpected {
                    kind: envelope.kind().map(short),
                }),
            });
        }
    };
    let Some((json, head)) = object.and_then(|json| Some((json, Head::read(json)?))) else {
        return tell(Answer::Malformed(Malformed::NoObject));
    };
    if let Err(why) = kinds.check_object(head.api_version(), head.kind()) {
        return tell(Answer::Malformed(why));
    }
    kinds.learn(json);
    match codec.decode(json) {
        Ok(payload) => tell(Answer::Changed { change, payload }),
        Err(error) => {
            tell(Answer::Undecodable {
                object: head.object().to_id(change.word()),
                error: DecodeError::from(error),
            });
        }
    }
}

/// Kinds and event types go into errors; a body that is none of ours must not go there with them.
fn short(word: &str) -> String {
    word.chars().take(64).collect()
}

#[cfg(test)]
mod tests;
