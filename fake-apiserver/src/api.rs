//! What was asked, and the bodies of refusals.

use bytes::Bytes;

use crate::model::catalog::Catalog;
use crate::scenario::Version;

pub mod document;
pub mod request;
pub mod status;

pub use document::Document;
pub use request::{
    Collection, Form, GetRequest, ListRequest, Request, RequestedVersion, VersionMatch, WatchRequest,
};
pub use status::{Cause, Details, Status};

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

/// An answer that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, but for `Date`, framing and the ones every answer has ([`common_headers`]).
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Turns a request into a legal one, or into the whole truthful refusal.
pub fn parse(request: &HttpRequest, catalog: &Catalog, version: Version) -> Result<Request, Answer> {
    let _ = (request, catalog, version);
    Err(Status::default().into_answer())
}

/// Which option rules of the API a request breaks, in words (INV-15). Empty for a legal one.
pub fn violations(
    method: &http::Method,
    path: &str,
    query: &[(String, String)],
    version: Version,
) -> Vec<String> {
    let _ = (method, path, query, version);
    Vec::new()
}

/// The query's parameters, decoded, in the order sent.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    let _ = query;
    Vec::new()
}

/// The headers every answer has (but `Date`): `Audit-Id` (echoed, or made from `nth`), `Cache-Control` and the
/// flow-control uids.
pub fn common_headers(request: &HttpRequest, nth: u64) -> Vec<(String, String)> {
    let _ = (request, nth);
    Vec::new()
}

/// The head of a watch, beside [`common_headers`].
pub fn watch_headers() -> Vec<(String, String)> {
    vec![("Content-Type".to_owned(), "application/json".to_owned())]
}

/// A body of JSON: a page, an object.
pub fn ok(body: Bytes) -> Answer {
    Answer {
        status: 200,
        headers: watch_headers(),
        body,
    }
}
