//! Encoding of response bodies: JSON, indented JSON, YAML or protobuf, and compression of long ones.
//!
//! It must not know the content. Responses are computed and recorded as compact JSON before they are encoded here.
//!
//! Source: apiserver `endpoints/handlers/responsewriters/writers.go`.

use std::io::Write as _;

use apimachinery::encode::encode_json_indented;
use apimachinery::object::read_back;
use bytes::Bytes;
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use serde_json::{Map, Value};

use super::accept::{self, PROTOBUF, Writing};
use super::{Answer, Header, HttpRequest, JSON, protobuf, yaml};

/// Type of YAML.
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");

/// Maximum length of a body that is never compressed (apiserver `defaultGzipThresholdBytes`).
const COMPRESSED_ABOVE: usize = 128 * 1024;

impl Answer {
    /// Returns the response in the encoding of the request: indented, in YAML, compressed; a Status possibly in protobuf. Not
    /// for watches.
    #[must_use]
    pub fn in_the_style_of(mut self, request: &HttpRequest) -> Self {
        let Some(content_type) = self
            .headers
            .iter_mut()
            .find(|(name, value)| *name == CONTENT_TYPE && *value == JSON)
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
                    content_type.1 = YAML;
                }
                Writing::Protobuf => {
                    self.body = protobuf::encode_status(&value).into();
                    content_type.1 = HeaderValue::from_static(PROTOBUF);
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

/// A list that is encoded while it is sent. The iterator returns its compact JSON in chunks.
pub trait LongList: Iterator<Item = Bytes> {
    /// Returns the list without its items, in the order of the wire, and the key of the empty array for them.
    fn envelope(&self) -> (Map<String, Value>, &'static str);

    /// Returns the next item. A caller uses either items or chunks.
    fn next_item(&mut self) -> Option<Value>;
}

/// Encoding of the items of a long list.
#[derive(Debug)]
enum Items {
    Compact,
    Indented,
    Yaml,
}

/// A long list in the encoding of the request, encoded in chunks, and compressed if the client accepts that.
#[derive(Debug)]
pub struct StyledText<T> {
    text: T,
    items: Items,
    /// Bytes before the items that are not sent yet.
    before: Vec<u8>,
    /// Bytes after the items that are not sent yet.
    after: Vec<u8>,
    /// Whether an item was encoded.
    begun: bool,
    gzip: Option<GzEncoder<Vec<u8>>>,
    /// Whether the compressed stream has ended.
    finished: bool,
}

impl<T: LongList> StyledText<T> {
    /// Returns the encoder and the head of the response; `None` if the encoding needs the whole list, or the request wants no
    /// body.
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
                head.headers = vec![(CONTENT_TYPE, YAML)];
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

    /// Returns the next chunk before compression.
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

/// Returns the bytes before and after the items of an indented list. `None`: it has no place for items, which does not occur.
fn indented_frame((envelope, key): (Map<String, Value>, &str)) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = encode_json_indented(&Value::Object(envelope));
    // Deeper lines are indented further, and strings contain no newline.
    let place = format!("\n  \"{key}\": [");
    let at = text
        .windows(place.len())
        .position(|window| window == place.as_bytes())?;
    let (before, after) = text.split_at(at + place.len());
    Some((before.to_vec(), [b"\n  ", after].concat()))
}

/// Encodes an item of an indented list, with the newline before it.
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

/// Approximate size in bytes of a chunk that is not compact JSON.
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

/// Minimum size in bytes of a compressed chunk.
const COMPRESSED_PIECE: usize = 16 * 1024;

const IN_MEMORY: &str = "writing into memory does not fail";

/// Compresses a text to a member of a gzip stream (RFC 1952).
pub(crate) fn gzip_member(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(text).and_then(|()| encoder.finish());
    compressed.expect(IN_MEMORY).into()
}

/// A member of a compressed watch, which kube-apiserver flushes and then ends (`perFlushGzipWriter` in k8s.io/apiserver 0.37.2,
/// endpoints/handlers/watch.go), framed as Go's `compress/gzip` does it. Every line is flushed, so that a decoder reads it although
/// the member has not ended.
#[derive(Debug)]
pub(crate) struct GzipMember {
    deflate: Compress,
    checksum: Crc,
}

/// Header of a member: deflate, no time, the fastest level, an unknown system.
const MEMBER_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];
/// The empty stored block that closes a member.
const LAST_BLOCK: [u8; 5] = [1, 0, 0, 0xff, 0xff];

impl GzipMember {
    pub(crate) fn new() -> Self {
        Self {
            deflate: Compress::new(Compression::fast(), false),
            checksum: Crc::new(),
        }
    }

    /// Returns a line as part of the member.
    pub(crate) fn line(&mut self, text: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(text.len() / 2 + 64);
        if self.checksum.amount() == 0 {
            out.extend_from_slice(&MEMBER_HEADER);
        }
        self.checksum.update(text);
        let mut rest = text;
        loop {
            let before = self.deflate.total_in();
            let compressed = self.deflate.compress_vec(rest, &mut out, FlushCompress::Sync);
            compressed.expect(IN_MEMORY);
            #[expect(clippy::cast_possible_truncation, reason = "at most the length of a slice")]
            let taken = (self.deflate.total_in() - before) as usize;
            rest = &rest[taken..];
            // A flush is complete when it leaves room.
            if rest.is_empty() && out.len() < out.capacity() {
                return out.into();
            }
            out.reserve(rest.len() / 2 + 64);
        }
    }

    /// Returns the end of the member: an empty last block, checksum and length.
    pub(crate) fn end(self) -> Bytes {
        let (checksum, length) = (self.checksum.sum(), self.checksum.amount());
        let numbers = [checksum.to_le_bytes(), length.to_le_bytes()].concat();
        [&LAST_BLOCK[..], &numbers].concat().into()
    }

    /// Returns a text as a whole member.
    pub(crate) fn whole(text: &[u8]) -> Bytes {
        let mut member = Self::new();
        let line = member.line(text);
        [line, member.end()].concat().into()
    }
}

/// Returns whether the client accepts gzip: `gzip` without a weight, as kube-apiserver compares it.
pub(crate) fn takes_gzip(request: &HttpRequest) -> bool {
    let accepted = request.header(http::header::ACCEPT_ENCODING).unwrap_or_default();
    request.method == http::Method::GET && accepted.split(',').any(|encoding| encoding.trim() == "gzip")
}

/// Returns the headers of a compressed response.
pub(crate) fn gzip_headers() -> [Header; 2] {
    [
        (CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        (VARY, HeaderValue::from_static("Accept-Encoding")),
    ]
}
