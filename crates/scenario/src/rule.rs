//! Validated rules and waits: the vocabulary of steps for a running server.
//!
//! A rule is a step without order; a wait is a rule without actions. This module decides which requests match, from
//! the trace; `server` decides the effect.

use apimachinery::path::{ResourcePath, decoded_path};
use trace::fault::Ending;
use trace::record::{ConnId, ExchangeRecord, Frame, Group, Record, Replica, StreamId, Verb};

use super::{Action, QueryMatch, RequestKind, RequestTrigger, Times};
use crate::matching;

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Name of the rule.
    pub name: Option<String>,
    /// Requests that it applies to.
    pub from: Whose,
    /// Trigger.
    pub when: RuleTrigger,
    /// How often it matches before it is removed.
    pub times: Times,
    /// Actions.
    pub actions: Vec<Action>,
}

/// When a rule's actions run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleTrigger {
    /// Immediately, on every open watch that matches.
    Now,
    /// On matching requests, before they are answered.
    Request(RequestTrigger),
}

/// Request filter: all fields that are set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whose {
    /// Substring of the User-Agent.
    pub user_agent: Option<String>,
    /// Connection.
    pub connection: Option<ConnId>,
    /// Request.
    pub stream: Option<StreamId>,
    /// Replica.
    pub replica: Option<Replica>,
    /// Group and plural.
    pub resource: Option<(String, String)>,
    /// Namespace.
    pub namespace: Option<String>,
    /// Verb of a request to a single object or a whole collection, as returned by [`object_verb`].
    pub verb: Option<&'static str>,
    /// `metadata.name` of the object in the path.
    pub name: Option<String>,
    /// Subresource, e.g. `status`.
    pub subresource: Option<String>,
    /// HTTP method.
    pub method: Option<&'static str>,
    /// Prefix of the path.
    pub path: Option<String>,
}

/// The properties of a request that rules match.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Number of the request.
    pub stream: StreamId,
    /// Number of the connection.
    pub conn: ConnId,
    /// The replica that received it.
    pub replica: Replica,
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// The method, in upper case.
    pub method: &'a str,
    /// The path, percent-encoded.
    pub path: &'a str,
}

impl Whose {
    /// Returns true if the request matches.
    pub fn means(&self, seen: &Seen<'_>) -> bool {
        let fits = |wanted: &Option<String>, fits: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(fits);
        let path = decoded_path(seen.path);
        let names = Named::by(&path);
        let place = ResourcePath::read(&path);
        let part = place.and_then(|place| place.subresource);
        fits(&self.user_agent, &|part| {
            seen.user_agent.is_some_and(|agent| agent.contains(part))
        }) && self.connection.is_none_or(|conn| conn == seen.conn)
            && self.stream.is_none_or(|stream| stream == seen.stream)
            && self.replica.is_none_or(|replica| replica == seen.replica)
            && self.method.is_none_or(|method| method == seen.method)
            && self
                .verb
                .is_none_or(|verb| object_verb(seen.method, place.as_ref()) == Some(verb))
            && fits(&self.name, &|name| names.name == name)
            && fits(&self.subresource, &|wanted| part == Some(wanted))
            && fits(&self.path, &|start| seen.path.starts_with(start))
            && self
                .resource
                .as_ref()
                .is_none_or(|(group, plural)| *group == names.group && *plural == names.plural)
            && fits(&self.namespace, &|namespace| names.namespace == namespace)
    }
}

/// Resource names in a path, whether served or not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// Plural; empty if the path has no resource.
    pub plural: &'a str,
    /// Namespace; empty without one.
    pub namespace: &'a str,
    /// Object name; empty for a collection.
    pub name: &'a str,
}

impl<'a> Named<'a> {
    /// Parses a path, which must be percent-decoded ([`decoded_path`]).
    pub fn by(path: &'a str) -> Self {
        let Some(place) = ResourcePath::read(path) else {
            return Self::default();
        };
        Self {
            group: place.group,
            plural: place.resource,
            namespace: place.within.unwrap_or_default(),
            name: place.name.unwrap_or_default(),
        }
    }
}

/// Returns the RBAC verb of a request: `get`, `create`, `update`, `patch`, `delete` or `deletecollection`. `None` for
/// list and watch, and for paths without a resource.
pub fn object_verb(method: &str, place: Option<&ResourcePath<'_>>) -> Option<&'static str> {
    let place = place.filter(|place| place.verb.is_none())?;
    match (method, place.is_collection()) {
        ("GET" | "HEAD", false) => Some("get"),
        ("POST", _) => Some("create"),
        ("PUT", _) => Some("update"),
        ("PATCH", _) => Some("patch"),
        ("DELETE", false) => Some("delete"),
        ("DELETE", true) => Some("deletecollection"),
        (_, _) => None,
    }
}

/// A condition to wait for.
#[derive(Debug, Clone)]
pub struct Wait {
    /// Requests that count.
    pub from: Whose,
    /// A request.
    pub when: Option<RequestTrigger>,
    /// An event sent on a watch.
    pub sent: Option<Sent>,
    /// The end of a response; `None` inside: any end.
    pub closed: Option<Option<Ending>>,
    /// The first record that counts; `None`: the next one for a `next` request, otherwise the oldest one kept.
    pub since: Option<u64>,
    /// Timeout, in milliseconds.
    pub timeout_ms: u64,
}

/// Conditions on an event sent on a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// This resourceVersion or a later one.
    pub resource_version: Option<String>,
    /// Event type, as on the wire.
    pub kind: Option<&'static str>,
    /// Name or key of the object.
    pub name: Option<String>,
}

impl Sent {
    /// Returns true if the frame matches.
    pub fn is(&self, frame: &Frame) -> bool {
        let kind = frame.kind.word();
        let object = frame.object.as_ref();
        let reached = |wanted: &String| {
            object.is_some_and(|object| {
                match (object.resource_version.parse::<u64>(), wanted.parse::<u64>()) {
                    (Ok(sent), Ok(wanted)) => sent >= wanted,
                    (Ok(_) | Err(_), _) => object.resource_version == *wanted,
                }
            })
        };
        let named = |wanted: &String| {
            object
                .is_some_and(|object| object.key == *wanted || object.key.rsplit('/').next() == Some(wanted))
        };
        frame.whole()
            && self.kind.is_none_or(|wanted| wanted == kind)
            && self.resource_version.as_ref().is_none_or(reached)
            && self.name.as_ref().is_none_or(named)
    }
}

/// State of a wait: consumes the records of a trace in order, from the oldest one kept.
#[derive(Debug)]
pub struct Waiting {
    wait: Wait,
    since: u64,
    /// Number of matching requests.
    meant: u32,
    /// Streams of requests selected by `from`.
    streams: std::collections::BTreeSet<StreamId>,
}

impl Waiting {
    /// Starts a wait in a trace whose next record has the number `next`.
    pub fn new(wait: Wait, next: u64) -> Self {
        let for_the_next = wait.when.as_ref().is_some_and(|when| when.nth.is_none());
        let since = wait.since.unwrap_or(if for_the_next { next } else { 0 });
        Self {
            wait,
            since,
            meant: 0,
            streams: std::collections::BTreeSet::new(),
        }
    }

    /// Consumes a record; returns true if it completes the wait.
    pub fn is_met(&mut self, record: &Record) -> bool {
        let counts = record.seq >= self.since;
        match record.what.group() {
            Group::Exchange(ExchangeRecord::Request {
                stream,
                conn,
                replica,
                verb,
                method,
                path,
                query,
                user_agent,
                ..
            }) => {
                let seen = Seen {
                    stream: *stream,
                    conn: *conn,
                    replica: *replica,
                    user_agent: user_agent.as_deref(),
                    method,
                    path,
                };
                if !self.wait.from.means(&seen) {
                    return false;
                }
                self.streams.insert(*stream);
                let Some(when) = &self.wait.when else { return false };
                let meant =
                    counts && kind_meets(when.kind, *verb, query) && query_meets(&when.query, *verb, query);
                self.meant += u32::from(meant);
                meant && when.nth.is_none_or(|nth| nth == self.meant)
            }
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => {
                let sent = self.wait.sent.as_ref();
                counts && self.streams.contains(stream) && sent.is_some_and(|sent| sent.is(frame))
            }
            Group::Exchange(ExchangeRecord::End { stream, how, .. }) => {
                let closed = self.wait.closed;
                counts
                    && self.streams.contains(stream)
                    && closed.is_some_and(|wanted| wanted.is_none_or(|wanted| wanted == *how))
            }
            Group::Connection(_)
            | Group::Exchange(
                ExchangeRecord::Head { .. }
                | ExchangeRecord::Page { .. }
                | ExchangeRecord::Body { .. }
                | ExchangeRecord::Torn { .. }
                | ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(_)
            | Group::Script(_)
            | Group::Run(_) => false,
        }
    }

    /// Describes the condition.
    pub fn words(&self) -> String {
        let wait = &self.wait;
        match (&wait.when, &wait.sent, &wait.closed) {
            (Some(when), _, _) => matching::words_for_request(when),
            (None, Some(sent), _) => {
                let kind = sent.kind.unwrap_or("anything");
                let name = sent.name.as_ref().map(|name| format!(" of {name}"));
                let version = sent
                    .resource_version
                    .as_ref()
                    .map(|version| format!(" at resourceVersion {version} or later"));
                format!(
                    "{kind}{}{} to be sent on a watch",
                    name.unwrap_or_default(),
                    version.unwrap_or_default()
                )
            }
            (None, None, Some(Some(how))) => format!("an answer to end by {}", how.word()),
            (None, None, _) => "an answer to end".to_owned(),
        }
    }
}

/// Returns true if the request is of the trigger's kind, ignoring ordinal and query.
pub fn kind_meets(kind: RequestKind, verb: Verb, query: &[(String, String)]) -> bool {
    let continues = query
        .iter()
        .any(|(name, value)| name == "continue" && !value.is_empty());
    match kind {
        RequestKind::List => verb == Verb::List && !continues,
        RequestKind::Page { .. } => verb == Verb::List && continues,
        RequestKind::Watch => matches!(verb, Verb::Watch | Verb::WatchList),
        RequestKind::Any => true,
    }
}

/// Returns true if the conditions on a query are met. Rules have no names, so values are literal.
pub fn query_meets(wanted: &[QueryMatch], verb: Verb, query: &[(String, String)]) -> bool {
    matching::query_is(wanted, matching::Read { verb, query }, &matching::NoNames)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/api/v1/configmaps", "", "configmaps", "", "")]
    #[case("/api/v1/namespaces/ns1/pods/a/status", "", "pods", "ns1", "a")]
    #[case("/apis/apps/v1/namespaces/ns1/deployments", "apps", "deployments", "ns1", "")]
    #[case("/api/v1/namespaces", "", "namespaces", "", "")]
    #[case("/api/v1/namespaces/ns1", "", "namespaces", "", "ns1")]
    #[case("/api/v1/namespaces/ns1/finalize", "", "namespaces", "", "ns1")]
    #[case("/api/v1/watch/namespaces/ns1/pods", "", "pods", "ns1", "")]
    #[case("/version", "", "", "", "")]
    fn a_path_names(
        #[case] path: &str,
        #[case] group: &str,
        #[case] plural: &str,
        #[case] namespace: &str,
        #[case] name: &str,
    ) {
        let named = Named {
            group,
            plural,
            namespace,
            name,
        };
        assert_eq!(Named::by(path), named);
    }

    #[rstest]
    #[case("GET", "/api/v1/namespaces/n/pods/a", Some("get"))]
    #[case("GET", "/api/v1/namespaces/n/pods", None)]
    #[case("GET", "/api/v1/watch/namespaces/n/pods/a", None)]
    #[case("GET", "/version", None)]
    #[case("POST", "/api/v1/namespaces/n/pods", Some("create"))]
    #[case("POST", "/api/v1/namespaces/n/pods/a/eviction", Some("create"))]
    #[case("PUT", "/api/v1/namespaces/n/pods/a/status", Some("update"))]
    #[case("PATCH", "/api/v1/namespaces/n/pods/a", Some("patch"))]
    #[case("DELETE", "/api/v1/namespaces/n", Some("delete"))]
    #[case("DELETE", "/api/v1/namespaces/n/pods", Some("deletecollection"))]
    fn requests_map_to_verbs(#[case] method: &str, #[case] path: &str, #[case] verb: Option<&str>) {
        assert_eq!(object_verb(method, ResourcePath::read(path).as_ref()), verb);
    }

    #[rstest]
    #[case::verb(Whose { verb: Some("update"), ..Whose::default() }, true)]
    #[case::other_verb(Whose { verb: Some("patch"), ..Whose::default() }, false)]
    #[case::name(Whose { name: Some("a".to_owned()), ..Whose::default() }, true)]
    #[case::prefix_of_a_name(Whose { name: Some("ab".to_owned()), ..Whose::default() }, false)]
    #[case::subresource(Whose { subresource: Some("status".to_owned()), ..Whose::default() }, true)]
    #[case::other_subresource(Whose { subresource: Some("scale".to_owned()), ..Whose::default() }, false)]
    fn rules_match_object_names(#[case] whose: Whose, #[case] meant: bool) {
        let seen = Seen {
            stream: StreamId(1),
            conn: ConnId(1),
            replica: Replica::Primary,
            user_agent: None,
            method: "PUT",
            path: "/apis/apps/v1/namespaces/n/deployments/a/status",
        };
        assert_eq!(whose.means(&seen), meant);
    }
}
