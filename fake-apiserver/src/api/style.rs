//! How the body of an answer is written: JSON, indented JSON, YAML or protobuf, and compressed where it is long.
//!
//! It must not know what the body says. What is decided before, and recorded, is always compact JSON.
//!
//! Source: apiserver `endpoints/handlers/responsewriters/writers.go`.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::model::encode::encode_json_indented;

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
            && let Ok(value) = serde_json::from_slice::<Value>(&self.body)
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

/// A long JSON text, made piece by piece and compressed where the request takes that.
#[derive(Debug)]
pub struct StyledText<T> {
    text: T,
    /// `None` too once it is finished.
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl<T: Iterator<Item = Bytes>> StyledText<T> {
    /// The text, and the head it is answered with; `None` where the request wants it in a style that takes the whole
    /// text, and where it wants no body.
    pub fn new(text: T, request: &HttpRequest) -> Option<(Self, Answer)> {
        if request.method != http::Method::GET || accept::writing(request) != Writing::Json {
            return None;
        }
        let mut head = Answer::json(200, Bytes::new());
        let gzip = takes_gzip(request).then(|| GzEncoder::new(Vec::new(), Compression::fast()));
        if gzip.is_some() {
            head.headers.extend(gzip_headers());
        }
        Some((Self { text, gzip }, head))
    }
}

impl<T: Iterator<Item = Bytes>> Iterator for StyledText<T> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let Some(encoder) = &mut self.gzip else {
            return self.text.next();
        };
        while encoder.get_ref().len() < COMPRESSED_PIECE {
            let Some(piece) = self.text.next() else {
                let rest = self.gzip.take().map(GzEncoder::finish);
                return rest.map(|rest| rest.expect(IN_MEMORY).into());
            };
            encoder.write_all(&piece).expect(IN_MEMORY);
        }
        Some(std::mem::take(encoder.get_mut()).into())
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
