//! Decodes one page of a LIST while it is still arriving, item by item: an item that does not fit its type is named, and
//! the others are told. What is held of a page is one item, however long the page.

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;

use super::envelope::{Head, Text, text};
use super::scan::ValueEnd;
use super::{Codec, Kinds, short};
use crate::error::{DecodeError, Malformed};
use crate::machine::{Answer, PageMeta};
use crate::object::ObjectId;
use crate::status::Status;

/// A LIST body as it arrives, in whatever chunks.
///
/// Its fields may come in any order: lists of built-in kinds begin with their kind and metadata, those of custom
/// resources with their items. `items` may be empty, null or missing, and items may come without their type.
#[derive(Debug)]
pub struct ListDecoder {
    /// The beginning of a value whose end has not come.
    begun: BytesMut,
    /// What came last, behind `begun`.
    chunk: Bytes,
    place: Place,
    /// The search for the end of the value that is next; `begun` was searched.
    end: ValueEnd,
    /// What is no item, as JSON.
    outer: String,
    has_items: bool,
    is_kind_checked: bool,
    limit: usize,
}

/// What is next in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Before the list.
    Start,
    /// Before a key, or the end of the list.
    Key,
    /// Behind this key.
    Colon(String),
    /// Before the value of this key.
    Value(String),
    /// Before an item, or the end of the items.
    Item,
    /// Behind the list.
    End,
    /// What came is no list.
    Broken,
}

/// More of what surrounds the items is not kept; a list's metadata and a Status are short.
const OUTER_BYTES_MAX: usize = 256 << 10;

impl ListDecoder {
    /// A decoder that refuses items longer than so many bytes.
    pub fn new(max_item_bytes: usize) -> Self {
        Self {
            begun: BytesMut::new(),
            chunk: Bytes::new(),
            place: Place::Start,
            end: ValueEnd::default(),
            outer: String::new(),
            has_items: false,
            is_kind_checked: false,
            limit: max_item_bytes,
        }
    }

    /// Takes more of the body. What was pushed before must have been read by [`next`](Self::next).
    pub fn push(&mut self, chunk: Bytes) {
        if self.place != Place::Broken {
            self.gather();
            self.chunk = chunk;
        }
    }

    /// Tells the next item; `false` when more bytes are needed. After bytes that are no list nothing is told.
    pub fn next<K>(
        &mut self,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut tell: impl FnMut(Answer<'_, K>),
    ) -> bool {
        let mut is_told = false;
        let mut tell = |answer: Answer<'_, K>| {
            is_told = true;
            tell(answer);
        };
        while self.place != Place::Broken {
            match self.step(codec, kinds, &mut tell) {
                Step::On => {}
                Step::Told => break,
                Step::More if self.begun.len() > self.limit => {
                    self.give_up(Malformed::TooLong { limit: self.limit }, &mut tell);
                }
                Step::More => break,
            }
        }
        is_told
    }

    /// The body ended: tells [`Answer::PageEnd`], or what the body is in place of a list.
    pub fn finish<K>(self, kinds: &mut Kinds, mut tell: impl FnMut(Answer<'_, K>)) {
        match &self.place {
            Place::Broken => return,
            Place::End => {}
            Place::Start | Place::Key | Place::Colon(_) | Place::Value(_) | Place::Item => {
                return tell(Answer::Malformed(Malformed::NotJson));
            }
        }
        let outer = format!("{{{}}}", self.outer);
        if let Some(status) = Status::from_object(&outer) {
            return tell(Answer::ErrorEvent(status));
        }
        let Ok(list) = serde_json::from_str::<Outer<'_>>(&outer) else {
            return tell(Answer::Malformed(Malformed::NotExpected { kind: None }));
        };
        if !self.is_kind_checked
            && let Err(why) = self.check_kind(&list, kinds)
        {
            return tell(Answer::Malformed(why));
        }
        let metadata = list.metadata.unwrap_or_default();
        tell(Answer::PageEnd(PageMeta {
            resource_version: text(metadata.resource_version),
            continue_token: text(metadata.continue_token),
        }));
    }

    /// Takes what is next of the body.
    fn step<K>(&mut self, codec: &Codec<K>, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) -> Step {
        let Some(first) = self.first() else {
            return Step::More;
        };
        match (&mut self.place, first) {
            (Place::Start, b'{') => self.go(1, Place::Key),
            (Place::Start, b'[' | b'"') => self.give_up(Malformed::NotExpected { kind: None }, tell),
            (Place::Key, b',') if !self.outer.is_empty() || self.has_items => self.go(1, Place::Key),
            (Place::Key, b'}') => self.go(1, Place::End),
            (Place::Key, b'"') => self.key(tell),
            (Place::Colon(key), b':') => {
                let key = std::mem::take(key);
                self.go(1, Place::Value(key))
            }
            (Place::Value(key), b'[') if key == "items" && !self.has_items => {
                self.has_items = true;
                if let Err(why) = self.check_kind_early(kinds) {
                    return self.give_up(why, tell);
                }
                self.go(1, Place::Item)
            }
            (Place::Value(_), _) => self.value(tell),
            (Place::Item, b']') => self.go(1, Place::Key),
            (Place::Item, b',') => self.go(1, Place::Item),
            (Place::Item, _) => self.item(codec, kinds, tell),
            (Place::Start | Place::Key | Place::Colon(_) | Place::End | Place::Broken, _) => {
                self.give_up(Malformed::NotJson, tell)
            }
        }
    }

    fn key<K>(&mut self, tell: &mut impl FnMut(Answer<'_, K>)) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        match serde_json::from_slice::<String>(&self.front()[..length]) {
            Ok(key) => self.go(length, Place::Colon(key)),
            Err(_) => self.give_up(Malformed::NotJson, tell),
        }
    }

    /// A value that is no item: kept to be read at the end.
    fn value<K>(&mut self, tell: &mut impl FnMut(Answer<'_, K>)) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        let Place::Value(key) = &self.place else {
            return Step::More;
        };
        let bytes = &self.front()[..length];
        let kept = std::str::from_utf8(bytes)
            .ok()
            .filter(|value| serde_json::from_str::<serde::de::IgnoredAny>(value).is_ok());
        let Some(value) = kept else {
            return self.give_up(Malformed::NotJson, tell);
        };
        if key == "items" {
            self.has_items |= value == "null";
        } else if self.outer.len() + value.len() <= OUTER_BYTES_MAX {
            let comma = if self.outer.is_empty() { "" } else { "," };
            let field = format!("{comma}{}:{value}", serde_json::Value::from(key.as_str()));
            self.outer.push_str(&field);
        }
        self.go(length, Place::Key)
    }

    fn item<K>(&mut self, codec: &Codec<K>, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) -> Step {
        let Some(length) = self.whole_value() else {
            return Step::More;
        };
        let Ok(json) = std::str::from_utf8(&self.front()[..length]) else {
            return self.give_up(Malformed::NotJson, tell);
        };
        match decode_item(json, codec, kinds) {
            Ok(answer) => tell(answer),
            Err(why) => return self.give_up(why, tell),
        }
        self.go(length, Place::Item);
        Step::Told
    }

    /// Where the kind came before the items, nothing of another kind is told.
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
            // A single object, say, or a page of another API. A list may be named anything, but then it has items.
            kind if !self.has_items && !kind.ends_with("List") => Err(Malformed::NotExpected {
                kind: Some(short(kind)),
            }),
            kind => kinds.check_list(api_version, kind),
        }
    }

    /// The first byte of what is next that is no blank.
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

    /// Where what is next lies.
    fn front(&self) -> &[u8] {
        if self.begun.is_empty() {
            &self.chunk
        } else {
            &self.begun
        }
    }

    /// The length of the value at the front, once it is whole and in one place.
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

    /// Puts everything into one place.
    fn gather(&mut self) {
        self.begun.extend_from_slice(&self.chunk);
        // Not cleared but let go: an empty chunk still holds the buffer of the connection, which could not be read into
        // again but would be allocated again for each read.
        self.chunk = Bytes::new();
    }

    fn go(&mut self, length: usize, place: Place) -> Step {
        if self.begun.is_empty() {
            self.chunk.advance(length);
        } else {
            self.begun.advance(length);
        }
        self.place = place;
        self.end = ValueEnd::default();
        Step::On
    }

    fn give_up<K>(&mut self, why: Malformed, tell: &mut impl FnMut(Answer<'_, K>)) -> Step {
        tell(Answer::Malformed(why));
        self.place = Place::Broken;
        self.begun.clear();
        self.chunk = Bytes::new();
        Step::Told
    }
}

/// What became of what is next.
enum Step {
    More,
    On,
    Told,
}

/// `Err`: these bytes are no JSON, so where the next item begins is unknown.
fn decode_item<K>(json: &str, codec: &Codec<K>, kinds: &mut Kinds) -> Result<Answer<'static, K>, Malformed> {
    let why = if kinds.knows(json) {
        match codec.decode(json) {
            Ok(payload) => return Ok(Answer::Item { payload }),
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
        return Ok(Answer::Undecodable {
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
        (None, Ok(payload)) => return Ok(Answer::Item { payload }),
        (Some(why), _) => DecodeError {
            reason: short(&why.to_string()),
            column: 0,
        },
        (None, Err(error)) => DecodeError::from(error),
    };
    Ok(Answer::Undecodable {
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
