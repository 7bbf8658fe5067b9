//! Errors from the server: one `Status` type for JSON, HTML, plain text and empty bodies, and the single definition
//! of "expired".
//!
//! Not kube's type: kube's defaults every field, so any JSON object passes for a Status and the HTTP code is lost.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// An error response, or the object of an `ERROR` event.
///
/// Source: `meta/v1 Status`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// `code`; the HTTP status if the body has none, 0 if there is neither.
    pub code: u16,
    /// `reason`, empty where absent.
    pub reason: String,
    /// `message`, or the start of a body that is not a Status.
    pub message: String,
    /// `details.retryAfterSeconds`.
    pub retry_after: Option<Duration>,
    /// `details.causes`, reduced to reason and message.
    pub causes: Vec<StatusCause>,
}

/// A cause in a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusCause {
    /// Machine-readable reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

impl Status {
    /// Returns true if the resourceVersion or continue token is too old: code 410, or reason `Expired` or `Gone` with
    /// any code.
    ///
    /// Source: client-go `isExpiredError`; servers that send the reason without the code exist (linkerd2#1649).
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(self.reason.as_str(), "Expired" | "Gone")
    }

    /// Returns true if the resourceVersion is ahead of the server, in any of the three forms that servers have used.
    ///
    /// Source: client-go `isTooLargeResourceVersionError`; kubernetes#91073, #94315.
    pub fn is_too_large_resource_version(&self) -> bool {
        const WORDS: &str = "Too large resource version";
        self.causes
            .iter()
            .any(|cause| cause.reason == "ResourceVersionTooLarge" || cause.message.contains(WORDS))
            || self.message.contains(WORDS)
    }

    /// Returns true if the server is busy or temporarily unavailable and the request itself was valid.
    pub fn is_transient(&self) -> bool {
        self.code == 429 || (500..600).contains(&self.code) || self.reason == "TooManyRequests"
    }

    /// Returns true if a corrupt object was deleted and its last state is unknown: only a LIST shows what is left.
    ///
    /// Source: KEP-3926; client-go `TestReflectorReplacesStoreOnUnsafeDelete`.
    pub fn is_storage_read_error(&self) -> bool {
        self.reason == "StorageReadError"
    }

    /// Parses a body as a Status. Any other body becomes a Status with this HTTP code and the start of the text as
    /// message, so the code is never lost.
    pub fn from_body(http: u16, body: &[u8]) -> Self {
        if let Some(mut status) = serde_json::from_slice::<Wire>(body)
            .ok()
            .filter(Wire::looks_real)
            .map(Self::from)
        {
            if status.code == 0 {
                status.code = http;
            }
            return status;
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(MESSAGE_BYTES_MAX)]);
        Self {
            code: http,
            message: text.trim().to_owned(),
            ..Self::default()
        }
    }

    /// Parses the object of an `ERROR` event. Anything but a Status becomes an empty one: a fault of the stream.
    pub(crate) fn from_error_event(json: Option<&str>) -> Self {
        json.and_then(|json| serde_json::from_str::<Wire>(json).ok())
            .filter(|wire| wire.kind.as_deref().is_none_or(|kind| kind == "Status"))
            .map_or_else(
                || Self {
                    message: "an ERROR event without a Status".to_owned(),
                    ..Self::default()
                },
                Self::from,
            )
    }

    /// Parses an object if it is a Status: by its kind, or by `"status":"Failure"`.
    pub(crate) fn from_object(json: &str) -> Option<Self> {
        serde_json::from_str::<Wire>(json)
            .ok()
            .filter(Wire::looks_real)
            .map(Self::from)
    }
}

/// Enough of an error page to recognise it, without flooding a log.
const MESSAGE_BYTES_MAX: usize = 256;

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Status {}

/// Wire format; any field may be missing or null.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    kind: Option<String>,
    status: Option<String>,
    code: Option<i64>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<WireDetails>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDetails {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<WireCause>>,
}

#[derive(Deserialize)]
struct WireCause {
    reason: Option<String>,
    message: Option<String>,
}

impl Wire {
    /// Handler timeouts lack kind and apiVersion, so `"status":"Failure"` is sufficient.
    fn looks_real(&self) -> bool {
        match self.kind.as_deref() {
            Some(kind) => kind == "Status",
            None => self.status.as_deref() == Some("Failure"),
        }
    }
}

impl From<Wire> for Status {
    fn from(wire: Wire) -> Self {
        let (retry_after, causes) = match wire.details {
            Some(details) => (
                details
                    .retry_after_seconds
                    .filter(|seconds| *seconds > 0)
                    .map(Duration::from_secs),
                details.causes.unwrap_or_default(),
            ),
            None => (None, Vec::new()),
        };
        Self {
            code: wire.code.and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            reason: wire.reason.unwrap_or_default(),
            message: wire.message.unwrap_or_default(),
            retry_after,
            causes: causes
                .into_iter()
                .map(|cause| StatusCause {
                    reason: cause.reason.unwrap_or_default(),
                    message: cause.message.unwrap_or_default(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::reason_and_code(410, r#"{"kind":"Status","reason":"Expired","code":410}"#, true)]
    #[case::reason_gone(200, r#"{"kind":"Status","reason":"Gone"}"#, true)]
    #[case::reason_without_code(410, r#"{"kind":"Status","reason":"Expired","code":0}"#, true)]
    #[case::no_reason(410, r#"{"kind":"Status","code":410}"#, true)]
    #[case::plain_text(410, "gone away", true)]
    #[case::empty(410, "", true)]
    #[case::other_json(410, r#"{"error":"gone"}"#, true)]
    #[case::forbidden(403, r#"{"kind":"Status","reason":"Forbidden","code":403}"#, false)]
    fn expired_is_recognised_by_code_or_reason(#[case] http: u16, #[case] body: &str, #[case] expired: bool) {
        assert_eq!(Status::from_body(http, body.as_bytes()).is_expired(), expired);
    }

    #[rstest]
    #[case::cause(r#"{"kind":"Status","code":504,"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#)]
    #[case::cause_message(
        r#"{"kind":"Status","code":504,"details":{"causes":[{"message":"Too large resource version"}]}}"#
    )]
    #[case::message(
        r#"{"kind":"Status","code":504,"message":"Timeout: Too large resource version: 9, current: 1"}"#
    )]
    #[case::text("Too large resource version: 9")]
    fn too_large_is_recognised_in_every_form(#[case] body: &str) {
        let status = Status::from_body(504, body.as_bytes());
        assert!(status.is_too_large_resource_version());
        assert!(!status.is_expired());
    }

    #[rstest]
    #[case(r#"{"error":"bad gateway"}"#)]
    #[case("<html>bad gateway</html>")]
    #[case("")]
    #[case("[1,2]")]
    #[case(r#"{"kind":"Status"}"#)]
    fn the_http_code_survives_any_body(#[case] body: &str) {
        assert_eq!(Status::from_body(502, body.as_bytes()).code, 502);
    }

    #[test]
    fn retry_after_is_read_from_the_details() {
        let status = Status::from_body(
            429,
            br#"{"kind":"Status","details":{"retryAfterSeconds":7,"causes":null},"metadata":null}"#,
        );
        assert_eq!(
            (status.code, status.retry_after),
            (429, Some(Duration::from_secs(7)))
        );
    }
}
