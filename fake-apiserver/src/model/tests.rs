//! Tables of requests and responses. Requests go through [`crate::api::parse`], so a row reads as a client sends it.
//!
//! The fixture: ConfigMaps `cm-1` to `cm-5` in `probe` (written at 1003 to 1007, label `app=x` on 1, 3 and 5), `cm-1` in
//! `probe-b` (1008), Widget `wd-1` in `probe` (1009); namespaces at 1001 and 1002.

use std::time::Duration;

use apimachinery::Version;
use apimachinery::options::{GetRequest, ListRequest, WatchRequest};
use apimachinery::status::Status;
use scenario::{Manifest, ObjectName, Place, ServerSettings};
use serde_json::{Value, json};
use trace::record::{FrameType, Replica};

use super::{GetOutcome, ListOutcome, Model, Page, WatchCacheOp, WatchPoll, WatchSession, Written};
use crate::api::{Answer, HttpRequest, Request, parse};

mod bytes;
mod components;
mod custom;
mod events;
mod history;
mod initial_state;
mod lists;
mod plugins;
mod properties;
mod requests;
mod scales;
mod selectors;
mod snapshots;
mod starts;
mod validation;
mod writes;

const CM: &str = "/api/v1/namespaces/probe/configmaps";
const ALL_CM: &str = "/api/v1/configmaps";
const WD: &str = "/apis/probe.example.com/v1/namespaces/probe/widgets";
const EVENTS: &str = "/api/v1/namespaces/probe/events";
const LIFETIME: Duration = Duration::from_secs(2000);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// A model, and the time.
struct World {
    model: Model,
    now: Duration,
}

impl World {
    /// Applies an operation to the watch cache of the ConfigMaps.
    fn turn(&mut self, turn: WatchCacheOp) {
        self.model
            .turn_watch_caches(self.now, turn, Some(("", "configmaps")), None);
    }

    fn empty(settings: &ServerSettings) -> Self {
        Self {
            model: Model::new(settings),
            now: Duration::ZERO,
        }
    }

    fn fixture(version: Version) -> Self {
        let mut world = Self::empty(&ServerSettings {
            version,
            ..ServerSettings::default()
        });
        world.apply("", "namespaces", None, "probe", json!({}));
        world.apply("", "namespaces", None, "probe-b", json!({}));
        for n in 1..=5 {
            let labels = if n % 2 == 1 {
                json!({ "app": "x" })
            } else {
                json!({})
            };
            let object = json!({ "metadata": { "labels": labels }, "data": { "k": "1" } });
            world.apply("", "configmaps", Some("probe"), &format!("cm-{n}"), object);
        }
        world.apply("", "configmaps", Some("probe-b"), "cm-1", json!({}));
        world.apply(
            "probe.example.com",
            "widgets",
            Some("probe"),
            "wd-1",
            json!({ "spec": { "a": 1 } }),
        );
        assert_eq!(world.model.revision(), 1009);
        world
    }

    fn apply(
        &mut self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
        json: Value,
    ) -> Written {
        let manifest = Manifest {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            json,
            binds: None,
            at: Place::default(),
        };
        self.model.apply(self.now, &manifest).unwrap()
    }

    /// Writes a ConfigMap in `probe`.
    fn put(&mut self, name: &str, data: &str, app: Option<&str>) -> Written {
        let labels = app.map_or(json!({}), |app| json!({ "app": app }));
        let object = json!({ "metadata": { "labels": labels }, "data": { "k": data } });
        self.apply("", "configmaps", Some("probe"), name, object)
    }

    fn delete(&mut self, name: &str) -> Written {
        self.model.delete(self.now, &cm(name)).unwrap()
    }

    fn relabel(&mut self, name: &str, app: Option<&str>) -> Written {
        let labels = [("app".to_owned(), app.map(str::to_owned))];
        self.model.relabel(self.now, &cm(name), &labels).unwrap()
    }

    fn parse(&self, target: &str) -> Result<Request, Answer> {
        parse(&get_request(target), self.model.catalog(), true)
    }

    fn list_request(&self, target: &str) -> ListRequest {
        match self.parse(target) {
            Ok(Request::List(list)) => list,
            other => panic!("{target} is no list: {other:?}"),
        }
    }

    fn watch_request(&self, target: &str) -> WatchRequest {
        match self.parse(target) {
            Ok(Request::Watch(watch)) => watch,
            other => panic!("{target} is no watch: {other:?}"),
        }
    }

    fn object_request(&self, target: &str) -> GetRequest {
        match self.parse(target) {
            Ok(Request::Get(get)) => get,
            other => panic!("{target} is no single object: {other:?}"),
        }
    }

    fn page(&self, target: &str) -> Page {
        let outcome = self.model.list(self.now, self.now, &self.list_request(target));
        let ListOutcome::Page(page) = outcome else {
            panic!("{target} gave no page: {outcome:?}")
        };
        page
    }

    /// Returns the result of a list: `rv: keys, (continue) +remaining`, `wait`, or code and message of the error.
    fn list(&self, target: &str) -> String {
        self.list_after(target, Duration::ZERO)
    }

    /// Does the same, `since` after the request arrived.
    fn list_after(&self, target: &str, since: Duration) -> String {
        match self
            .model
            .list(self.now + since, self.now, &self.list_request(target))
        {
            ListOutcome::Page(page) => story(&page),
            ListOutcome::Refused(status) => refusal(&status),
            ListOutcome::Wait { until } => format!("wait {:?}", until - self.now),
        }
    }

    fn get(&self, target: &str, since: Duration) -> String {
        match self
            .model
            .get(self.now + since, self.now, &self.object_request(target))
        {
            GetOutcome::Found { object, .. } => format!("{} {}", object.revision, object.key),
            GetOutcome::Refused(status) => refusal(&status),
            GetOutcome::Wait { until } => format!("wait {:?}", until - self.now),
        }
    }

    fn watch(&self, target: &str) -> WatchSession {
        self.model
            .open_watch(self.now, &self.watch_request(target), LIFETIME)
            .unwrap()
    }

    /// Returns the events of a watch until it is pending or over, one per line, e.g. `ADDED probe/cm-1@1003`.
    fn drain(&self, watch: &mut WatchSession) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            match watch.poll(&self.model, self.now) {
                WatchPoll::Frame(frame) => {
                    let line: Value = serde_json::from_slice(&frame.line).unwrap();
                    assert_eq!(frame.line.last(), Some(&b'\n'));
                    let word = line["type"].as_str().unwrap().to_owned();
                    said.push(match (&frame.kind, &frame.object) {
                        (FrameType::Error { code, .. }, None) => {
                            format!("{word} {code} {}", line["object"]["message"].as_str().unwrap())
                        }
                        (FrameType::Bookmark { initial_events_end }, Some(object)) => {
                            let marker = initial_events_end.as_deref().map_or("", |_| " end");
                            format!("{word} {}{marker}", object.resource_version)
                        }
                        (_, Some(object)) => {
                            let shown = &line["object"]["metadata"];
                            assert_eq!(shown["resourceVersion"], object.resource_version.as_str());
                            assert_eq!(shown["uid"], object.uid.as_str());
                            format!("{word} {}@{}", object.key, object.resource_version)
                        }
                        (_, None) => format!("{word} of nothing"),
                    });
                }
                WatchPoll::Pending { .. } => return said,
                WatchPoll::End => {
                    said.push("end".to_owned());
                    return said;
                }
            }
        }
    }
}

fn cm(name: &str) -> ObjectName {
    ObjectName {
        group: String::new(),
        plural: "configmaps".to_owned(),
        namespace: Some("probe".to_owned()),
        name: name.to_owned(),
    }
}

fn get_request(target: &str) -> HttpRequest {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    HttpRequest {
        method: http::Method::GET,
        path: path.to_owned(),
        query: query.into(),
        headers: http::HeaderMap::new(),
        body: ::bytes::Bytes::new(),
    }
}

fn story(page: &Page) -> String {
    let names: Vec<&str> = page.items.iter().map(|item| item.key.as_str()).collect();
    let more = if page.continue_token.is_some() {
        " continue"
    } else {
        ""
    };
    let remaining = page
        .remaining
        .map(|remaining| format!(" +{remaining}"))
        .unwrap_or_default();
    format!("{}: {}{more}{remaining}", page.resource_version, names.join(" "))
}

fn refusal(status: &Status) -> String {
    format!("{} {}", status.code, status.message)
}
