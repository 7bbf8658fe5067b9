//! One page of a list on the wire: envelope, items, and chunks while it is sent.
//!
//! It must not know the selection of the items (`list`).

use std::sync::Arc;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::encode::encode_json;
use apimachinery::kind::KindRef;
use apimachinery::object::{Stored, decode};
use apimachinery::options::Representation;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::table;
use crate::api::LongList;

/// Size of the items, in bytes, above which a page is encoded piecemeal.
const LONG: usize = 1024 * 1024;

/// Approximate size of a piece, in bytes.
const PIECE: usize = 64 * 1024;

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// Kind of the items.
    pub kind: KindRef,
    /// Representation of the items.
    pub form: Representation,
    /// `metadata.resourceVersion`; 0: none, because the kind is not stored.
    pub resource_version: u64,
    /// `metadata.continue`.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// The items, in order.
    pub items: Vec<Arc<Stored>>,
    /// Kubernetes version whose printer columns apply, for a table.
    pub version: Version,
    /// Time of the read, from which ages are counted.
    pub read_at: Duration,
}

impl Page {
    /// Encodes the body, with its newline.
    pub fn encode(&self) -> Bytes {
        if let Representation::Table(table) = self.form {
            let mut out = table::page(self, table, &self.metadata());
            out.push(b'\n');
            return out.into();
        }
        let (before, after) = self.frame();
        let items = self.items.iter().map(|item| item.encoded(self.form).len() + 1);
        let mut out = Vec::with_capacity(before.len() + items.sum::<usize>() + after.len());
        out.extend_from_slice(&before);
        for index in 0..self.items.len() {
            self.write_item(index, &mut out);
        }
        out.extend_from_slice(&after);
        out.into()
    }

    /// Returns whether it is large enough to be encoded while it is sent.
    pub fn is_long(&self) -> bool {
        self.items.iter().map(|item| item.length()).sum::<usize>() > LONG
    }

    /// Returns the bytes of [`Page::encode`] piecemeal.
    pub fn into_text(self) -> PageText {
        let printer = match self.form {
            Representation::Table(table) => {
                Some(table::Printer::new(&self.kind, table, self.version, self.read_at))
            }
            Representation::Full | Representation::Metadata(_) => None,
        };
        let (before, after) = match &printer {
            Some(printer) => (printer.begin(&self.metadata(), true), b"]}\n".to_vec()),
            None => self.frame(),
        };
        PageText {
            page: self,
            printer,
            written: 0,
            out: before,
            after,
        }
    }

    /// Returns the list as JSON in the key order of the wire, for a script that edits it; [`encode_json`] and a newline make
    /// it a body.
    pub fn to_json(&self) -> Value {
        if let Representation::Table(_) = self.form {
            return decode(&self.encode());
        }
        let mut list = self.envelope();
        list.insert(
            "items".to_owned(),
            self.items.iter().map(|item| item.item_json(self.form)).collect(),
        );
        Value::Object(list)
    }

    fn metadata(&self) -> Map<String, Value> {
        let custom = self.kind.custom && self.form == Representation::Full;
        let mut metadata = Map::new();
        if self.resource_version > 0 {
            let version = self.resource_version.to_string();
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        match &self.continue_token {
            Some(token) => drop(metadata.insert("continue".to_owned(), token.as_str().into())),
            // An unstructured list has the key even if it is empty.
            None if custom => drop(metadata.insert("continue".to_owned(), "".into())),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        metadata
    }

    /// Returns the list with empty `items`.
    fn envelope(&self) -> Map<String, Value> {
        let custom = self.kind.custom && self.form == Representation::Full;
        let metadata = self.metadata();
        let (kind, api_version) = match self.form {
            Representation::Full | Representation::Table(_) => {
                (self.kind.list_kind.to_string(), self.kind.api_version())
            }
            Representation::Metadata(version) => (
                "PartialObjectMetadataList".to_owned(),
                version.api_version().to_owned(),
            ),
        };
        let mut list = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": [] });
        if custom {
            list.sort_all_objects();
        }
        match list {
            Value::Object(list) => list,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        }
    }

    /// Returns the bytes before and after the items.
    fn frame(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut out = &mut before;
        for (index, (key, value)) in self.envelope().iter().enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            out.extend_from_slice(&encode_json(key));
            out.push(b':');
            if key != "items" {
                out.extend_from_slice(&encode_json(value));
                continue;
            }
            if matches!(self.form, Representation::Metadata(_)) && self.items.is_empty() {
                // A nil slice in Go.
                out.extend_from_slice(b"null");
            } else {
                out.push(b'[');
                out = &mut after;
                out.push(b']');
            }
        }
        out.extend_from_slice(b"}\n");
        (before, after)
    }

    fn write_item(&self, index: usize, out: &mut Vec<u8>) {
        if index > 0 {
            out.push(b',');
        }
        self.items[index].write_item(self.form, out);
    }
}

/// A page that is encoded piecemeal.
#[derive(Debug)]
pub struct PageText {
    page: Page,
    /// For a table.
    printer: Option<table::Printer>,
    /// Number of encoded items.
    written: usize,
    /// Encoded bytes that are not sent yet.
    out: Vec<u8>,
    after: Vec<u8>,
}

impl Iterator for PageText {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.out.len() < PIECE && self.written < self.page.items.len() {
            match &self.printer {
                None => self.page.write_item(self.written, &mut self.out),
                Some(printer) => {
                    if self.written > 0 {
                        self.out.push(b',');
                    }
                    printer.stored(&self.page.items[self.written], self.page.form, &mut self.out);
                }
            }
            self.written += 1;
        }
        if self.written == self.page.items.len() {
            self.out.append(&mut self.after);
        }
        let piece = std::mem::take(&mut self.out);
        (!piece.is_empty()).then(|| piece.into())
    }
}

impl LongList for PageText {
    fn envelope(&self) -> (Map<String, Value>, &'static str) {
        let Some(printer) = &self.printer else {
            return (self.page.envelope(), "items");
        };
        let mut empty = printer.begin(&self.page.metadata(), true);
        empty.extend_from_slice(b"]}");
        match decode(&empty) {
            Value::Object(table) => (table, "rows"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                (Map::new(), "rows")
            }
        }
    }

    fn next_item(&mut self) -> Option<Value> {
        let item = self.page.items.get(self.written)?;
        self.written += 1;
        let Some(printer) = &self.printer else {
            return Some(item.item_json(self.page.form));
        };
        let mut row = Vec::new();
        printer.stored(item, self.page.form, &mut row);
        Some(decode(&row))
    }
}
