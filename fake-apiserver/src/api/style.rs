//! How the body of an answer is written: JSON, indented JSON, YAML or protobuf, and compressed where it is long.
//!
//! It must not know what the body says. What is decided before, and recorded, is always compact JSON.
//!
//! Source: apiserver `endpoints/handlers/responsewriters/writers.go`.

use std::io::Write as _;

use apimachinery::encode::encode_json_indented;
use apimachinery::object::read_back;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};

use super::accept::{self, PROTOBUF, Writing};
use super::{Answer, HttpRequest, protobuf, yaml};

/// Bodies up to this long are never compressed (apiserver `defaultGzipThresholdBytes`).
const COMPRESSED_ABOVE: usize = 128 * 1024;

impl Answer {
    /// The same answer, written as the request wants it: indented, in YAML, compressed; a Status perhaps in protobuf.
    /// Never for watches.
    #[must_use]
    pub fn in_the_style_of(mut self, request: &HttpRequest) -> Self {
        let Some(content_type) = self
            .headers
            .iter_mut()
            .find(|(name, value)| name == "Content-Type" && value == "application/json")
        else {
            return self;
        };
        let writing = if self.status >= 400 {
            accept::status_writing(request)
        } else {
            accept::writing(request)
        };
        if writing != Writing::Json
            && let Ok(value) = read_back(&self.body)
        {
            match writing {
                Writing::Json => {}
                Writing::Indented => self.body = encode_json_indented(&value).into(),
                Writing::Yaml => {
                    self.body = yaml::encode(&value).into();
                    "application/yaml".clone_into(&mut content_type.1);
                }
                Writing::Protobuf => {
                    self.body = protobuf::encode_status(&value).into();
                    PROTOBUF.clone_into(&mut content_type.1);
                }
            }
        }
        self.compressed_for(request)
    }

    fn compressed_for(mut self, request: &HttpRequest) -> Self {
        if !takes_gzip(request) || self.body.len() <= COMPRESSED_ABOVE {
            return self;
        }
        self.body = gzip_member(&self.body);
        self.headers.extend(gzip_headers());
        self
    }
}

/// A list that is written while it leaves. As an iterator it gives its compact JSON, in pieces.
pub trait LongList: Iterator<Item = Bytes> {
    /// The list without its items, in the order of the wire, and the key of the empty array that they belong into.
    fn envelope(&self) -> (Map<String, Value>, &'static str);

    /// The next item. Items and pieces are never mixed.
    fn next_item(&mut self) -> Option<Value>;
}

/// How the items of a long list are written.
#[derive(Debug)]
enum Items {
    Compact,
    Indented,
    Yaml,
}

/// A long list, made piece by piece, as the request wants it written, and compressed where the request takes that.
#[derive(Debug)]
pub struct StyledText<T> {
    text: T,
    items: Items,
    /// What stands before the items and is not taken yet.
    before: Vec<u8>,
    /// What stands behind them and is not taken yet.
    after: Vec<u8>,
    /// Was an item written?
    begun: bool,
    gzip: Option<GzEncoder<Vec<u8>>>,
    /// The compressed text came to its end.
    finished: bool,
}

impl<T: LongList> StyledText<T> {
    /// The text, and the head it is answered with; `None` where the request wants it in a style that takes the whole
    /// text, and where it wants no body.
    pub fn new(text: T, request: &HttpRequest) -> Option<(Self, Answer)> {
        if request.method != http::Method::GET {
            return None;
        }
        let mut head = Answer::json(200, Bytes::new());
        let (items, (before, after)) = match accept::writing(request) {
            Writing::Protobuf => return None,
            Writing::Json => (Items::Compact, (Vec::new(), Vec::new())),
            Writing::Indented => (Items::Indented, indented_frame(text.envelope())?),
            Writing::Yaml => {
                let yaml = ("Content-Type".to_owned(), "application/yaml".to_owned());
                head.headers = vec![yaml];
                (Items::Yaml, yaml::frame(text.envelope()))
            }
        };
        let gzip = takes_gzip(request).then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        if gzip.is_some() {
            head.headers.extend(gzip_headers());
        }
        let styled = Self {
            text,
            items,
            before,
            after,
            begun: false,
            gzip,
            finished: false,
        };
        Some((styled, head))
    }

    /// The next piece, before it is compressed.
    fn next_piece(&mut self) -> Option<Bytes> {
        if matches!(self.items, Items::Compact) {
            return self.text.next();
        }
        let mut out = std::mem::take(&mut self.before);
        while out.len() < PIECE {
            let Some(item) = self.text.next_item() else {
                out.append(&mut self.after);
                break;
            };
            match self.items {
                Items::Compact => {}
                Items::Indented => {
                    if self.begun {
                        out.push(b',');
                    }
                    indented_item(&item, &mut out);
                }
                Items::Yaml => out.extend_from_slice(&yaml::item(&item)),
            }
            self.begun = true;
        }
        (!out.is_empty()).then(|| out.into())
    }
}

/// What stands before and behind the items of an indented list. `None`: there is no place for them, and never is.
fn indented_frame((envelope, key): (Map<String, Value>, &str)) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = encode_json_indented(&Value::Object(envelope));
    // Below the first level lines are indented further, and no text holds a newline.
    let place = format!("\n  \"{key}\": [");
    let at = text
        .windows(place.len())
        .position(|window| window == place.as_bytes())?;
    let (before, after) = text.split_at(at + place.len());
    Some((before.to_vec(), [b"\n  ", after].concat()))
}

/// An item below the key of an indented list, with the newline before it.
fn indented_item(item: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(ITEM_INDENT);
    for byte in encode_json_indented(item) {
        match byte {
            b'\n' => out.extend_from_slice(ITEM_INDENT),
            byte => out.push(byte),
        }
    }
}

const ITEM_INDENT: &[u8] = b"\n    ";

/// Bytes of a piece of a text that is not compact, about.
const PIECE: usize = 64 * 1024;

impl<T: LongList> Iterator for StyledText<T> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        if self.gzip.is_none() {
            return self.next_piece();
        }
        loop {
            let encoder = self.gzip.as_mut()?;
            if encoder.get_ref().len() >= COMPRESSED_PIECE {
                return Some(std::mem::take(encoder.get_mut()).into());
            }
            let Some(piece) = self.next_piece() else {
                let rest = self.gzip.take().map(GzEncoder::finish);
                self.finished = true;
                return rest.map(|rest| rest.expect(IN_MEMORY).into());
            };
            let encoder = self.gzip.as_mut()?;
            encoder.write_all(&piece).expect(IN_MEMORY);
        }
    }
}

/// Bytes of a piece of a compressed text, at least.
const COMPRESSED_PIECE: usize = 16 * 1024;

const IN_MEMORY: &str = "writing into memory does not fail";

/// The text as one member of a gzip stream (RFC 1952).
pub(crate) fn gzip_member(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(text).and_then(|()| encoder.finish());
    compressed.expect(IN_MEMORY).into()
}

/// Does the request offer to read gzip?
pub(crate) fn takes_gzip(request: &HttpRequest) -> bool {
    let accepted = request.header("accept-encoding").unwrap_or_default();
    request.method == http::Method::GET
        && accepted
            .split(',')
            .any(|encoding| encoding.split(';').next().unwrap_or_default().trim() == "gzip")
}

/// What the head of a compressed answer says of it.
pub(crate) fn gzip_headers() -> [(String, String); 2] {
    [
        ("Content-Encoding".to_owned(), "gzip".to_owned()),
        ("Vary".to_owned(), "Accept-Encoding".to_owned()),
    ]
}
