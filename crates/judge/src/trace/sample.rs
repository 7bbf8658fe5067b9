//! Builder for traces in tests: each call appends an action of one side.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::trace::fault::Ending;
use ::trace::record::{
    ConnId, Frame, FrameType, ObjectRef, Record, RunEnd, Side, StoreWrite, StreamId, Verb, What, WriteOp,
};
use ::trace::report::{Report, ReportedObject};
use scenario::{ClientSettings, Expect, Scenario, ServerSettings, Target};
use serde_json::json;

/// Builds a trace; objects are in namespace `ns1` with the uid `u-<name>` unless a call sets them.
#[derive(Default)]
pub struct Sample {
    records: Vec<Record>,
    at: Duration,
    streams: u64,
    scripted: bool,
}

/// Returns a scenario without expectations that watches ConfigMaps in `ns1`.
pub fn scenario() -> Scenario {
    Scenario {
        id: "sample/hand-written".to_owned(),
        path: PathBuf::from("scenarios/sample/hand-written.yaml"),
        title: "A sample".to_owned(),
        why: "Checks need something to check".to_owned(),
        covers: Vec::new(),
        provoked_by: None,
        tags: Vec::new(),
        refs: Vec::new(),
        target: Target {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("ns1".to_owned()),
        },
        server: ServerSettings::default(),
        client: ClientSettings::default(),
        objects: Vec::new(),
        steps: Vec::new(),
        expect: Expect::default(),
    }
}

impl Sample {
    /// Creates an empty trace at time 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a record at the current time.
    pub fn push(&mut self, what: What) -> &mut Self {
        let seq = self.records.len() as u64;
        self.records.push(Record {
            seq,
            at: self.at,
            what,
        });
        self
    }

    /// Advances the time.
    pub fn after(&mut self, ms: u64) -> &mut Self {
        self.at += Duration::from_millis(ms);
        self
    }

    /// Marks the next response, page or frame as scripted.
    pub fn lie(&mut self) -> &mut Self {
        self.scripted = true;
        self
    }

    fn lied(&mut self) -> bool {
        std::mem::take(&mut self.scripted)
    }

    // ---- store

    /// Creates or updates an object at a version.
    pub fn wrote(&mut self, name: &str, version: &str) -> &mut Self {
        self.write(name, &format!("u-{name}"), version, WriteOp::Create, true)
    }

    /// Deletes an object at a version.
    pub fn deleted(&mut self, name: &str, version: &str) -> &mut Self {
        self.write(name, &format!("u-{name}"), version, WriteOp::Delete, false)
    }

    /// Appends a write to the store.
    pub fn write(&mut self, name: &str, uid: &str, version: &str, op: WriteOp, selected: bool) -> &mut Self {
        self.push(What::Wrote(StoreWrite {
            resource: "configmaps".to_owned(),
            object: object(name, uid, version),
            op,
            selected,
            by: None,
            content: Some((&content(name, uid, version)).into()),
        }))
    }

    // ---- requests and responses; a response belongs to the newest request

    /// Sends a request on a new stream.
    pub fn request(&mut self, verb: Verb, query: &[(&str, &str)]) -> &mut Self {
        self.streams += 1;
        let stream = StreamId(self.streams);
        self.push(What::Request {
            stream,
            conn: ConnId(self.streams),
            verb,
            method: "GET".to_owned(),
            path: "/api/v1/namespaces/ns1/configmaps".to_owned(),
            query: query
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            accept: None,
            user_agent: Some("probe/1".to_owned()),
            replica: Default::default(),
            violations: Vec::new(),
        })
    }

    /// Sends a LIST request.
    pub fn list(&mut self, query: &[(&str, &str)]) -> &mut Self {
        self.request(Verb::List, query)
    }

    /// Opens a watch from `version`, including its response head.
    pub fn watch(&mut self, version: &str) -> &mut Self {
        self.request(Verb::Watch, &[("watch", "true"), ("resourceVersion", version)])
            .head(200)
    }

    /// Opens a streaming list from `version`.
    pub fn watch_list(&mut self, version: &str) -> &mut Self {
        self.request(
            Verb::WatchList,
            &[
                ("watch", "true"),
                ("sendInitialEvents", "true"),
                ("resourceVersion", version),
            ],
        )
        .head(200)
    }

    /// Returns the newest stream.
    pub fn stream(&self) -> StreamId {
        StreamId(self.streams)
    }

    /// Sends the response head on the newest stream.
    pub fn head(&mut self, status: u16) -> &mut Self {
        let (stream, scripted) = (self.stream(), self.lied());
        self.push(What::Head {
            stream,
            status,
            retry_after: None,
            scripted,
        })
    }

    /// Sends head and body of a LIST.
    pub fn page(&mut self, version: &str, token: &str, items: &[(&str, &str)]) -> &mut Self {
        self.head(200).items(version, token, items).eof()
    }

    /// Sends head and body of a LIST whose response does not end yet.
    pub fn unended_page(&mut self, version: &str, items: &[(&str, &str)]) -> &mut Self {
        self.head(200).items(version, "", items)
    }

    /// Sends the body of a LIST whose head was sent.
    pub fn finish_page(&mut self, version: &str, items: &[(&str, &str)]) -> &mut Self {
        self.items(version, "", items).eof()
    }

    fn items(&mut self, version: &str, token: &str, items: &[(&str, &str)]) -> &mut Self {
        let (stream, scripted) = (self.stream(), self.lied());
        self.push(What::Page {
            stream,
            resource_version: version.to_owned(),
            continue_token: token.to_owned(),
            remaining: None,
            items: items
                .iter()
                .map(|(name, version)| object(name, &format!("u-{name}"), version))
                .collect(),
            scripted,
        })
    }

    /// Closes the connection of the newest request, by the client.
    pub fn left(&mut self) -> &mut Self {
        self.closed(Side::Client)
    }

    /// Closes the connection of the newest request.
    pub fn closed(&mut self, by: Side) -> &mut Self {
        let conn = ConnId(self.streams);
        self.push(What::Disconnected { conn, by })
    }

    /// Responds with a Status.
    pub fn status(&mut self, status: u16, reason: &str) -> &mut Self {
        self.refuse(status, reason, None, None)
    }

    /// Rejects the newest request.
    pub fn refuse(
        &mut self,
        status: u16,
        reason: &str,
        retry_after: Option<&str>,
        token: Option<&str>,
    ) -> &mut Self {
        let stream = self.stream();
        self.push(What::Head {
            stream,
            status,
            retry_after: retry_after.map(ToOwned::to_owned),
            scripted: true,
        });
        self.push(What::Body {
            stream,
            bytes: 100,
            reason: Some(reason.to_owned()),
            message: Some("refused".to_owned()),
            continue_token: token.map(ToOwned::to_owned),
        });
        self.eof()
    }

    /// Sends a watch event; `sent`: number of its bytes sent.
    pub fn frame(&mut self, kind: FrameType, about: Option<ObjectRef>, sent: u64) -> &mut Self {
        let (stream, scripted) = (self.stream(), self.lied());
        self.push(What::Frame {
            stream,
            frame: Frame {
                kind,
                object: about.map(Arc::new),
                bytes: 100,
                sent,
                scripted,
            },
        })
    }

    /// Sends a complete ADDED event.
    pub fn added(&mut self, name: &str, version: &str) -> &mut Self {
        self.frame(
            FrameType::Added,
            Some(object(name, &format!("u-{name}"), version)),
            100,
        )
    }

    /// Sends the first `sent` bytes of an ADDED event.
    pub fn torn_added(&mut self, name: &str, version: &str, sent: u64) -> &mut Self {
        self.frame(
            FrameType::Added,
            Some(object(name, &format!("u-{name}"), version)),
            sent,
        )
    }

    /// Sends a DELETED event.
    pub fn removed(&mut self, name: &str, version: &str) -> &mut Self {
        self.frame(
            FrameType::Deleted,
            Some(object(name, &format!("u-{name}"), version)),
            100,
        )
    }

    /// Sends a BOOKMARK; `end`: the value of `k8s.io/initial-events-end`.
    pub fn bookmark(&mut self, version: &str, end: Option<&str>) -> &mut Self {
        let kind = FrameType::Bookmark {
            initial_events_end: end.map(ToOwned::to_owned),
        };
        self.frame(kind, Some(object("", "", version)), 100)
    }

    /// Sends an ERROR event with a Status.
    pub fn error(&mut self, code: u16, reason: &str) -> &mut Self {
        self.frame(
            FrameType::Error {
                code,
                reason: reason.to_owned(),
            },
            None,
            100,
        )
    }

    /// Sends bytes that are not a watch event.
    pub fn garbage(&mut self) -> &mut Self {
        self.lie().frame(FrameType::Raw, None, 100)
    }

    /// Ends the newest response.
    pub fn end(&mut self, how: Ending, by: Side) -> &mut Self {
        let stream = self.stream();
        self.push(What::End { stream, how, by })
    }

    /// Ends the newest response cleanly.
    pub fn eof(&mut self) -> &mut Self {
        self.end(Ending::Eof, Side::Server)
    }

    /// Resets the newest response, by the server.
    pub fn rst(&mut self) -> &mut Self {
        self.end(Ending::Rst, Side::Server)
    }

    // ---- client

    /// Adds a report of the client.
    pub fn emit(&mut self, report: Report) -> &mut Self {
        self.push(What::Reported(report))
    }

    /// Reports a complete relist: init, its items, init_done.
    pub fn emit_init(&mut self, items: &[(&str, &str)]) -> &mut Self {
        self.emit(Report::Init);
        for (name, version) in items {
            self.emit(Report::InitApply(reported(name, &format!("u-{name}"), version)));
        }
        self.emit(Report::InitDone)
    }

    /// Reports an object.
    pub fn emit_apply(&mut self, name: &str, version: &str) -> &mut Self {
        self.emit(Report::Apply(reported(name, &format!("u-{name}"), version)))
    }

    /// Reports a deletion.
    pub fn emit_delete(&mut self, name: &str, version: &str) -> &mut Self {
        self.emit(Report::Delete(reported(name, &format!("u-{name}"), version)))
    }

    /// Reports an error.
    pub fn emit_error(&mut self, message: &str) -> &mut Self {
        self.emit(Report::Error {
            message: message.to_owned(),
            code: None,
        })
    }

    // ---- end

    /// Returns the records so far, without an end.
    pub fn records(&self) -> Vec<Record> {
        self.records.clone()
    }

    /// Returns the records, with a successful end.
    pub fn complete(&mut self) -> Vec<Record> {
        self.push(What::ScriptDone)
            .push(What::RunEnded(RunEnd::Complete))
            .records()
    }
}

/// Returns key (in `ns1`), uid and version of an object.
pub fn object(name: &str, uid: &str, version: &str) -> ObjectRef {
    ObjectRef {
        key: format!("ns1/{name}"),
        uid: uid.to_owned(),
        resource_version: version.to_owned(),
    }
}

/// Returns an object as reported by a client.
pub fn reported(name: &str, uid: &str, version: &str) -> ReportedObject {
    ReportedObject {
        namespace: Some("ns1".to_owned()),
        name: name.to_owned(),
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_owned()),
        content: Some(Arc::new(content(name, uid, version))),
    }
}

fn content(name: &str, uid: &str, version: &str) -> serde_json::Value {
    json!({ "metadata": { "name": name, "namespace": "ns1", "uid": uid, "resourceVersion": version } })
}
