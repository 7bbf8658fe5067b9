//! `POST /v1/history`: the versions of one object that the trace has, and the watches that were sent each. The trace has no
//! content, so that the history has none.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver::record::line::{frame, op};
use fake_apiserver::record::{Frame, Record, StreamId, What};
use serde::{Deserialize, Serialize};

use crate::watches::{Known, plural};

/// Maximum number of versions: the newest.
const VERSIONS_MAX: usize = 100;

/// Maximum number of watches listed for a version: the first that were sent it.
const SENT_MAX: usize = 50;

/// The object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    /// Resource: `pods`, `deployments.apps`.
    resource: String,
    /// `namespace/name`, or `name` without a namespace.
    object: String,
}

/// Its history.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    resource: String,
    object: String,
    /// Number of older versions that are left out.
    left_out: usize,
    /// In order.
    versions: Vec<Version>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: String,
    /// `create`, `update`, `delete`; `None`: the write is not in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<&'static str>,
    /// Time of the write, or of the first event.
    at_ms: u64,
    /// The request that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<u64>,
    /// Number of watch events with it.
    sent: usize,
    /// Of these, those that a script or a rule changed.
    scripted: usize,
    /// Time of the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sent_ms: Option<u64>,
    /// The first ones.
    events: Vec<Sent>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    stream: u64,
    client: String,
    /// `MODIFIED default/web@1003`.
    event: String,
    at_ms: u64,
    scripted: bool,
}

impl Version {
    fn add(&mut self, stream: StreamId, client: &str, sent: &Frame, at: Duration) {
        self.sent += 1;
        self.scripted += usize::from(sent.scripted);
        self.last_sent_ms = Some(ms(at));
        if self.events.len() < SENT_MAX {
            self.events.push(Sent {
                stream: stream.0,
                client: client.to_owned(),
                event: frame(sent, |object| object.key.clone()),
                at_ms: ms(at),
                scripted: sent.scripted,
            });
        }
    }
}

/// Returns the history of an object in these records.
pub(super) fn history(records: &[Record], known: &Known<'_>, query: Query) -> History {
    let plural = plural(&query.resource);
    let mut versions: Vec<Version> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        if let What::Wrote(write) = &record.what {
            if write.object.key == query.object && write.resource == plural {
                let place = placed(
                    &mut versions,
                    &mut places,
                    &write.object.resource_version,
                    record.at,
                );
                versions[place].write = Some(op(write.op));
                versions[place].by = write.by.map(|stream| stream.0);
            }
        } else if let What::Frame { stream, frame: sent } = &record.what
            && let Some(object) = sent.object.as_deref().filter(|object| object.key == query.object)
            && let Some(asked) = known
                .asked(*stream)
                .filter(|asked| *asked.resource == *query.resource)
        {
            let place = placed(&mut versions, &mut places, &object.resource_version, record.at);
            versions[place].add(*stream, &asked.client, sent, record.at);
        }
    }
    let left_out = versions.len().saturating_sub(VERSIONS_MAX);
    History {
        left_out,
        versions: versions.split_off(left_out),
        resource: query.resource,
        object: query.object,
    }
}

/// Returns the place of a version, which is added if it is new.
fn placed<'r>(
    versions: &mut Vec<Version>,
    places: &mut BTreeMap<&'r str, usize>,
    version: &'r str,
    at: Duration,
) -> usize {
    *places.entry(version).or_insert_with(|| {
        versions.push(Version {
            resource_version: version.to_owned(),
            at_ms: ms(at),
            ..Version::default()
        });
        versions.len() - 1
    })
}

fn ms(at: Duration) -> u64 {
    at.as_millis() as u64
}
