//! Codec of continue tokens, in the format of kube-apiserver (`storage/continue.go`), so that clients and tools that decode
//! tokens can read them.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::encode::encode_json;
use crate::go_text;

/// The only version of the format.
const VERSION: &str = "meta.k8s.io/v1";

/// Go's decoder ignores trailing bits in the last character.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Position of the next page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// Revision of all pages; negative: the newest revision (inconsistent continuation).
    pub revision: i64,
    /// First possible key of the next page, relative to the collection, with or without a leading `/`.
    pub start: String,
}

impl ContinueToken {
    /// Returns the token for the rest of a list at `revision` whose last key, relative to the collection, was `last_key`.
    /// Tokens of pages served by the watch cache have a leading `/`, those from etcd do not.
    pub fn after(revision: u64, last_key: &str, cached: bool) -> Self {
        let slash = if cached { "/" } else { "" };
        let revision = i64::try_from(revision).expect("revisions count writes, from far below the limit");
        Self {
            revision,
            start: format!("{slash}{last_key}\0"),
        }
    }

    /// Returns the token that continues at the same key, at the newest revision of that time.
    pub fn inconsistent(&self) -> Self {
        Self {
            revision: -1,
            start: self.start.trim_start_matches('/').to_owned(),
        }
    }

    /// Returns the first possible key of the next page, relative to the collection.
    pub fn start_key(&self) -> &str {
        self.start.strip_prefix('/').unwrap_or(&self.start)
    }

    /// Encodes the token.
    pub fn encode(&self) -> String {
        let start = encode_json(self.start.as_str());
        let mut json = format!("{{\"v\":\"{VERSION}\",\"rv\":{},\"start\":", self.revision).into_bytes();
        json.extend_from_slice(&start);
        json.push(b'}');
        BASE64.encode(json)
    }

    /// Decodes a token. The error is the message of kube-apiserver without `invalid continue token: `.
    pub fn decode(text: &str) -> Result<Self, String> {
        let broken = |what: String| format!("continue key is not valid: {what}");
        let bytes = BASE64.decode(text).map_err(|_| {
            broken(format!(
                "illegal base64 data at input byte {}",
                illegal_byte(text)
            ))
        })?;
        let json: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| broken(go_text::json_error(&bytes, &error)))?;
        let field = |name: &str| json.get(name).cloned().unwrap_or_default();
        let version = field("v").as_str().unwrap_or_default().to_owned();
        if version != VERSION {
            return Err(broken(format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        let revision = field("rv").as_i64().unwrap_or_default();
        if revision == 0 {
            return Err(broken(format!(
                "incorrect encoded start resourceVersion (version {VERSION})"
            )));
        }
        let start = field("start").as_str().unwrap_or_default().to_owned();
        if start.is_empty() {
            return Err(broken(format!("encoded start key empty (version {VERSION})")));
        }
        // A start key that would leave the collection is rejected.
        let rooted = if start.starts_with('/') {
            start.clone()
        } else {
            format!("/{start}")
        };
        if rooted.split('/').any(|part| matches!(part, ".." | ".")) || rooted.contains("//") {
            return Err(broken(start));
        }
        Ok(Self { revision, start })
    }
}

/// Returns the offset that Go reports: the first byte outside the alphabet, or a single byte left over at the end.
fn illegal_byte(text: &str) -> usize {
    text.bytes()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')))
        .unwrap_or_else(|| text.len().saturating_sub(1))
}
