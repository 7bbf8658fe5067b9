//! Audit logs of a kube-apiserver (audit.k8s.io/v1, a JSON event a line) as recordings: requests, and the status of their
//! responses.

use std::collections::BTreeMap;
use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::path::query_pairs;
use serde::Deserialize;
use serde_json::Value;
use trace::fault::Ending;
use trace::record::{ConnId, Record, Side, StoreWrite, StreamId, Verb, What, WriteOp};

use crate::file::{Header, Origin, ReadError, Recording, parsed};

/// What an audit log cannot show.
const BLIND: [&str; 5] = [
    "events of watches, and so when a client learned of a write; ERROR events in them, such as 410",
    "how a watch ended: cut, reset or stalled; whether the client or the server ended it",
    "versions of lists and objects below the level RequestResponse",
    "connections that were refused, and requests that never reached the apiserver",
    "writes and requests that the audit policy leaves out",
];

/// An event of an audit log.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    #[serde(default)]
    user_agent: Option<String>,
    object_ref: Option<Named>,
    response_status: Option<Status>,
    response_object: Option<Value>,
    request_received_timestamp: String,
    stage_timestamp: String,
}

#[derive(Debug, Deserialize)]
struct Named {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    subresource: String,
}

#[derive(Debug, Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    reason: Option<String>,
    message: Option<String>,
}

/// Returns whether a line is an event of an audit log.
pub(crate) fn is_event(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|json| {
        let version = json["apiVersion"].as_str().unwrap_or_default();
        json["kind"] == "Event" && version.starts_with("audit.k8s.io/")
    })
}

/// Reads an audit log.
///
/// # Errors
/// A line that is no event, except a last one that is not complete.
pub(crate) fn read(text: &str) -> Result<Recording, ReadError> {
    let (events, cut) = parsed(text, |line| {
        let event = serde_json::from_str::<Event>(line);
        event.map_err(|error| format!("no event of an audit log (audit.k8s.io/v1): {error}"))
    })?;
    let mut header = Header::new("audit log", "", Origin::AuditLog);
    header.content = events.iter().any(|event| event.response_object.is_some());
    Ok(Recording {
        header: Some(header),
        records: records(events),
        missing: 0,
        cut,
        blind: BLIND.map(str::to_owned).to_vec(),
    })
}

/// A moment of a request, ordered by time.
type Moment = (Duration, usize, What);

fn records(events: Vec<Event>) -> Vec<Record> {
    let mut streams = BTreeMap::<String, StreamId>::new();
    let mut moments: Vec<Moment> = Vec::new();
    let mut answered = std::collections::BTreeSet::new();
    for (nth, event) in events.into_iter().enumerate() {
        let next = StreamId(streams.len() as u64 + 1);
        let is_new = !streams.contains_key(&event.audit_id);
        let stream = *streams.entry(event.audit_id.clone()).or_insert(next);
        let (received, at) = (
            time(&event.request_received_timestamp),
            time(&event.stage_timestamp),
        );
        if is_new {
            moments.push((received, nth, request(stream, &event)));
        }
        let is_over = event.stage == "ResponseComplete" || event.stage == "Panic";
        if !is_over && event.stage != "ResponseStarted" {
            continue;
        }
        if answered.insert(stream) {
            let status = event.response_status.as_ref().map_or(200, |status| status.code);
            moments.push((
                at,
                nth,
                What::Head {
                    stream,
                    status,
                    retry_after: None,
                    scripted: false,
                },
            ));
        }
        if is_over {
            moments.extend(body(stream, &event).map(|what| (at, nth, what)));
            moments.extend(wrote(stream, &event).map(|what| (at, nth, what)));
            moments.push((
                at,
                nth,
                What::End {
                    stream,
                    how: Ending::Eof,
                    by: Side::Server,
                },
            ));
        }
    }
    moments.sort_by_key(|(at, nth, _)| (*at, *nth));
    let first = moments.first().map(|(at, ..)| *at).unwrap_or_default();
    let moments = moments.into_iter().enumerate();
    moments
        .map(|(seq, (at, _, what))| Record {
            seq: seq as u64,
            at: at.saturating_sub(first),
            what,
        })
        .collect()
}

fn request(stream: StreamId, event: &Event) -> What {
    let (path, query) = event
        .request_uri
        .split_once('?')
        .unwrap_or((&event.request_uri, ""));
    let query: Vec<(String, String)> = query_pairs(query);
    let streams = query
        .iter()
        .any(|(name, value)| name == "sendInitialEvents" && value == "true");
    What::Request {
        stream,
        conn: ConnId(0),
        verb: match event.verb.as_str() {
            "list" => Verb::List,
            "watch" if streams => Verb::WatchList,
            "watch" => Verb::Watch,
            _ => Verb::Other,
        },
        method: String::new(),
        path: path.to_owned(),
        query,
        accept: None,
        user_agent: event.user_agent.clone(),
        replica: trace::record::Replica::Primary,
        violations: Vec::new(),
    }
}

/// Returns the record of a body, as far as the level of the policy shows it.
fn body(stream: StreamId, event: &Event) -> Option<What> {
    let status = event.response_status.as_ref();
    if let Some(status) = status.filter(|status| status.code >= 400) {
        return Some(What::Body {
            stream,
            bytes: 0,
            reason: status.reason.clone(),
            message: status.message.clone(),
            continue_token: None,
        });
    }
    let list = event.response_object.as_ref().filter(|_| event.verb == "list")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(What::Page {
        stream,
        resource_version: text(&list["metadata"]["resourceVersion"]),
        continue_token: text(&list["metadata"]["continue"]),
        remaining: list["metadata"]["remainingItemCount"].as_i64(),
        items: list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(ObjectRef::of)
            .collect(),
        scripted: false,
    })
}

/// Returns the write that an event shows.
fn wrote(stream: StreamId, event: &Event) -> Option<What> {
    let op = match event.verb.as_str() {
        "create" => WriteOp::Create,
        "update" | "patch" => WriteOp::Update,
        "delete" => WriteOp::Delete,
        _ => return None,
    };
    let named = event
        .object_ref
        .as_ref()
        .filter(|named| matches!(named.subresource.as_str(), "" | "status"))?;
    let code = event.response_status.as_ref().map_or(200, |status| status.code);
    if !(200..300).contains(&code) {
        return None;
    }
    let content = event
        .response_object
        .as_ref()
        .filter(|object| object["kind"] != "Status");
    let object = match content {
        Some(object) => ObjectRef::of(object),
        None if named.name.is_empty() => return None,
        None => ObjectRef {
            key: ObjectRef::key(&named.namespace, &named.name),
            uid: String::new(),
            resource_version: String::new(),
        },
    };
    let kept = trace::content::Kept::default();
    Some(What::Wrote(StoreWrite {
        resource: named.resource.clone(),
        object,
        op,
        selected: false,
        by: Some(stream),
        content: content.and_then(|object| kept.of(&named.resource, object.clone())),
    }))
}

/// Reads a time; zero if it is none.
fn time(text: &str) -> Duration {
    apimachinery::time::parsed(text).unwrap_or_default()
}
