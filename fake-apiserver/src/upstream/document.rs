//! Metadata of a JSON document that passes by in chunks: of a list and of its items, or of one object.
//!
//! The document is neither kept nor parsed as a whole: one item at a time is, and its text is kept only on request. A document that is no object has no metadata.

use apimachinery::ObjectRef;
use bytes::Bytes;
use serde::Deserialize;

use super::{Metadata, protobuf};

/// Longest item, in bytes.
const ITEM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest name of a field that matters.
const FIELD_BYTES_MAX: usize = 16;

/// Bytes kept of the beginning: a Status, and the metadata of an object in protobuf.
const BEGINNING_BYTES_MAX: usize = 64 * 1024;

/// What is read of a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ListSummary {
    pub(crate) resource_version: String,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<i64>,
    pub(crate) items: Vec<ObjectRef>,
}

/// A document, as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Document {
    bytes: u64,
    beginning: Vec<u8>,
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The next string of the outermost object is the name of a field.
    expects_field: bool,
    reading_field: bool,
    field: Vec<u8>,
    in_items: bool,
    part: Option<Part>,
    buffer: Vec<u8>,
    complete: bool,
    /// A part is too long, or is not what it should be.
    unreadable: bool,
    metadata: Option<Metadata>,
    /// `None`: there is no field `items` or `rows`.
    items: Option<Vec<ObjectRef>>,
    /// Whether the text of items is kept until [`Document::take_items`].
    pub(crate) keeps_items: bool,
    kept_items: Vec<Bytes>,
}

/// A part that is parsed once it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Metadata,
    Item,
}

/// An item of a list, or a row of a table.
#[derive(Deserialize)]
struct Item {
    metadata: Option<Metadata>,
    object: Option<Box<Item>>,
}

impl Document {
    /// Returns a document of which only the length and the beginning are read.
    pub(crate) fn unread() -> Self {
        Self {
            complete: true,
            ..Self::default()
        }
    }

    /// Reads the next chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let room = BEGINNING_BYTES_MAX - self.beginning.len();
        self.beginning.extend_from_slice(&chunk[..room.min(chunk.len())]);
        if self.unreadable || self.complete {
            return;
        }
        let mut from = self.part.map(|_| 0);
        let mut at = 0;
        while at < chunk.len() {
            if self.in_string {
                at += self.skip_string(&chunk[at..]);
                continue;
            }
            match chunk[at] {
                b'"' => {
                    self.in_string = true;
                    if self.depth == 1 && self.expects_field {
                        self.reading_field = true;
                        self.field.clear();
                    }
                }
                opening @ (b'{' | b'[') => {
                    self.depth += 1;
                    if let Some(part) = self.begins(opening) {
                        self.part = Some(part);
                        from = Some(at);
                    }
                }
                b'}' | b']' => {
                    let Some(depth) = self.depth.checked_sub(1) else {
                        self.unreadable = true;
                        return;
                    };
                    self.depth = depth;
                    if self.ends() {
                        self.keep(&chunk[from.take().unwrap_or(at)..=at]);
                        self.read_part();
                    }
                    self.in_items &= depth > 1;
                    self.complete |= depth == 0;
                }
                b',' if self.depth == 1 => self.expects_field = true,
                b':' if self.depth == 1 => self.expects_field = false,
                _ if self.depth == 0 && !chunk[at].is_ascii_whitespace() => {
                    self.unreadable = true;
                    return;
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(from) = from {
            self.keep(&chunk[from..]);
        }
    }

    /// Returns the text of the items that have become complete since the last call, if they are kept.
    pub(crate) fn take_items(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.kept_items)
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first bytes: of a short document, all of it.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Returns the summary of a complete list; `None` for anything else.
    pub(crate) fn list(&mut self) -> Option<ListSummary> {
        if self.unreadable || !self.complete {
            return None;
        }
        let metadata = self.metadata.take()?;
        Some(ListSummary {
            resource_version: metadata.resource_version,
            continue_token: metadata.continue_token,
            remaining: metadata.remaining_item_count,
            // Go encodes an empty list as null.
            items: self.items.take().unwrap_or_default(),
        })
    }

    /// Returns the identity of an object with a version, in JSON or protobuf; `None` for anything else.
    pub(crate) fn object(&mut self) -> Option<ObjectRef> {
        let metadata = match self.metadata.take() {
            Some(metadata) if !self.unreadable => metadata,
            Some(_) | None => protobuf::metadata(&self.beginning)?,
        };
        let is_object = !metadata.resource_version.is_empty() && !metadata.name.is_empty();
        is_object.then(|| metadata.object_ref())
    }

    /// Moves on in a string, at most to its end. Returns the number of bytes.
    fn skip_string(&mut self, rest: &[u8]) -> usize {
        if std::mem::take(&mut self.escaped) {
            return 1;
        }
        let stop = memchr::memchr2(b'"', b'\\', rest);
        if self.reading_field {
            let room = FIELD_BYTES_MAX.saturating_sub(self.field.len());
            let name = &rest[..stop.unwrap_or(rest.len())];
            self.field.extend_from_slice(&name[..room.min(name.len())]);
        }
        let Some(stop) = stop else { return rest.len() };
        if rest[stop] == b'\\' {
            self.escaped = true;
        } else {
            self.in_string = false;
            self.reading_field = false;
        }
        stop + 1
    }

    /// An object or array begins. Returns the part that begins with it.
    fn begins(&mut self, opening: u8) -> Option<Part> {
        match (self.depth, opening) {
            (1, b'{') => self.expects_field = true,
            (2, b'{') if self.field == b"metadata" => return Some(Part::Metadata),
            (2, b'[') if self.field == b"items" || self.field == b"rows" => {
                self.in_items = true;
                self.items.get_or_insert_default();
            }
            (3, b'{') if self.in_items => return Some(Part::Item),
            _ => {}
        }
        None
    }

    /// Whether the part ends with the object that has just ended.
    fn ends(&self) -> bool {
        match self.part {
            Some(Part::Metadata) => self.depth == 1,
            Some(Part::Item) => self.depth == 2,
            None => false,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > ITEM_BYTES_MAX {
            self.unreadable = true;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn read_part(&mut self) {
        let read = match self.part.take() {
            Some(Part::Metadata) => {
                self.metadata = serde_json::from_slice(&self.buffer).ok();
                self.metadata.is_some()
            }
            Some(Part::Item) => {
                let item: Option<Item> = serde_json::from_slice(&self.buffer).ok();
                if self.keeps_items {
                    self.kept_items.push(Bytes::copy_from_slice(&self.buffer));
                }
                let metadata = item.and_then(|item| item.metadata.or_else(|| item.object?.metadata));
                let items = self.items.get_or_insert_default();
                metadata
                    .map(|metadata| items.push(metadata.object_ref()))
                    .is_some()
            }
            None => true,
        };
        self.unreadable |= !read;
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":2},
        "items":[{"metadata":{"name":"a\"}]","namespace":"n","uid":"u","resourceVersion":"7","labels":{"items":"[{"}},"spec":{"items":[{"metadata":{}}]}},
        {"metadata":{"name":"b","uid":"v","resourceVersion":"8"}}]}"#;

    fn read(chunks: &[&str]) -> Document {
        let mut document = Document::default();
        for chunk in chunks {
            document.push(chunk.as_bytes());
        }
        document
    }

    fn shown(list: &ListSummary) -> String {
        let items = list
            .items
            .iter()
            .map(|item| format!("{}@{}", item.key, item.resource_version));
        let items: Vec<String> = items.collect();
        format!(
            "{} {} {:?} {}",
            list.resource_version,
            list.continue_token,
            list.remaining,
            items.join(" ")
        )
    }

    #[test]
    fn a_list_is_the_same_however_it_is_cut() {
        let expected = "9 c Some(2) n/a\"}]@7 b@8";
        assert_eq!(shown(&read(&[LIST]).list().expect("a list")), expected);
        for at in 1..LIST.len() {
            let (left, right) = LIST.split_at(at);
            assert_eq!(
                shown(&read(&[left, right]).list().expect("a list")),
                expected,
                "cut at {at}"
            );
            assert_eq!(read(&[left]).list(), None, "cut off at {at}");
        }
    }

    #[test]
    fn tables_empty_lists_and_metadata_behind_the_items_are_read() {
        for (text, expected) in [
            (r#"{"metadata":{"resourceVersion":"3"},"items":null}"#, "3  None "),
            (r#"{"items":[],"metadata":{"resourceVersion":"3"}}"#, "3  None "),
            (
                r#"{"kind":"Table","metadata":{"resourceVersion":"3"},"rows":[{"cells":["a",{"x":1}],"object":{"metadata":{"name":"a","resourceVersion":"2"}}}]}"#,
                "3  None a@2",
            ),
        ] {
            assert_eq!(shown(&read(&[text]).list().expect(text)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_document_has_no_metadata() {
        for text in [
            "",
            "<html>",
            "]",
            "[]",
            "{}",
            r#"{"metadata":7}"#,
            r#"{"metadata":{"name":7}}"#,
            "\"a\"",
            "{\"metadata\":{",
        ] {
            let mut document = read(&[text]);
            assert_eq!(document.list(), None, "{text}");
            assert_eq!(document.object(), None, "{text}");
        }
    }

    #[test]
    fn an_object_has_an_identity() {
        let mut pod = read(&[r#"{"kind":"Pod","metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#]);
        assert_eq!(pod.object().expect("an object").resource_version, "7");
        let mut status = read(&[r#"{"kind":"Status","metadata":{},"code":404}"#]);
        assert_eq!(status.object(), None);
    }

    #[test]
    fn a_long_item_makes_it_unreadable_and_is_not_kept() {
        let mut document = read(&[r#"{"metadata":{},"items":[{"a":""#]);
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..=ITEM_BYTES_MAX / chunk.len() {
            document.push(&chunk);
        }
        assert!(document.unreadable && document.buffer.is_empty());
        assert_eq!(document.beginning().len(), BEGINNING_BYTES_MAX);
    }
}
