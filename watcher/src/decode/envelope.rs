//! Parses the few fields the machine needs, without decoding the object they belong to.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::error::Malformed;
use crate::machine::Change;
use crate::object::Identity;

/// A watch event whose object is still raw JSON.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    event_type: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) object: Option<&'a RawValue>,
}

/// Returns the object's JSON if the line is formatted exactly as apiservers write events, so that it can be decoded
/// without parsing the envelope. The decoder has to check that the object ends where the line does.
pub(super) fn plain_object(line: &str) -> Option<(Change, &str)> {
    let rest = line.strip_prefix(r#"{"type":""#)?;
    let (word, rest) = rest.split_once('"')?;
    let change = match word {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        _ => return None,
    };
    let object = rest.strip_prefix(r#","object":"#)?;
    Some((change, object.trim_ascii_end().strip_suffix('}')?))
}

pub(super) enum EnvelopeError {
    /// The text ends before the value does.
    Incomplete,
    Malformed(Malformed),
}

impl<'a> Envelope<'a> {
    /// Reads the first value of a text; returns it with its end offset.
    pub(super) fn read_first(text: &'a str) -> Result<(Self, usize), EnvelopeError> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Self>();
        match values.next() {
            Some(Ok(envelope)) => Ok((envelope, values.byte_offset())),
            None => Err(EnvelopeError::Incomplete),
            Some(Err(error)) => Err(match error.classify() {
                Category::Eof => EnvelopeError::Incomplete,
                Category::Syntax | Category::Io => EnvelopeError::Malformed(Malformed::NotJson),
                Category::Data => EnvelopeError::Malformed(Malformed::NotExpected { kind: None }),
            }),
        }
    }

    pub(super) fn event_type(&self) -> Option<&str> {
        self.event_type.as_ref().map(Text::as_str)
    }

    pub(super) fn kind(&self) -> Option<&str> {
        self.kind.as_ref().map(Text::as_str)
    }
}

/// Type and metadata of an object, reduced to the fields that are needed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    api_version: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
}

impl<'a> Head<'a> {
    /// Returns `None` if the object has no usable metadata.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str::<Self>(json)
            .ok()
            .filter(|head| head.metadata.is_some())
    }

    pub(super) fn api_version(&self) -> &str {
        self.api_version.as_ref().map_or("", Text::as_str)
    }

    pub(super) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Text::as_str)
    }

    pub(super) fn object(self) -> Identity<'a> {
        let metadata = self.metadata.unwrap_or_default();
        Identity {
            namespace: text(metadata.namespace),
            name: text(metadata.name),
            uid: text(metadata.uid),
            resource_version: text(metadata.resource_version),
        }
    }
}

/// A bookmark, parsed leniently: servers send zero values, nulls, and sometimes almost no object (kube#285,
/// antrea#8140). This is harmless: a bookmark without a version is ignored.
#[derive(Debug, Default)]
pub(super) struct Bookmark {
    pub(super) resource_version: String,
    pub(super) initial_events_end: bool,
}

impl Bookmark {
    pub(super) fn read(json: &str) -> Self {
        #[derive(Deserialize)]
        struct Object {
            metadata: Option<Value>,
        }
        let metadata = serde_json::from_str::<Object>(json)
            .ok()
            .and_then(|object| object.metadata)
            .unwrap_or_default();
        Self {
            resource_version: metadata["resourceVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            // Only the string "true" counts as the end marker (KEP-3157).
            initial_events_end: metadata["annotations"]["k8s.io/initial-events-end"] == "true",
        }
    }
}

/// A string that borrows from the JSON unless it contains escapes.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text; empty if absent.
pub(super) fn text(text: Option<Text<'_>>) -> Cow<'_, str> {
    text.map_or(Cow::Borrowed(""), |text| text.0)
}
