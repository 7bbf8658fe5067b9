//! Decodes one page of a LIST while it is still arriving, item by item: an item that does not fit its type is named, and
//! the others are told. What is held of a page is one item, however long the page.

use bytes::{Buf, BytesMut};
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
    bytes: BytesMut,
    place: Place,
    /// The end of the value that begins at the beginning of `bytes`.
    end: ValueEnd,
    /// What is no item, as JSON.
    outer: String,
    has_items: bool,
    is_kind_checked: bool,
    limit: usize,
}

/// Where in the body `bytes` begin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Before the list.
    Start,
    /// Before a key, or the end of the list.
    Key,
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
            bytes: BytesMut::new(),
            place: Place::Start,
            end: ValueEnd::default(),
            outer: String::new(),
            has_items: false,
            is_kind_checked: false,
            limit: max_item_bytes,
        }
    }

    /// Takes more of the body and tells the items that became whole. After bytes that are no list nothing is told.
    pub fn push<K>(
        &mut self,
        chunk: &[u8],
        codec: &Codec<K>,
        kinds: &mut Kinds,
        tell: &mut impl FnMut(Answer<'_, K>),
    ) {
        if self.place == Place::Broken {
            return;
        }
        self.bytes.extend_from_slice(chunk);
        while self.place != Place::Broken && self.step(codec, kinds, tell) {}
        if self.bytes.len() > self.limit && self.place != Place::Broken {
            self.give_up(Malformed::TooLong { limit: self.limit }, tell);
        }
    }

    /// The body ended: tells [`Answer::PageEnd`], or what the body is in place of a list.
    pub fn finish<K>(self, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) {
        match &self.place {
            Place::Broken => return,
            Place::End => {}
            Place::Start | Place::Key | Place::Value(_) | Place::Item => {
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

    /// Takes what is next of the body; `false` when more bytes are needed.
    fn step<K>(&mut self, codec: &Codec<K>, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) -> bool {
        self.skip_whitespace();
        let Some(&first) = self.bytes.first() else {
            return false;
        };
        match (&self.place, first) {
            (Place::Start, b'{') => self.go(1, Place::Key),
            (Place::Start, b'[' | b'"') => self.give_up(Malformed::NotExpected { kind: None }, tell),
            (Place::Key, b',') if !self.outer.is_empty() || self.has_items => self.go(1, Place::Key),
            (Place::Key, b'}') => self.go(1, Place::End),
            (Place::Key, b'"') => match self.key() {
                Some(Ok(key)) => {
                    self.place = Place::Value(key);
                    true
                }
                Some(Err(why)) => self.give_up(why, tell),
                None => false,
            },
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
            (Place::Start | Place::Key | Place::End | Place::Broken, _) => {
                self.give_up(Malformed::NotJson, tell)
            }
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Option<Result<String, Malformed>> {
        let end = self.end.clone().advance(&self.bytes)?;
        let colon = end
            + self.bytes[end..]
                .iter()
                .position(|byte| !byte.is_ascii_whitespace())?;
        let key = serde_json::from_slice::<String>(&self.bytes[..end]);
        let result = match key {
            Ok(key) if self.bytes[colon] == b':' => Ok(key),
            Ok(_) | Err(_) => Err(Malformed::NotJson),
        };
        self.bytes.advance(colon + 1);
        Some(result)
    }

    /// A value that is no item: kept to be read at the end.
    fn value<K>(&mut self, tell: &mut impl FnMut(Answer<'_, K>)) -> bool {
        let Some(end) = self.end.advance(&self.bytes) else {
            return false;
        };
        let Place::Value(key) = &self.place else {
            return false;
        };
        self.has_items |= key == "items" && self.bytes[..end] == *b"null";
        let kept = std::str::from_utf8(&self.bytes[..end])
            .ok()
            .filter(|value| serde_json::from_str::<serde::de::IgnoredAny>(value).is_ok());
        let Some(value) = kept else {
            return self.give_up(Malformed::NotJson, tell);
        };
        if key != "items" && self.outer.len() + value.len() <= OUTER_BYTES_MAX {
            if !self.outer.is_empty() {
                self.outer.push(',');
            }
            self.outer
                .push_str(&serde_json::Value::from(key.as_str()).to_string());
            self.outer.push(':');
            self.outer.push_str(value);
        }
        self.go(end, Place::Key)
    }

    fn item<K>(&mut self, codec: &Codec<K>, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) -> bool {
        let Some(end) = self.end.advance(&self.bytes) else {
            return false;
        };
        let Ok(json) = std::str::from_utf8(&self.bytes[..end]) else {
            return self.give_up(Malformed::NotJson, tell);
        };
        match decode_item(json, codec, kinds) {
            Ok(answer) => tell(answer),
            Err(why) => return self.give_up(why, tell),
        }
        self.go(end, Place::Item)
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

    fn skip_whitespace(&mut self) {
        // The end that is looked for is counted from the first byte.
        if self.end.is_fresh() {
            let blank = self
                .bytes
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace())
                .count();
            self.bytes.advance(blank);
        }
    }

    fn go(&mut self, length: usize, place: Place) -> bool {
        self.bytes.advance(length);
        self.place = place;
        self.end = ValueEnd::default();
        true
    }

    fn give_up<K>(&mut self, why: Malformed, tell: &mut impl FnMut(Answer<'_, K>)) -> bool {
        tell(Answer::Malformed(why));
        self.place = Place::Broken;
        self.bytes.clear();
        false
    }
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
