//! Writes against the recordings of a real apiserver: the same requests, byte for byte the same bodies and events.
//!
//! What a recording leaves open (uids, times, versions) is left open here in the same way. The whole comparison, with
//! all headers and all probes, is the crate `fidelity`'s.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::api::{Access, Header, HttpRequest};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::{Control, Input, Output, Server};
use rstest::rstest;
use serde_json::Value;

const CM: &str = "/api/v1/namespaces/probe/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = r#"{"metadata":{"name":"widgets.probe.example.com"},"spec":{"group":"probe.example.com",
    "scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,
    "storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
    "subresources":{"status":{}}}]}}"#;
const WD: &str = "/apis/probe.example.com/v1/namespaces/probe/widgets";

/// An answer: its status, its headers, its body so far.
#[derive(Debug, Default, Clone)]
struct Received {
    status: u16,
    headers: Vec<Header>,
    body: String,
}

/// A server and its answers.
struct World {
    server: Server,
    answers: BTreeMap<StreamId, Received>,
    streams: u64,
    token: Option<String>,
}

impl World {
    /// Fixture F of the probes.
    fn fixture(version: Version) -> Self {
        let settings = ServerSettings {
            version,
            ..ServerSettings::default()
        };
        let mut world = Self {
            server: Server::standalone(settings, 7),
            answers: BTreeMap::new(),
            streams: 0,
            token: None,
        };
        for namespace in ["probe", "probe-b", "probe-empty"] {
            let body = format!(r#"{{"metadata":{{"name":"{namespace}"}}}}"#);
            world.expect("POST", "/api/v1/namespaces", &body);
        }
        world.expect("POST", CRDS, WIDGETS);
        for number in 1..=5 {
            let labels = if number % 2 == 1 {
                r#","labels":{"app":"x"}"#
            } else {
                ""
            };
            let body = format!(r#"{{"metadata":{{"name":"cm-{number}"{labels}}},"data":{{"k":"1"}}}}"#);
            world.expect("POST", CM, &body);
        }
        let body = r#"{"metadata":{"name":"cm-1"},"data":{"k":"1"}}"#;
        world.expect("POST", "/api/v1/namespaces/probe-b/configmaps", body);
        let body = r#"{"apiVersion":"probe.example.com/v1","kind":"Widget","metadata":{"name":"wd-1"},"spec":{"size":1}}"#;
        world.expect("POST", WD, body);
        world
    }

    fn send(&mut self, method: &str, target: &str, content_type: Option<&str>, body: &str) -> StreamId {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = http::HeaderMap::new();
        let default = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        if !body.is_empty() {
            headers.insert(
                "content-type",
                content_type
                    .unwrap_or(default)
                    .parse()
                    .expect("what the test reads and writes is well-formed"),
            );
        }
        headers.insert(
            "accept",
            "application/json"
                .parse()
                .expect("what the test reads and writes is well-formed"),
        );
        if let Some(token) = &self.token {
            let value = format!("Bearer {token}");
            headers.insert(
                "authorization",
                value
                    .parse()
                    .expect("what the test reads and writes is well-formed"),
            );
        }
        let request = HttpRequest {
            method: method
                .parse()
                .expect("what the test reads and writes is well-formed"),
            path: path.to_owned(),
            query: query.into(),
            headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        let conn = ConnId(1);
        self.server.handle(
            Duration::ZERO,
            Input::Request {
                stream,
                conn,
                request,
            },
        );
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Head {
                    stream,
                    status,
                    headers,
                    ..
                } => {
                    let answer = self.answers.entry(stream).or_default();
                    (answer.status, answer.headers) = (status, headers);
                }
                Output::Data { stream, bytes } => {
                    let answer = self.answers.entry(stream).or_default();
                    answer.body.push_str(
                        std::str::from_utf8(&bytes).expect("what the test reads and writes is well-formed"),
                    );
                }
                Output::FlushBarrier { .. }
                | Output::Goaway { .. }
                | Output::End { .. }
                | Output::Call { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. }
                | Output::Close { .. } => {}
            }
        }
        stream
    }

    fn answer(&self, stream: StreamId) -> Received {
        self.answers.get(&stream).cloned().unwrap_or_default()
    }

    /// Sends a request that must succeed; returns the resourceVersion of its response.
    fn expect(&mut self, method: &str, target: &str, body: &str) -> String {
        let stream = self.send(method, target, None, body);
        let answer = self.answer(stream);
        assert!(answer.status < 300, "{method} {target}: {answer:?}");
        let body: Value =
            serde_json::from_str(&answer.body).expect("what the test reads and writes is well-formed");
        body["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A recorded request.
#[derive(Debug, Default)]
struct Recorded {
    method: String,
    target: String,
    content_type: Option<String>,
    body: String,
}

/// A recording without the headers: requests, and `what was answered` of each as one text.
fn recording(version: &str, id: &str) -> (Vec<Recorded>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../fidelity/oracle/recordings/{version}/{id}.txt"));
    let text = std::fs::read_to_string(&path).expect("what the test reads and writes is well-formed");
    let (mut requests, mut outcome): (Vec<Recorded>, String) = (Vec::new(), String::new());
    let mut in_body = false;
    for line in text.lines() {
        if line == ">" {
            in_body = true;
        } else if let Some(line) = line.strip_prefix("> ") {
            let asked = requests.last_mut();
            match (asked, line.split_once(' ')) {
                (Some(asked), _) if in_body => asked.body = line.replace("(empty)", ""),
                (Some(asked), Some(("content-type:", value))) => asked.content_type = Some(value.to_owned()),
                (_, Some((method, target))) => requests.push(Recorded {
                    method: method.to_owned(),
                    target: target.to_owned(),
                    ..Recorded::default()
                }),
                (_, None) => panic!("{id}: {line}"),
            }
        } else if let Some(head) = line.strip_prefix("< ") {
            in_body = false;
            if let Some(status) = head.strip_prefix("HTTP/1.1 ") {
                outcome.push_str(&format!("{}\n", &status[..3]));
            } else if head.starts_with("warning: ") {
                outcome.push_str(&format!("{head}\n"));
            }
        } else if line.starts_with('{') || line.starts_with("| ") {
            outcome.push_str(&format!("{line}\n"));
        }
    }
    (requests, outcome)
}

/// Uids, times and versions as the recordings show them.
fn normalised(text: &str, versions: &[String]) -> String {
    let uid = regex_like_uids(text);
    let mut out = text.to_owned();
    for (number, uid) in uid.iter().enumerate() {
        out = out.replace(uid.as_str(), &format!("<uid{}>", number + 1));
    }
    let mut numbers: Vec<u64> = versions
        .iter()
        .filter_map(|version| version.parse().ok())
        .collect();
    let mark = "\"resourceVersion\":\"";
    for (at, _) in out.match_indices(mark) {
        let rest = &out[at + mark.len()..];
        if let Some(Ok(number)) = rest.split('"').next().map(str::parse) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    for (rank, number) in numbers.iter().enumerate() {
        out = out.replace(&format!("{mark}{number}\""), &format!("{mark}r{}\"", rank + 1));
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        let mark = format!("\"{name}\":\"2026-01-01T00:00:00Z\"");
        out = out.replace(&mark, &format!("\"{name}\":\"<time>\""));
    }
    out
}

/// In order of first appearance.
fn regex_like_uids(text: &str) -> Vec<String> {
    let mut uids: Vec<String> = Vec::new();
    for word in text.split(|c: char| !(c.is_ascii_hexdigit() || c == '-')) {
        let is_uid = word.len() == 36 && word.matches('-').count() == 4;
        if is_uid && !uids.iter().any(|uid| uid == word) {
            uids.push(word.to_owned());
        }
    }
    uids
}

/// Most recordings are without them, and who writes here says no name.
fn without_managed_fields(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(",\"managedFields\":[") {
        out.push_str(&rest[..at]);
        let (mut depth, mut quoted, mut escaped) = (0, false, false);
        let end = rest[at..].find(|c: char| {
            match c {
                '"' if !escaped => quoted = !quoted,
                '[' if !quoted => depth += 1,
                ']' if !quoted => depth -= 1,
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            c == ']' && !quoted && depth == 0
        });
        rest = &rest[at + end.expect("a list ends") + 1..];
    }
    out + rest
}

const FINALIZER: &str = r#"{"metadata":{"finalizers":["probe.example.com/f"]}}"#;

/// Each row: a probe, and what comes before it; what it reads is bound to the name in its braces.
#[rstest]
#[case("writes-124-create", &[])]
#[case("writes-125-create-existing", &[])]
#[case("writes-126-create-with-version", &[])]
#[case("writes-127-create-without-name", &[])]
#[case("writes-129-broken-json", &[])]
#[case("writes-130-create-in-missing-namespace", &[])]
#[case("writes-131-namespace-mismatch", &[])]
#[case("writes-132-stale-update", &[("V", "GET", "cm-1", ""), ("", "PATCH", "cm-1", r#"{"data":{"k":"2"}}"#)])]
#[case("writes-133-update-without-version", &[])]
#[case("writes-134-update-nothing", &[])]
#[case("writes-135-update-missing", &[])]
#[case("writes-136-update-other-name", &[])]
#[case("writes-137-delete", &[])]
#[case("writes-138-delete-with-finalizer", &[("V", "PATCH", "cm-1", FINALIZER)])]
#[case("writes-139-last-finalizer", &[("", "PATCH", "cm-1", FINALIZER), ("V", "DELETE", "cm-1", "")])]
#[case("writes-140-delete-wrong-uid", &[])]
#[case("writes-141-delete-collection", &[])]
#[case("writes-142-delete-dry-run", &[])]
#[case("writes-143-merge-patch", &[])]
#[case("writes-144-json-patch-test", &[])]
#[case("writes-145-strategic-patch-custom", &[])]
#[case("writes-146-patch-as-json", &[])]
#[case("writes-147-apply-without-manager", &[])]
#[case("writes-150-status-update", &[("W", "GET", "wd-1", "")])]
#[case("writes-151-spec-update", &[("W", "PATCH", "wd-1/status", r#"{"status":{"ready":true}}"#)])]
#[case("writes-152-create-dry-run", &[])]
#[case("writes-153-unknown-dry-run", &[])]
#[case("writes-154-unknown-field", &[])]
#[case("writes-155-too-large", &[])]
#[case("negotiation-123-body-as-text", &[])]
#[case("discovery-019-post-all-namespaces", &[])]
#[case("discovery-020-delete-all-namespaces", &[])]
#[case("discovery-022-put-cr-collection", &[])]
fn a_write_is_answered_as_recorded(
    #[case] id: &str,
    #[case] before: &[(&str, &str, &str, &str)],
    #[values(Version::OLDEST, Version::NEWEST)] version: Version,
) {
    let (requests, outcome) = recording(version.name(), id);
    let mut world = World::fixture(version);
    let mut names = BTreeMap::from([("L", world.expect("GET", CM, ""))]);
    for (name, method, object, body) in before {
        let collection = if object.starts_with("wd") { WD } else { CM };
        let read = world.expect(method, &format!("{collection}/{object}"), body);
        if !name.is_empty() {
            names.insert(name, read);
        }
    }
    let expand = |text: &str| {
        let mut text = text.replace("{x*3145728}", &"x".repeat(3_145_728));
        for (name, value) in &names {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    };
    let mut streams = Vec::new();
    for asked in &requests {
        let target = expand(&asked.target);
        let body = expand(&asked.body);
        streams.push(world.send(&asked.method, &target, asked.content_type.as_deref(), &body));
    }
    // A watch is recorded before what it saw: its lines stand where they came. Here they follow the answers.
    let is_watch = |asked: &Recorded| asked.target.contains("watch=1");
    let (mut shown, mut lines) = (String::new(), String::new());
    for (asked, stream) in requests.iter().zip(&streams) {
        let answer = world.answer(*stream);
        shown.push_str(&format!("{}\n", answer.status));
        for (_, warning) in answer.headers.iter().filter(|(name, _)| name == "Warning") {
            let warning = warning.to_str().expect("it is ASCII");
            shown.push_str(&format!("warning: {warning}\n"));
        }
        if is_watch(asked) {
            lines.extend(answer.body.lines().map(|line| format!("| {line}\n")));
        } else {
            shown.push_str(&answer.body);
        }
    }
    let (mut expected, mut expected_lines) = (String::new(), String::new());
    for line in without_managed_fields(&outcome).lines() {
        let to = if line.starts_with("| ") {
            &mut expected_lines
        } else {
            &mut expected
        };
        to.push_str(&format!("{line}\n"));
    }
    let bound: Vec<String> = names
        .iter()
        .filter(|(name, _)| {
            requests
                .iter()
                .any(|asked| asked.target.contains(&format!("{{{name}}}")))
        })
        .map(|(_, value)| value.clone())
        .collect();
    assert_eq!(
        normalised(&without_managed_fields(&(shown + &lines)), &bound),
        expected + &expected_lines
    );
}

#[test]
fn a_restart_ends_watches_and_compaction_makes_old_lists_too_old() {
    let mut world = World::fixture(Version::NEWEST);
    let before = world.expect("GET", CM, "");
    let watch = world.send("GET", &format!("{CM}?watch=1&resourceVersion={before}"), None, "");
    world.expect("POST", CM, r#"{"metadata":{"name":"new"}}"#);
    let exact = format!("{CM}?resourceVersion={before}&resourceVersionMatch=Exact");
    world.expect("GET", &exact, "");

    world
        .server
        .handle(Duration::ZERO, Input::Control(Control::Compact));
    assert!(world.server.poll_output().is_none());
    let old = world.send("GET", &exact, None, "");
    assert_eq!(world.answer(old).status, 410);

    world
        .server
        .handle(Duration::ZERO, Input::Control(Control::RestartWatchCaches));
    let ended = Output::End {
        stream: watch,
        how: Ending::Eof,
    };
    assert_eq!(world.server.poll_output(), Some(ended));
    let late = world.send("GET", &format!("{CM}?watch=1&resourceVersion={before}"), None, "");
    let body = world.answer(late).body;
    assert!(body.contains("\"code\":410"), "{body}");
}

#[rstest]
#[case(Some("nobody"), 401, "discovery-024-bad-token")]
#[case(Some("poor"), 403, "discovery-025-forbidden")]
fn forbidden_answers_are_as_recorded(#[case] token: Option<&str>, #[case] status: u16, #[case] id: &str) {
    let mut world = World::fixture(Version::NEWEST);
    world.server = world.server.with_access(Access {
        token: "full".to_owned(),
        limited_token: Some("poor".to_owned()),
        signing_secret: [0; 32],
    });
    world.token = token.map(str::to_owned);
    let stream = world.send("GET", CM, None, "");
    let answer = world.answer(stream);
    let (_, outcome) = recording(Version::NEWEST.name(), id);
    assert_eq!(format!("{status}\n{}", answer.body), outcome);
    let flow_control = answer
        .headers
        .iter()
        .any(|(name, _)| name.as_str().starts_with("x-kubernetes-pf"));
    assert_eq!(flow_control, status != 401);
}
