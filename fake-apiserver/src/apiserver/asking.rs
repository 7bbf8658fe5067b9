//! Classification of requests before they are answered: verb (also of rejected requests), collection, and re-encoded query.

use apimachinery::options::{Collection, Representation};
use trace::record::Verb;

use crate::api;
use crate::api::options::truthy;
use crate::api::{HttpRequest, Request};

pub(super) fn verb(parsed: Option<&Request>, request: &HttpRequest, query: &[(String, String)]) -> Verb {
    match parsed {
        Some(Request::List(_)) => Verb::List,
        Some(Request::Watch(_)) => watch_verb(query),
        Some(
            Request::Get(_)
            | Request::Write(_)
            | Request::Review(_)
            | Request::Connect(_)
            | Request::Document(_),
        ) => Verb::Other,
        // Rejected for its options, and still counted as a read of a collection.
        None if request.method == http::Method::GET && api::names_collection(&request.path) => {
            if is_watch(query) {
                watch_verb(query)
            } else {
                Verb::List
            }
        }
        None => Verb::Other,
    }
}

/// A streaming list has `sendInitialEvents=true` in its query; a default set by the server does not count.
fn watch_verb(query: &[(String, String)]) -> Verb {
    if query
        .iter()
        .any(|(name, value)| name == "sendInitialEvents" && value == "true")
    {
        Verb::WatchList
    } else {
        Verb::Watch
    }
}

pub(super) fn form_of(request: &Request) -> Representation {
    match request {
        Request::List(request) => request.form,
        Request::Watch(request) => request.form,
        Request::Get(request) => request.form,
        Request::Write(request) => request.form,
        Request::Review(request) => request.form,
        Request::Connect(_) | Request::Document(_) => Representation::Full,
    }
}

pub(super) fn collection_of(request: &Request) -> Option<&Collection> {
    match request {
        Request::List(request) => Some(&request.collection),
        Request::Watch(request) => Some(&request.collection),
        Request::Get(request) => Some(&request.collection),
        Request::Write(request) => Some(&request.collection),
        Request::Review(request) => Some(&request.collection),
        Request::Connect(request) => Some(&request.collection),
        Request::Document(_) => None,
    }
}

/// Parses `watch` as kube-apiserver does.
fn is_watch(query: &[(String, String)]) -> bool {
    let value = query.iter().find(|(name, _)| name == "watch");
    value.is_some_and(|(_, value)| truthy(value))
}

pub(super) fn encode_query(query: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in query {
        if !text.is_empty() {
            text.push('&');
        }
        encode_into(&mut text, name);
        text.push('=');
        encode_into(&mut text, value);
    }
    text
}

fn encode_into(text: &mut String, part: &str) {
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
}
