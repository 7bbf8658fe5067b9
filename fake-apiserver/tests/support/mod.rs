//! Requests as clients send them, for tests that drive the server without a network.

use fake_apiserver::api::HttpRequest;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::Value;

/// Returns a request with a JSON body, none if it is null. `target`: path and query; a PATCH is a merge patch.
pub(crate) fn request(method: &str, target: &str, body: &Value) -> HttpRequest {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    HttpRequest {
        method: method.parse().expect("valid HTTP method"),
        path: path.to_owned(),
        query: query.into(),
        headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]),
        body: if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        }
        .into(),
    }
}
