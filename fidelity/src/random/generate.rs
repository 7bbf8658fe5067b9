//! Generates a short program from a seed: writes of a few small objects, and reads of them with all combinations of options.
//!
//! The existing objects are known during generation, so that writes succeed; the values that a read captures are not, so they
//! may be `none`.

use std::collections::BTreeMap;

use fake_apiserver::scenario::Version;
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Between, Subject};

/// A program: steps of a probe, in up to two parts.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) subject: Subject,
    pub(super) seed: u64,
    pub(super) namespace: String,
    pub(super) parts: [Vec<Value>; 2],
    pub(super) between: Between,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ConfigMap,
    Widget,
}

struct Maker {
    random: Rng,
    namespace: String,
    steps: Vec<Value>,
    /// Labels of the existing objects.
    there: BTreeMap<(Kind, &'static str), Option<&'static str>>,
    last_write: BTreeMap<Kind, usize>,
    writes: usize,
    versions: usize,
    tokens: usize,
    marks: usize,
}

const NAMES: [&str; 5] = ["a-1", "a-2", "b", "b-1", "c"];

impl Program {
    pub(super) fn new(seed: u64, version: Version, between: Between) -> Self {
        let namespace = format!("r{seed}v{}", version as u8);
        let mut maker = Maker {
            random: Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED),
            namespace: namespace.clone(),
            steps: Vec::new(),
            there: BTreeMap::new(),
            last_write: BTreeMap::new(),
            writes: 0,
            versions: 0,
            tokens: 0,
            marks: 0,
        };
        let mut parts = [Vec::new(), Vec::new()];
        for part in &mut parts {
            for _ in 0..maker.random.usize(2..5) {
                maker.write_step();
            }
            for _ in 0..maker.random.usize(3..9) {
                match maker.random.u8(0..10) {
                    0..3 => maker.write_step(),
                    3..7 => maker.list(),
                    7 => maker.get(),
                    _ => maker.watch(),
                }
            }
            *part = std::mem::take(&mut maker.steps);
        }
        if between == Between::Nothing {
            parts[1].clear();
        }
        Self {
            subject: Subject::Reads,
            seed,
            namespace,
            parts,
            between,
        }
    }

    pub(super) fn steps(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Returns all steps in one list.
    pub(super) fn whole(&self) -> Vec<Value> {
        let mut whole = self.parts[0].clone();
        match self.between {
            Between::Nothing => {}
            Between::Compaction => whole.push(json!({"control": "compact"})),
            Between::Restart => whole.push(json!({"control": "restart-apiserver"})),
        }
        whole.extend(self.parts[1].iter().cloned());
        whole
    }

    /// Formats the program as an entry of a file of probes.
    pub(super) fn as_probe(&self) -> String {
        probe(self.subject, self.seed, &self.whole(), &self.namespace)
    }
}

/// Formats steps as an entry of a file of probes.
pub(super) fn probe(subject: Subject, seed: u64, steps: &[Value], namespace: &str) -> String {
    let managers = match subject {
        Subject::Reads => "",
        Subject::Writes => ", keep_managed_fields",
        Subject::Definitions => ", causes_once",
    };
    let mut out = format!(
        "- id: random-{seed}\n  row: 0\n  title: Found by a random program\n  normalise: [drop_plain_bookmarks, hide_times, hide_retry_after{managers}]\n  play:\n"
    );
    for step in steps {
        out.push_str(&format!(
            "    - {}\n",
            step.to_string().replace(namespace, "probe")
        ));
    }
    out
}

impl Maker {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(0..of.len())]
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn kind(&mut self) -> Kind {
        if self.chance(70) {
            Kind::ConfigMap
        } else {
            Kind::Widget
        }
    }

    fn collection(&self, kind: Kind) -> String {
        match kind {
            Kind::ConfigMap => format!("/api/v1/namespaces/{}/configmaps", self.namespace),
            Kind::Widget => format!("/apis/probe.example.com/v1/namespaces/{}/widgets", self.namespace),
        }
    }

    /// Adds a write, and a read that waits until the watch cache has it, without a request to etcd.
    fn write_step(&mut self) {
        let kind = self.kind();
        let name = self.one(&NAMES);
        let request = self.write(kind, name);
        let deletes = request["method"] == "DELETE";
        self.steps.push(json!({"request": request}));
        if deletes {
            self.settle_by_list(kind);
        } else {
            self.settle(kind);
        }
    }

    /// A deletion does not return its revision, but a list waits for it.
    fn settle_by_list(&mut self, kind: Kind) {
        let path = self.collection(kind);
        self.steps.push(json!({"request": {"path": path}}));
    }

    fn settle(&mut self, kind: Kind) {
        if let Some(write) = self.last_write.get(&kind) {
            let path = format!("{}/a-1?resourceVersion={{w{write}}}", self.collection(kind));
            self.steps.push(json!({"request": {"path": path}}));
        }
    }

    fn write(&mut self, kind: Kind, name: &'static str) -> Value {
        let collection = self.collection(kind);
        let content = |text: &str| match kind {
            Kind::ConfigMap => ("data", json!({"k": text})),
            Kind::Widget => ("spec", json!({"k": text})),
        };
        self.writes += 1;
        let text = self.writes.to_string();
        match self.there.get(&(kind, name)).copied() {
            None => {
                let label = self.one(&[None, Some("x"), Some("y")]);
                self.there.insert((kind, name), label);
                let (field, value) = content(&text);
                let mut body = json!({"metadata": {"name": name}});
                if kind == Kind::Widget {
                    body["apiVersion"] = "probe.example.com/v1".into();
                    body["kind"] = "Widget".into();
                }
                if let Some(label) = label {
                    body["metadata"]["labels"] = json!({"app": label});
                }
                body[field] = value;
                self.captured("POST", collection, &body, kind)
            }
            Some(_) if self.chance(25) => {
                self.there.remove(&(kind, name));
                // The response has no resourceVersion; a list returns it.
                json!({"method": "DELETE", "path": format!("{collection}/{name}")})
            }
            Some(_) => {
                let body = match self.random.u8(0..4) {
                    0 => {
                        let label = self.one(&[None, Some("x"), Some("y")]);
                        self.there.insert((kind, name), label);
                        json!({"metadata": {"labels": {"app": label}}})
                    }
                    // Changes nothing.
                    1 if self.chance(30) => json!({}),
                    _ => {
                        let (field, value) = content(&text);
                        json!({field: value})
                    }
                };
                self.captured("PATCH", format!("{collection}/{name}"), &body, kind)
            }
        }
    }

    fn captured(&mut self, method: &str, path: String, body: &Value, kind: Kind) -> Value {
        self.versions += 1;
        let number = self.versions;
        self.last_write.insert(kind, number);
        json!({
            "method": method, "path": path, "body": body.to_string(),
            "capture": {format!("w{number}?"): "/metadata/resourceVersion"},
        })
    }

    fn some_version(&mut self) -> String {
        let number = self.random.usize(0..self.versions.max(1)) + 1;
        if self.versions == 0 {
            return "0".to_owned();
        }
        match self.random.u8(0..60) {
            // Of the last name this is the future, for which a server waits three seconds.
            0..2 => format!("{{w{number}+1}}"),
            2..8 => format!("{{w{number}-1}}"),
            8..24 => format!("{{w{}}}", self.versions),
            _ => format!("{{w{number}}}"),
        }
    }

    /// Mostly no headers; sometimes the metadata only.
    fn headers(&mut self, shape: &str) -> Value {
        if self.chance(8) {
            json!({"Accept": format!("application/json;as=PartialObjectMetadata{shape};g=meta.k8s.io;v=v1")})
        } else {
            json!({})
        }
    }

    fn label_selector(&mut self) -> Option<(&'static str, Option<&'static str>)> {
        if self.chance(55) {
            return None;
        }
        Some(self.one(&[
            ("app%3Dx", Some("x")),
            ("app!%3Dx", Some("y")),
            ("app+in+(x,y)", Some("y")),
            ("app", Some("x")),
            ("!app", None),
            ("app+notin+(x)", None),
        ]))
    }

    fn field_selector(&mut self) -> Option<(String, &'static str)> {
        if self.chance(75) {
            return None;
        }
        let name = self.one(&NAMES);
        Some(match self.random.u8(0..4) {
            0 | 1 => (format!("metadata.name%3D{name}"), name),
            2 => ("metadata.name!%3Db".to_owned(), "c"),
            _ => (format!("metadata.namespace%3D{}", self.namespace), "b-1"),
        })
    }

    fn list(&mut self) {
        let kind = self.kind();
        let mut options: Vec<String> = Vec::new();
        match self.random.u8(0..20) {
            0..7 => {}
            7..11 => options.push("resourceVersion=0".into()),
            11 if self.chance(15) => options.push("resourceVersion=999999999".into()),
            _ => options.push(format!("resourceVersion={}", self.some_version())),
        }
        match self.random.u8(0..20) {
            0..9 => {}
            9..14 => options.push("resourceVersionMatch=Exact".into()),
            14..19 => options.push("resourceVersionMatch=NotOlderThan".into()),
            _ => options.push("resourceVersionMatch=Newest".into()),
        }
        if self.chance(60) {
            let limit = self.one(&["1", "2", "3", "3", "5", "500", "0", "-1"]);
            options.push(format!("limit={limit}"));
        }
        if self.tokens > 0 && self.chance(35) {
            let token = self.random.usize(0..self.tokens) + 1;
            if self.chance(75) {
                options.retain(|option| option.starts_with("limit") || option == "resourceVersion=0");
            }
            options.push(format!("continue={{t{token}}}"));
        }
        if let Some((selector, _)) = self.label_selector() {
            options.push(format!("labelSelector={selector}"));
        }
        if let Some((selector, _)) = self.field_selector() {
            options.push(format!("fieldSelector={selector}"));
        }
        self.tokens += 1;
        let tokens = self.tokens;
        let mut path = self.collection(kind);
        let paged = options
            .iter()
            .any(|option| option.starts_with("limit") || option.starts_with("continue"));
        // Pages of all namespaces would show other objects of the real server.
        if !paged && self.chance(10) {
            path = path.replace(&format!("/namespaces/{}", self.namespace), "");
            options.retain(|option| !option.starts_with("fieldSelector"));
            options.push(format!("fieldSelector=metadata.namespace%3D{}", self.namespace));
        }
        if !options.is_empty() {
            path.push('?');
            path.push_str(&options.join("&"));
        }
        let headers = self.headers("List");
        self.steps.push(json!({"request": {
            "path": path, "headers": headers,
            "capture": {format!("t{tokens}?"): "/metadata/continue"},
        }}));
    }

    fn get(&mut self) {
        let kind = self.kind();
        let name = self.one(&NAMES);
        let mut path = format!("{}/{name}", self.collection(kind));
        match self.random.u8(0..10) {
            0..4 => {}
            4..7 => path.push_str("?resourceVersion=0"),
            7 if self.chance(20) => path.push_str("?resourceVersion=999999999"),
            _ => {
                if let Some(write) = self.last_write.get(&kind) {
                    path.push_str(&format!("?resourceVersion={{w{write}}}"));
                }
            }
        }
        self.steps.push(json!({"request": {"path": path}}));
    }

    /// Adds a watch with concurrent writes, of which it must receive the last. Never from 1: whether that is too old depends
    /// on the age of the real server's store.
    fn watch(&mut self) {
        let kind = self.kind();
        let mut options = vec!["watch=1".to_owned()];
        match self.random.u8(0..20) {
            0..5 => {}
            5..8 => options.push("resourceVersion=0".into()),
            _ => options.push(format!("resourceVersion={}", self.some_version())),
        }
        if self.chance(45) {
            let initial = self.one(&["true", "true", "true", "false"]);
            options.push(format!("sendInitialEvents={initial}"));
            if self.chance(92) {
                options.push("resourceVersionMatch=NotOlderThan".into());
            }
        } else if self.chance(3) {
            options.push("resourceVersionMatch=NotOlderThan".into());
        }
        if self.chance(60) {
            options.push("allowWatchBookmarks=true".into());
        }
        if self.chance(5) {
            options.push("limit=1".into());
        }
        let label = self.label_selector();
        let field = self.field_selector();
        if let Some((selector, _)) = &label {
            options.push(format!("labelSelector={selector}"));
        }
        if let Some((selector, _)) = &field {
            options.push(format!("fieldSelector={selector}"));
        }
        let mut path = format!("{}?{}", self.collection(kind), options.join("&"));
        if self.chance(5) {
            path = path.replacen("/v1/", "/v1/watch/", 1).replace("watch=1&", "");
        }
        let headers = self.headers("");
        let mut meanwhile = Vec::new();
        let mut elsewhere = false;
        for _ in 0..self.random.usize(0..4) {
            let own = kind;
            let (kind, name) = if self.chance(85) {
                (kind, self.one(&NAMES))
            } else {
                (self.kind(), "c")
            };
            elsewhere |= kind != own;
            let request = self.write(kind, name);
            meanwhile.push(json!({"at_ms": 0, "request": request}));
        }
        let name = field.map_or("b-1", |(_, name)| name);
        let mark = self.mark(kind, name, label.map(|(_, value)| value));
        meanwhile.push(json!({"at_ms": 0, "request": mark.0}));
        self.steps.push(json!({"watch": {
            "path": path, "headers": headers, "read_ms": 2500, "until": mark.1, "meanwhile": meanwhile,
        }}));
        if elsewhere {
            self.settle_by_list(match kind {
                Kind::ConfigMap => Kind::Widget,
                Kind::Widget => Kind::ConfigMap,
            });
        }
        self.settle(kind);
    }

    /// Adds a write of `name` with a unique text, in which watches that select `label` see it.
    fn mark(
        &mut self,
        kind: Kind,
        name: &'static str,
        label: Option<Option<&'static str>>,
    ) -> (Value, String) {
        self.marks += 1;
        let text = format!("mark-{}", self.marks);
        let field = match kind {
            Kind::ConfigMap => "data",
            Kind::Widget => "spec",
        };
        let mut body = json!({field: {"mark": text}});
        let there = self.there.get(&(kind, name)).copied();
        let collection = self.collection(kind);
        let label = label.unwrap_or(there.flatten());
        self.there.insert((kind, name), label);
        let request = if there.is_some() {
            body["metadata"] = json!({"labels": {"app": label}});
            self.captured("PATCH", format!("{collection}/{name}"), &body, kind)
        } else {
            if kind == Kind::Widget {
                body["apiVersion"] = "probe.example.com/v1".into();
                body["kind"] = "Widget".into();
            }
            body["metadata"] = json!({"name": name});
            if let Some(label) = label {
                body["metadata"]["labels"] = json!({"app": label});
            }
            self.captured("POST", collection, &body, kind)
        };
        (request, text)
    }
}
