//! Decodes one page of a LIST, item by item: an item that does not fit its type is named, and the others are told.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::envelope::{Head, Text, text};
use super::{Kinds, short};
use crate::error::{DecodeError, Malformed};
use crate::machine::{Answer, PageMeta};
use crate::object::ObjectId;
use crate::status::Status;

/// Tells the items of a LIST body in order, and then [`Answer::PageEnd`]; or, where it is no list, what it is.
///
/// `items` may be empty, null or missing, and items may come without their type.
pub fn decode_list<K: DeserializeOwned>(body: &[u8], kinds: &mut Kinds, mut tell: impl FnMut(Answer<'_, K>)) {
    let Ok(body) = std::str::from_utf8(body) else {
        return tell(Answer::Malformed(Malformed::NotJson));
    };
    let list = match serde_json::from_str::<List<'_>>(body) {
        Ok(list) => list,
        Err(error) if error.is_data() => {
            return tell(Answer::Malformed(Malformed::NotExpected { kind: None }));
        }
        Err(_) => return tell(Answer::Malformed(Malformed::NotJson)),
    };
    let kind = list.kind.as_ref().map_or("", Text::as_str);
    let api_version = list.api_version.as_ref().map_or("", Text::as_str);
    if let Some(status) = Status::from_object(body) {
        return tell(Answer::ErrorEvent(status));
    }
    let checked = match kind {
        "" if list.items.is_none() => Err(Malformed::NotExpected { kind: None }),
        // A single object, say, or a page of another API. A list may be named anything, but then it has items.
        kind if list.items.is_none() && !kind.ends_with("List") => Err(Malformed::NotExpected {
            kind: Some(short(kind)),
        }),
        kind => kinds.check_list(api_version, kind),
    };
    if let Err(why) = checked {
        return tell(Answer::Malformed(why));
    }
    for item in list.items.unwrap_or_default() {
        tell_item(item.get(), kinds, &mut tell);
    }
    let metadata = list.metadata.unwrap_or_default();
    tell(Answer::PageEnd(PageMeta {
        resource_version: text(metadata.resource_version),
        continue_token: text(metadata.continue_token),
    }));
}

fn tell_item<K: DeserializeOwned>(json: &str, kinds: &mut Kinds, tell: &mut impl FnMut(Answer<'_, K>)) {
    let Some(head) = Head::read(json) else {
        let error = DecodeError {
            reason: "no metadata".to_owned(),
            column: 0,
        };
        return tell(Answer::Undecodable {
            object: ObjectId::default(),
            error,
        });
    };
    let kind_error = kinds.check_item(head.api_version(), head.kind()).err();
    let object = head.object();
    let error = match (kind_error, serde_json::from_str::<K>(json)) {
        (None, Ok(payload)) => return tell(Answer::Item { object, payload }),
        (Some(why), _) => DecodeError {
            reason: short(&why.to_string()),
            column: 0,
        },
        (None, Err(error)) => DecodeError::from(error),
    };
    tell(Answer::Undecodable {
        object: object.to_id(""),
        error,
    });
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
    #[serde(rename = "continue", borrow)]
    continue_token: Option<Text<'a>>,
}
