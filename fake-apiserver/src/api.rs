//! Requests and responses of the API: method, path, query and headers are parsed into a valid [`Request`], or the response of
//! kube-apiserver to an invalid one.
//!
//! The store is not read: errors returned here are the same for any content.

use apimachinery::go_text;
use apimachinery::kind::{ApiResource, Deletion, Review, Text};
use apimachinery::path::ResourcePath;
use builtin_kinds::catalog;
use builtin_kinds::catalog::Catalog;
use bytes::Bytes;
use http::Method;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};

mod accept;
pub mod access;
pub(crate) mod body;
pub mod document;
pub(crate) mod options;
mod path;
pub(crate) mod protobuf;
mod query;
mod reads;
pub mod request;
mod style;
mod warnings;
pub mod websocket;
pub mod write;
mod yaml;
mod yaml_keys;

#[cfg(test)]
mod tests;

use accept::Shape;
pub use access::{Access, User};
pub use apimachinery::BODY_BYTES_MAX;
pub use apimachinery::options::{
    Collection, GetRequest, ListRequest, MetaVersion, Representation, RequestedVersion, RowObject,
    TableOptions, VersionMatch, WatchRequest,
};
pub use apimachinery::path::decoded_path;
pub use apimachinery::status::{Cause, Details, Status};
pub use apimachinery::write::Subresource;
pub use builtin_kinds::published;
pub use document::Document;
use options::truthy;
use path::Route;
pub use query::Query;
use reads::{read_collection, read_object, read_unstored};
pub use request::{ConnectRequest, Connection, Request, ReviewRequest};
pub(crate) use style::{GzipMember, gzip_headers, takes_gzip};
pub use style::{LongList, StyledText};
pub use warnings::{warning, warnings};
pub use write::WriteRequest;

/// A request as received.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// HTTP method.
    pub method: Method,
    /// Path, still percent-encoded.
    pub path: String,
    /// Query, without the `?`; empty if there was none.
    pub query: Query,
    /// Headers.
    pub headers: http::HeaderMap,
    /// The whole body; its length is limited by the caller.
    pub body: Bytes,
}

impl HttpRequest {
    /// Returns the header as text; `None` if it is not UTF-8.
    fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        let value = self.headers.get(name)?;
        std::str::from_utf8(value.as_bytes()).ok()
    }
}

/// Name and value of a header of a response.
pub type Header = (HeaderName, HeaderValue);

/// Type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Type of text.
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Prevents that a browser guesses another type.
pub(crate) const NO_SNIFF: Header = (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

/// Responses that depend on the requested type.
pub(crate) const VARY_ACCEPT: Header = (VARY, HeaderValue::from_static("Accept"));

/// Parses a header. Whitespace around a value is no part of it (RFC 9110, 5.5). `None`, which is logged: it cannot be sent.
pub(crate) fn header(name: &str, value: &str) -> Option<Header> {
    let value = HeaderValue::try_from(value.trim_matches([' ', '\t']));
    match (HeaderName::try_from(name), value) {
        (Ok(name), Ok(value)) => Some((name, value)),
        (Ok(_), Err(_)) | (Err(_), _) => {
            tracing::error!(name, "no HTTP header; left out");
            None
        }
    }
}

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers, except `Date`, framing and those of every response ([`common_headers`]). An empty value suppresses the
    /// default header.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Returns a response with JSON.
    pub fn json(status: u16, body: Bytes) -> Self {
        Self {
            status,
            headers: vec![(CONTENT_TYPE, JSON)],
            body,
        }
    }

    /// Returns 204 without a body.
    pub fn nothing() -> Self {
        Self {
            status: 204,
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Returns a response with plain text.
    pub fn text(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: vec![(CONTENT_TYPE, TEXT), NO_SNIFF],
            body: body.to_owned().into(),
        }
    }
}

impl From<Status> for Answer {
    /// Returns the response with code, `Content-Type`, body, and `Retry-After` if the details have it.
    fn from(status: Status) -> Self {
        let mut headers = vec![(CONTENT_TYPE, JSON)];
        let retry_after = status
            .details
            .as_ref()
            .map_or(0, |details| details.retry_after_seconds);
        if retry_after > 0 {
            headers.push((RETRY_AFTER, retry_after.into()));
        }
        Self {
            status: status.code,
            headers,
            body: status.to_bytes(),
        }
    }
}

/// Parses a request. `watch_list`: the feature gate of that name, on by default.
///
/// # Errors
///
/// The response of kube-apiserver to an invalid request: 400, 404 (as Status or text), 405, 406, 413, 415, 422, and 500 for
/// an invalid `resourceVersion` of a watch or a single object.
pub fn parse(request: &HttpRequest, catalog: &Catalog, watch_list: bool) -> Result<Request, Answer> {
    let route = path::route(&request.path, catalog);
    let deprecation = match &route {
        Route::Collection { kind, .. } | Route::Object { kind, .. } | Route::Unstored { kind, .. } => {
            kind.deprecation.clone()
        }
        Route::Document(_)
        | Route::Incomplete(_)
        | Route::Nameless(_)
        | Route::Unknown
        | Route::UnknownText => Text::Borrowed(""),
    };
    read(request, route, watch_list).map_err(|mut refusal| {
        // Handlers send deprecation warnings, so requests that are rejected before a handler have none.
        let handled = !matches!(refusal.status, 404 | 405) && check_timeout(request.query.pairs()).is_ok();
        if handled && !deprecation.is_empty() {
            refusal.headers.extend(warning(&deprecation));
        }
        refusal
    })
}

#[expect(clippy::too_many_lines, reason = "one arm for each route")]
fn read(request: &HttpRequest, route: Route, watch_list: bool) -> Result<Request, Answer> {
    if !is_long_running(request, &route) {
        check_timeout(request.query.pairs()).map_err(refuse)?;
    }
    let parsed = match route {
        Route::UnknownText => return Err(Answer::text(404, "404 page not found\n")),
        Route::Unknown => Err(Status::unknown_path()),
        Route::Incomplete(why) => Err(Status::bad_request(why)),
        Route::Nameless(kind) => Err(match request.method {
            Method::PUT | Method::PATCH => Status::bad_request(path::NO_NAME),
            // Without a name the verb is that of a collection, which subresources do not support.
            _ => Status::not_supported(&kind, verb(&request.method, true)),
        }),
        Route::Document(document) => Ok(Request::Document(document)),
        Route::Unstored {
            kind,
            namespace,
            name,
        } => {
            let whole = name.is_none();
            if !whole && !kind.allows("get") {
                Err(Status::unknown_path())
            } else if !kind.allows(verb(&request.method, whole)) {
                Err(Status::method_not_allowed())
            } else if let Some(review) = kind.review {
                let collection = Collection { kind, namespace };
                write::parse_review(request, review, (collection, String::new())).map(Request::Review)
            } else if request.method == Method::POST {
                let pods = Collection {
                    kind: catalog::pod(),
                    namespace,
                };
                match write::parse_posted(request, pods, None, &kind.singular) {
                    Ok(Some(write)) => Ok(Request::Write(write)),
                    Ok(None) => Err(Status::not_served(&kind.qualified())),
                    Err(status) => Err(status),
                }
            } else {
                read_unstored(request, Collection { kind, namespace }, name, watch_list)
            }
        }
        Route::Collection {
            kind,
            namespace,
            watch,
        } => {
            let collection = Collection { kind, namespace };
            let custom = collection.kind.custom;
            // The handler of custom resources takes the verb from the path: below `watch`, any method watches.
            if request.method == Method::GET || watch && custom {
                read_collection(request, collection, watch, None, watch_list)
            } else if watch {
                Err(Status::method_not_allowed())
            } else if custom && collection.kind.namespaced && collection.namespace.is_none() {
                return Err(Answer::text(404, "404 page not found\n"));
            } else {
                let place = write::WriteTarget {
                    collection,
                    name: None,
                    subresource: None,
                };
                write::parse(request, place).map(Request::Write)
            }
        }
        Route::Object {
            kind,
            namespace,
            name,
            subresource,
            watch,
        } => {
            let collection = Collection { kind, namespace };
            let part = match subresource.as_deref() {
                None => Some(None),
                Some("status") if collection.kind.status => Some(Some(Subresource::Status)),
                Some("scale") if collection.kind.scale.is_some() => Some(Some(Subresource::Scale)),
                Some("finalize") if collection.kind.deletion == Deletion::WhenEmpty => {
                    Some(Some(Subresource::Finalize))
                }
                Some(part) => {
                    let parts = collection.kind.subresources();
                    match parts.iter().find(|known| known.name == part) {
                        None => None,
                        Some(known) if !known.verbs.contains(&verb(&request.method, false)) => {
                            return Err(refuse(Status::method_not_allowed()));
                        }
                        // `approval` has the same fields as `status`; it differs in authorization.
                        Some(_) if part == "approval" => Some(Some(Subresource::Status)),
                        Some(_) if part == "ephemeralcontainers" => {
                            Some(Some(Subresource::EphemeralContainers))
                        }
                        Some(_) if part == "resize" => Some(Some(Subresource::Resize)),
                        Some(_) if part == "token" => {
                            let place = Collection {
                                kind: catalog::token_request(),
                                ..collection
                            };
                            let asked = write::parse_review(request, Review::NewToken, (place, name));
                            return asked.map(Request::Review).map_err(refuse);
                        }
                        Some(_) => {
                            if let Some(connection) = Connection::of(part) {
                                let mut query = request.query.pairs().iter();
                                let container = query.find(|(key, _)| key == "container");
                                return Ok(Request::Connect(ConnectRequest {
                                    collection,
                                    name,
                                    connection,
                                    container: container.map(|(_, name)| name.clone()).unwrap_or_default(),
                                }));
                            }
                            let what = format!("{}/{part}", collection.kind.qualified());
                            let posted = write::parse_posted(request, collection, Some(&name), part);
                            return match posted {
                                Ok(Some(write)) => Ok(Request::Write(write)),
                                Ok(None) => Err(refuse(Status::not_served(&what))),
                                Err(status) => Err(refuse(status)),
                            };
                        }
                    }
                }
            };
            let custom = collection.kind.custom;
            let read_only = request.method == Method::GET || watch && custom;
            if watch && !read_only {
                return Err(refuse(Status::method_not_allowed()));
            }
            if read_only && part == Some(Some(Subresource::Finalize)) {
                return Err(refuse(Status::method_not_allowed()));
            }
            let Some(subresource) = part else {
                let refusal = if collection.kind.custom {
                    Status::not_found(&collection.kind, &name)
                } else {
                    Status::unknown_path()
                };
                return Err(refuse(refusal));
            };
            if !read_only {
                let place = write::WriteTarget {
                    collection,
                    name: Some(name),
                    subresource,
                };
                write::parse(request, place).map(Request::Write)
            } else if watch {
                read_collection(request, collection, true, Some(&name), watch_list)
            } else {
                read_object(request, collection, name, subresource == Some(Subresource::Scale))
            }
        }
    };
    parsed.map_err(refuse)
}

/// Returns the verb of a method, as in discovery.
fn verb(method: &Method, whole: bool) -> &'static str {
    match (method, whole) {
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (_, _) => "",
    }
}

fn refuse(status: Status) -> Answer {
    tracing::debug!(code = status.code, reason = status.reason, "refused");
    status.into()
}

/// Returns the option rules that a request violates (INV-15); none for a valid request. The `continue` token is the server's
/// and selectors are the user's, so neither is checked.
pub fn violations(method: &Method, path: &str, query: &[(String, String)], catalog: &Catalog) -> Vec<String> {
    if method != Method::GET || query.is_empty() {
        return Vec::new();
    }
    let watch_path = match path::route(path, catalog) {
        Route::Collection { watch, .. } => watch,
        Route::Object { watch: true, .. } => true,
        Route::Object { .. }
        | Route::Unstored { .. }
        | Route::Document(_)
        | Route::Incomplete(_)
        | Route::Nameless(_)
        | Route::Unknown
        | Route::UnknownText => return Vec::new(),
    };
    reads::broken_rules(query, watch_path)
}

/// Returns the option rules that the query of a LIST or WATCH violates, whatever it reads (INV-15).
pub(crate) fn rules_broken_by(query: &[(String, String)]) -> Vec<String> {
    if query.is_empty() {
        return Vec::new();
    }
    // The path of a deprecated watch excuses more, and a judge must not accuse too often.
    reads::broken_rules(query, true)
}

/// Headers of requests that pass flow control.
const FLOW_CONTROL: [Header; 2] = [
    (
        HeaderName::from_static("x-kubernetes-pf-flowschema-uid"),
        HeaderValue::from_static("00000000-0000-4000-9000-000000000001"),
    ),
    (
        HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid"),
        HeaderValue::from_static("00000000-0000-4000-9000-000000000002"),
    ),
];

/// Chosen by the client, or generated.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Returns the headers of every response except `Date`: `Audit-Id` (echoed, or generated from `nth`), `Cache-Control` and,
/// for a request that passes flow control, its UIDs. A request with an invalid `timeout` is rejected before that.
pub fn common_headers(request: &HttpRequest, nth: u64) -> Vec<Header> {
    let sent = request.headers.get(AUDIT_ID);
    let audit_id = sent.cloned().unwrap_or_else(|| generated_audit_id(nth));
    // Capacity includes the headers of the response itself.
    let mut headers = Vec::with_capacity(8);
    headers.push((AUDIT_ID, audit_id));
    headers.push((CACHE_CONTROL, HeaderValue::from_static("no-cache, private")));
    let query = request.query.pairs();
    let watch = query.iter().any(|(name, value)| name == "watch" && truthy(value));
    if !is_connection(&request.path) && (watch || check_timeout(query).is_ok()) {
        headers.extend(FLOW_CONTROL);
    }
    headers
}

/// Returns a UUID that ends with `nth`. Every response has one, and formatting costs four times as much.
fn generated_audit_id(nth: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut id = *b"00000000-0000-4000-8000-000000000000";
    for (nibble, digit) in id[24..].iter_mut().rev().enumerate() {
        *digit = DIGITS[(nth >> (4 * nibble)) as usize & 0xf];
    }
    HeaderValue::from_bytes(&id).expect("it is ASCII")
}

/// Returns whether the path is that of a connection to a kubelet, which bypasses flow control.
fn is_connection(path: &str) -> bool {
    let path = decoded_path(path);
    ResourcePath::read(&path)
        .is_some_and(|place| Connection::of(place.subresource.unwrap_or_default()).is_some())
}

/// Returns whether the path is that of a collection, served or not.
pub(crate) fn names_collection(path: &str) -> bool {
    let path = decoded_path(path);
    ResourcePath::read(&path).is_some_and(|place| place.is_collection())
}

/// Checks that a page of this kind is available in the requested representation.
///
/// # Errors
///
/// 400 and 406, sent in place of the page.
pub fn page_fits(request: &HttpRequest, kind: &ApiResource) -> Result<(), Status> {
    accept::fit(request, Shape::List, kind)
}

/// Checks that an object of this kind is available in the requested representation.
///
/// # Errors
///
/// 400 and 406, sent in place of the object; a write has been executed nevertheless.
pub fn object_fits(request: &HttpRequest, kind: &ApiResource) -> Result<(), Status> {
    accept::fit(request, Shape::Object, kind)
}

/// Returns the headers of a watch in addition to [`common_headers`].
pub fn watch_headers() -> Vec<Header> {
    vec![(CONTENT_TYPE, JSON)]
}

/// Returns the reason phrase of a status if Go's `net/http` has another one than the standard.
pub fn reason_phrase(status: u16) -> Option<&'static str> {
    match status {
        413 => Some("Request Entity Too Large"),
        414 => Some("Request URI Too Long"),
        416 => Some("Requested Range Not Satisfiable"),
        _ => None,
    }
}

/// Returns a response with JSON and status 200.
pub fn ok(body: Bytes) -> Answer {
    Answer::json(200, body)
}

/// Returns whether the request is a watch or a connection to a pod, to which `timeout` does not apply.
fn is_long_running(request: &HttpRequest, route: &Route) -> bool {
    match route {
        Route::Collection { watch: true, .. } | Route::Object { watch: true, .. } => true,
        Route::Collection { watch: false, .. } => {
            let query = request.query.pairs();
            let wanted = query.iter().any(|(name, value)| name == "watch" && truthy(value));
            request.method == Method::GET && wanted
        }
        Route::Object { subresource, .. } => subresource
            .as_deref()
            .is_some_and(|part| Connection::of(part).is_some()),
        Route::Unstored { .. }
        | Route::Document(_)
        | Route::Incomplete(_)
        | Route::Nameless(_)
        | Route::Unknown
        | Route::UnknownText => false,
    }
}

/// Checks `timeout`, which applies to every request that is not long-running, and must be a duration on any path.
fn check_timeout(query: &[(String, String)]) -> Result<(), Status> {
    match query
        .iter()
        .find(|(name, value)| name == "timeout" && !value.is_empty())
    {
        None => Ok(()),
        Some((_, value)) => go_text::check_duration(value).map_err(|error| {
            Status::bad_request(format!("invalid timeout specified in the request URL - {error}"))
        }),
    }
}
