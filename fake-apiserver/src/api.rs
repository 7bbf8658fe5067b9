//! What was asked, and the bodies of refusals.

use bytes::Bytes;

/// A request as it came off the wire.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: http::Method,
    /// Path, still percent-encoded.
    pub path: String,
    /// Query, still percent-encoded, without the `?`; empty if there was none.
    pub query: String,
    /// Headers.
    pub headers: http::HeaderMap,
    /// The whole body, bounded by the edge.
    pub body: Bytes,
}
