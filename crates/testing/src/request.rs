//! Requests of the trace, typed. It must not know expectations.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use apimachinery::kind::qualified;
use apimachinery::path::{ResourcePath, decoded_path};
use fake_apiserver::record::line::{printable, time};
use fake_apiserver::record::{Record, StreamId, What};
use fake_apiserver::scenario::rule::object_verb;

/// A request that the server received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Number of the request, from 1 in order of arrival: `#3` in the trace.
    pub number: u64,
    /// Time since the start of the server.
    pub at: Duration,
    /// Verb.
    pub verb: Verb,
    /// Resource: plural, and the group after a dot (`pods`, `deployments.apps`); empty for discovery, `/version`, ….
    pub resource: String,
    /// Namespace; `None` without one in the path.
    pub namespace: Option<String>,
    /// Name of the object; `None` for a collection.
    pub name: Option<String>,
    /// `status`, `scale`, ….
    pub subresource: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path, percent-encoded as sent.
    pub path: String,
    /// Query parameters, decoded, in the order sent.
    pub query: Vec<(String, String)>,
    /// The User-Agent header.
    pub user_agent: Option<String>,
    /// HTTP status of the response; `None` while there is none, or if the connection ended without one.
    pub status: Option<u16>,
    /// Whether a rule wrote the response.
    pub scripted: bool,
}

/// Verb of a request, as in RBAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the verbs of RBAC")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// Discovery, OpenAPI, `/version` and unknown paths.
    Other,
}

impl Verb {
    /// Returns the verb in capitals: `LIST`.
    fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::DeleteCollection => "DELETECOLLECTION",
            Self::Other => "OTHER",
        }
    }
}

impl Request {
    /// Returns the value of a query parameter.
    pub fn query(&self, parameter: &str) -> Option<&str> {
        let found = self.query.iter().find(|(name, _)| name == parameter);
        found.map(|(_, value)| value.as_str())
    }

    fn read(record: &Record) -> Option<(StreamId, Self)> {
        use fake_apiserver::record::Verb as Read;
        let What::Request {
            stream,
            verb,
            method,
            path,
            query,
            user_agent,
            ..
        } = &record.what
        else {
            return None;
        };
        let decoded = decoded_path(path);
        let place = ResourcePath::read(&decoded);
        let text = |text: Option<&str>| text.map(str::to_owned);
        let request = Self {
            number: stream.0,
            at: record.at,
            verb: match (verb, object_verb(method, place.as_ref())) {
                (Read::List, _) => Verb::List,
                (Read::Watch | Read::WatchList, _) => Verb::Watch,
                (Read::Other, Some("get")) => Verb::Get,
                (Read::Other, Some("create")) => Verb::Create,
                (Read::Other, Some("update")) => Verb::Update,
                (Read::Other, Some("patch")) => Verb::Patch,
                (Read::Other, Some("delete")) => Verb::Delete,
                (Read::Other, Some("deletecollection")) => Verb::DeleteCollection,
                (Read::Other, _) => Verb::Other,
            },
            resource: place.map_or_else(String::new, |place| qualified(place.resource, place.group)),
            namespace: text(place.and_then(|place| place.within)),
            name: text(place.and_then(|place| place.name)),
            subresource: text(place.and_then(|place| place.subresource)),
            method: method.clone(),
            path: path.clone(),
            query: query.clone(),
            user_agent: user_agent.clone(),
            status: None,
            scripted: false,
        };
        Some((*stream, request))
    }
}

/// `0.157s #3 WATCH pods in default resourceVersion=1002 → 200`.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = format!("{} #{} ", time(self.at), self.number);
        if self.verb == Verb::Other || self.resource.is_empty() {
            line.push_str(&format!("{} {}", self.method, self.path));
        } else {
            line.push_str(&format!("{} {}", self.verb.word(), self.resource));
            let parts = [
                ("/", &self.name),
                ("/", &self.subresource),
                (" in ", &self.namespace),
            ];
            for (joint, part) in parts {
                if let Some(part) = part {
                    line.push_str(&format!("{joint}{part}"));
                }
            }
        }
        for (name, value) in &self.query {
            line.push_str(&format!(" {name}={}", shortened(value)));
        }
        match (self.status, self.scripted) {
            (Some(status), false) => line.push_str(&format!(" → {status}")),
            (Some(status), true) => line.push_str(&format!(" → {status} by a rule")),
            (None, _) => line.push_str(" → no response"),
        }
        f.write_str(&printable(&line))
    }
}

/// Shortens long values, such as continue tokens.
fn shortened(value: &str) -> String {
    const SHOWN_MAX: usize = 40;
    if value.chars().count() > SHOWN_MAX {
        value.chars().take(SHOWN_MAX - 1).chain(['…']).collect()
    } else {
        value.to_owned()
    }
}

/// Returns the requests in a trace, in order of arrival, each with its record.
pub(crate) fn requests(records: &[Record]) -> Vec<(&Record, Request)> {
    let mut requests: Vec<(&Record, Request)> = Vec::new();
    let mut by_stream = BTreeMap::new();
    for record in records {
        if let Some((stream, request)) = Request::read(record) {
            by_stream.insert(stream, requests.len());
            requests.push((record, request));
        }
        if let What::Head {
            stream,
            status,
            scripted,
            ..
        } = &record.what
            && let Some(at) = by_stream.get(stream)
        {
            let request = &mut requests[*at].1;
            (request.status, request.scripted) = (Some(*status), *scripted);
        }
    }
    requests
}
