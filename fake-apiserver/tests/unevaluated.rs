//! Warnings about stored objects that a real server would act on and the fake does not evaluate. No recording has them:
//! real servers send no such warnings, and comparisons leave them out.

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use fake_apiserver::model::unevaluated::{KINDS, PREFIX};
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use http::header::WARNING;
use serde_json::{Value, json};
use support::request;

/// Status of the answer, and the warnings of the fake's own.
fn ask(server: &mut Server, method: &str, path: &str, body: &Value) -> (u16, Vec<String>) {
    let request = request(method, path, body);
    let input = Input::Request {
        stream: StreamId(1),
        conn: ConnId(1),
        request,
    };
    server.handle(Duration::ZERO, input);
    let mut answered = (0, Vec::new());
    while let Some(output) = server.poll_output() {
        if let Output::Head { status, headers, .. } = output {
            let warnings = headers
                .into_iter()
                .filter(|(name, _)| *name == WARNING)
                .map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).into_owned());
            answered = (status, warnings.filter(|text| text.contains(PREFIX)).collect());
        }
    }
    answered
}

fn server() -> Server {
    Server::standalone(ServerSettings::default(), 7)
}

/// A collection, and an object that can be created in it.
fn examples() -> Vec<(&'static str, &'static str, Value)> {
    const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
    vec![
        (
            FLOW,
            "flowschemas",
            json!({ "metadata": { "name": "f" }, "spec": { "priorityLevelConfiguration": { "name": "exempt" } } }),
        ),
        (
            FLOW,
            "prioritylevelconfigurations",
            json!({ "metadata": { "name": "l" }, "spec": {
                "type": "Limited", "limited": { "limitResponse": { "type": "Reject" } },
            }}),
        ),
    ]
}

#[test]
fn every_kind_that_is_never_evaluated_warns_its_creator() {
    let mut server = server();
    let mut warned = BTreeSet::new();
    for (group, plural, object) in examples() {
        let (status, warnings) = ask(&mut server, "POST", &format!("{group}/{plural}"), &object);
        assert_eq!(status, 201, "{plural}");
        let [warning] = warnings.as_slice() else {
            panic!("{plural}: one warning expected, not {warnings:?}");
        };
        warned.extend(KINDS.iter().filter_map(|(_, kind, effect)| {
            let expected = format!("299 - \"{PREFIX}{kind} is stored and never evaluated: {effect}\"");
            (*warning == expected).then_some(*kind)
        }));
    }
    let all: BTreeSet<&str> = KINDS.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(warned, all);
}

#[test]
fn evaluated_rules_add_no_warning() {
    let object = json!({ "metadata": { "name": "c" } });
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(ask(&mut server(), "POST", path, &object), (201, Vec::new()));
}
