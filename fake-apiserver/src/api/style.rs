//! How the body of an answer is written: JSON, indented JSON, YAML or protobuf, and compressed where it is long.
//!
//! It must not know what the body says. What is decided before, and recorded, is always compact JSON.
//!
//! Source: apiserver `endpoints/handlers/responsewriters/writers.go`.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::model::object::encode_json_indented;

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
        let accepted = request.header("accept-encoding").unwrap_or_default();
        let takes_gzip = accepted
            .split(',')
            .any(|encoding| encoding.split(';').next().unwrap_or_default().trim() == "gzip");
        if request.method != http::Method::GET || !takes_gzip || self.body.len() <= COMPRESSED_ABOVE {
            return self;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let compressed = encoder.write_all(&self.body).and_then(|()| encoder.finish());
        self.body = compressed.expect("writing into memory does not fail").into();
        self.headers.extend([
            ("Content-Encoding".to_owned(), "gzip".to_owned()),
            ("Vary".to_owned(), "Accept-Encoding".to_owned()),
        ]);
        self
    }
}
