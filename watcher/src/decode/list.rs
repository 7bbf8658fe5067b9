//! Decodes a page of a LIST incrementally, item by item: an item that does not fit its type is reported, and the
//! others are still delivered. Memory use is one item, regardless of the page size.

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;

use super::envelope::{Head, Text, text};
use super::scan::ValueEnd;
use super::{Codec, Kinds, short};
use crate::error::{DecodeError, Malformed};
use crate::machine::{PageMeta, ResponsePart};
use crate::object::ObjectId;
use crate::status::Status;

/// Incremental decoder for a LIST body, received in chunks of any size.
///
/// Fields may come in any order: lists of built-in kinds start with kind and metadata, lists of custom resources with
/// their items. `items` may be empty, null or missing, and items may lack their type.
#[derive(Debug)]
pub struct ListDecoder {
    /// Start of a value whose end has not been received.
    begun: BytesMut,
    /// The last chunk; it follows `begun`.
    chunk: Bytes,
    position: Position,
    /// Scanner for the end of the current value; it has scanned all of `begun`.
    end: ValueEnd,
    /// All fields except items, as JSON.
    outer: String,
    has_items: bool,
    is_kind_checked: bool,
    limit: usize,
}

/// Position in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Position {
    /// Before the opening brace of the list.
    Start,
    /// Before a key, or the end of the list.
    Key,
    /// After this key.
    Colon(String),
    /// Before the value of this key.
    Value(String),
    /// Before an item, or the end of the items.
    Item,
    /// After the list.
    End,
    /// The body is not a list.
    Broken,
}

/// Limit for the fields around the items; a list's metadata and a Status are short.
const OUTER_BYTES_MAX: usize = 256 << 10;

impl ListDecoder {
    /// Creates a decoder that rejects items longer than `max_item_bytes`.
    pub fn new(max_item_bytes: usize) -> Self {
        Self {
            begun: BytesMut::new(),
            chunk: Bytes::new(),
            position: Position::Start,
            end: ValueEnd::default(),
            outer: String::new(),
            has_items: false,
            is_kind_checked: false,
            limit: max_item_bytes,
        }
    }

    /// Adds a chunk. Earlier chunks must have been consumed with [`next`](Self::next).
    pub fn push(&mut self, chunk: Bytes) {
        if self.position != Position::Broken {
            self.gather();
            self.chunk = chunk;
        }
    }

    /// Passes the next item to the callback; returns `false` if more bytes are needed. After bytes that are not a
    /// list nothing is produced.
    pub fn next<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut emit: impl FnMut(ResponsePart<'_, K>),
    ) -> bool {
        let mut emitted = false;
        let mut emit = |answer: ResponsePart<'_, K>| {
            emitted = true;
            emit(answer);
        };
        while self.position != Position::Broken {
            match self.step(codec, kinds, &mut emit) {
                Step::On => {}
                Step::Emitted => break,
                Step::More if self.begun.len() > self.limit => {
                    self.give_up(Malformed::TooLong { limit: self.limit }, &mut emit);
                }
                Step::More => break,
            }
        }
        emitted
    }

    /// Ends the body: produces [`ResponsePart::PageEnd`], or the error if the body is not a list.
    pub fn finish<K>(self, kinds: &mut Kinds, mut emit: impl FnMut(ResponsePart<'_, K>)) {
        match &self.position {
            Position::Broken => return,
            Position::End => {}
            Position::Start | Position::Key | Position::Colon(_) | Position::Value(_) | Position::Item => {
                return emit(ResponsePart::Malformed(Malformed::NotJson));
            }
        }
        let outer = format!("{{{}}}", self.outer);
        if let Some(status) = Status::from_object(&outer) {
            return emit(ResponsePart::ErrorEvent(status));
        }
        let Ok(list) = serde_json::from_str::<Outer<'_>>(&outer) else {
            return emit(ResponsePart::Malformed(Malformed::NotExpected { kind: None }));
        };
        if !self.is_kind_checked
            && let Err(why) = self.check_kind(&list, kinds)
        {
            return emit(ResponsePart::Malformed(why));
        }
        let metadata = list.metadata.unwrap_or_default();
        emit(ResponsePart::PageEnd(PageMeta {
            resource_version: text(metadata.resource_version),
            continue_token: text(metadata.continue_token),
        }));
    }

    /// Consumes the next token or value.
    fn step<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        emit: &mut impl FnMut(ResponsePart<'_, K>),
    ) -> Step {
        let Some(first) = self.first() else {
            return Step::More;
        };
        match (&mut self.position, first) {
            (Position::Start, b'{') => self.go(1, Position::Key),
            (Position::Start, b'[' | b'"') => self.give_up(Malformed::NotExpected { kind: None }, emit),
            (Position::Key, b',') if !self.outer.is_empty() || self.has_items => self.go(1, Position::Key),
            (Position::Key, b'}') => self.go(1, Position::End),
            (Position::Key, b'"') => self.key(emit),
            (Position::Colon(key), b':') => {
                let key = std::mem::take(key);
                self.go(1, Position::Value(key))
            }
            (Position::Value(key), b'[') if key == "items" && !self.has_items => {
                self.has_items = true;
                if let Err(why) = self.check_kind_early(kinds) {
                    return self.give_up(why, emit);
                }
                self.go(1, Position::Item)
            }
            (Position::Value(_), _) => self.value(emit),
            (Position::Item, b']') => self.go(1, Position::Key),
            (Position::Item, b',') => self.go(1, Position::Item),
            (Position::Item, _) => self.item(codec, kinds, emit),
            (Position::Start | Position::Key | Position::Colon(_) | Position::End | Position::Broken, _) => {
                self.give_up(Malformed::NotJson, emit)
            }
        }
    }

    fn key<K>(&mut self, emit: &mut impl FnMut(ResponsePart<'_, K>)) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        match serde_json::from_slice::<String>(&self.front()[..length]) {
            Ok(key) => self.go(length, Position::Colon(key)),
            Err(_) => self.give_up(Malformed::NotJson, emit),
        }
    }

    /// Consumes a value that is not an item; it is kept and parsed at the end.
    fn value<K>(&mut self, emit: &mut impl FnMut(ResponsePart<'_, K>)) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        let Position::Value(key) = &self.position else {
            return Step::More;
        };
        let bytes = &self.front()[..length];
        let kept = std::str::from_utf8(bytes)
            .ok()
            .filter(|value| serde_json::from_str::<serde::de::IgnoredAny>(value).is_ok());
        let Some(value) = kept else {
            return self.give_up(Malformed::NotJson, emit);
        };
        if key == "items" {
            self.has_items |= value == "null";
        } else if self.outer.len() + value.len() <= OUTER_BYTES_MAX {
            let comma = if self.outer.is_empty() { "" } else { "," };
            let field = format!("{comma}{}:{value}", serde_json::Value::from(key.as_str()));
            self.outer.push_str(&field);
        }
        self.go(length, Position::Key)
    }

    fn item<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        emit: &mut impl FnMut(ResponsePart<'_, K>),
    ) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        let Ok(json) = std::str::from_utf8(&self.front()[..length]) else {
            return self.give_up(Malformed::NotJson, emit);
        };
        match decode_item(json, codec, kinds) {
            Ok(answer) => emit(answer),
            Err(why) => return self.give_up(why, emit),
        }
        self.go(length, Position::Item);
        Step::Emitted
    }

    /// If the kind precedes the items, rejects a wrong kind before any item is delivered.
    fn check_kind_early(&mut self, kinds: &mut Kinds) -> Result<(), Malformed> {
        let outer = format!("{{{}}}", self.outer);
        let Ok(list) = serde_json::from_str::<Outer<'_>>(&outer) else {
            return Ok(());
        };
        if list.kind.is_none() || Status::from_object(&outer).is_some() {
            return Ok(());
        }
        self.is_kind_checked = true;
        self.check_kind(&list, kinds)
    }

    fn check_kind(&self, list: &Outer<'_>, kinds: &mut Kinds) -> Result<(), Malformed> {
        let kind = list.kind.as_ref().map_or("", Text::as_str);
        let api_version = list.api_version.as_ref().map_or("", Text::as_str);
        match kind {
            "" if !self.has_items => Err(Malformed::NotExpected { kind: None }),
            // E.g. a single object, or a page of another API. A list kind may have any name, but then it must have
            // items.
            kind if !self.has_items && !kind.ends_with("List") => Err(Malformed::NotExpected {
                kind: Some(short(kind)),
            }),
            kind => kinds.check_list(api_version, kind),
        }
    }

    /// Returns the next byte that is not whitespace.
    fn first(&mut self) -> Option<u8> {
        if let Some(&first) = self.begun.first() {
            return Some(first);
        }
        let blank = self.chunk.iter().take_while(|byte| byte.is_ascii_whitespace());
        let blank = blank.count();
        self.chunk.advance(blank);
        let first = self.chunk.first().copied();
        if first.is_none() {
            self.gather();
        }
        first
    }

    /// Returns the unread bytes.
    fn front(&self) -> &[u8] {
        if self.begun.is_empty() {
            &self.chunk
        } else {
            &self.begun
        }
    }

    /// Returns the length of the value at the front, once it is complete and contiguous.
    fn whole_value(&mut self) -> Option<usize> {
        let Some(end) = self.end.advance(&self.chunk) else {
            self.gather();
            return None;
        };
        if self.begun.is_empty() {
            return Some(end);
        }
        self.begun.extend_from_slice(&self.chunk[..end]);
        self.chunk.advance(end);
        Some(self.begun.len())
    }

    /// Moves all unread bytes into one buffer.
    fn gather(&mut self) {
        self.begun.extend_from_slice(&self.chunk);
        // Dropped rather than cleared: an empty `Bytes` still references the connection's read buffer, which would
        // then be reallocated for every read.
        self.chunk = Bytes::new();
    }

    fn go(&mut self, length: usize, position: Position) -> Step {
        if self.begun.is_empty() {
            self.chunk.advance(length);
        } else {
            self.begun.advance(length);
        }
        self.position = position;
        self.end = ValueEnd::default();
        Step::On
    }

    fn give_up<K>(&mut self, why: Malformed, emit: &mut impl FnMut(ResponsePart<'_, K>)) -> Step {
        emit(ResponsePart::Malformed(why));
        self.position = Position::Broken;
        self.begun.clear();
        self.chunk = Bytes::new();
        Step::Emitted
    }
}

/// Result of one step.
enum Step {
    More,
    On,
    Emitted,
}

/// `Err`: the bytes are not JSON, so the start of the next item is unknown.
fn decode_item<K>(
    json: &str,
    codec: &Codec<K>,
    kinds: &mut Kinds,
) -> Result<ResponsePart<'static, K>, Malformed> {
    let why = if kinds.knows(json) {
        match codec.decode(json) {
            Ok(payload) => return Ok(ResponsePart::Item { payload }),
            Err(why) => Some(why),
        }
    } else {
        None
    };
    let Some(head) = Head::read(json) else {
        serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|_| Malformed::NotJson)?;
        let error = DecodeError {
            reason: "no metadata".to_owned(),
            column: 0,
        };
        return Ok(ResponsePart::Undecodable {
            object: ObjectId::default(),
            error,
        });
    };
    let kind_error = kinds.check_item(head.api_version(), head.kind()).err();
    if kind_error.is_none() {
        kinds.learn(json);
    }
    let decoded = match why {
        Some(why) => Err(why),
        None => codec.decode(json),
    };
    let error = match (kind_error, decoded) {
        (None, Ok(payload)) => return Ok(ResponsePart::Item { payload }),
        (Some(why), _) => DecodeError {
            reason: short(&why.to_string()),
            column: 0,
        },
        (None, Err(error)) => DecodeError::from(error),
    };
    Ok(ResponsePart::Undecodable {
        object: head.object().to_id(""),
        error,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outer<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    #[serde(rename = "continue", borrow)]
    continue_token: Option<Text<'a>>,
}
