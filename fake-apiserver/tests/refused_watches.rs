//! A refusal is one Status: a scripted event behind it would be bytes that no apiserver sends, and a client would be accused of
//! not reading them.

use std::path::Path;
use std::time::Duration;

use fake_apiserver::api::HttpRequest;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::{ServerSettings, parse_rule};
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;
use serde_json::Value;

#[rstest]
#[case::error("{error: {code: 410}}")]
#[case::line("{send: [\"{}\"]}")]
fn no_scripted_event_follows_a_refusal(#[case] action: &str) {
    let mut server = Server::standalone(ServerSettings::default(), 7);
    let rule = format!("when: {{watch: next}}\ndo: {action}\n");
    let rule = parse_rule(Path::new("rule"), &rule, server.catalog()).expect("the rule is valid");
    server.add_rule(Duration::ZERO, rule).expect("it can be met");
    let request = HttpRequest {
        method: http::Method::GET,
        path: "/api/v1/configmaps".to_owned(),
        query: "watch=1&resourceVersion=tomorrow".into(),
        headers: http::HeaderMap::new(),
        body: bytes::Bytes::new(),
    };
    server.handle(
        Duration::ZERO,
        Input::Request {
            stream: StreamId(1),
            conn: ConnId(1),
            request,
        },
    );
    let (mut code, mut body) = (0, Vec::new());
    while let Some(output) = server.poll_output() {
        match output {
            Output::Head { status, .. } => code = status,
            Output::Data { bytes, .. } => body.extend_from_slice(&bytes),
            Output::FlushBarrier { .. }
            | Output::Goaway { .. }
            | Output::End { .. }
            | Output::Call { .. }
            | Output::Upstream { .. }
            | Output::UpstreamWrite { .. }
            | Output::Close { .. } => {}
        }
    }
    assert_eq!(
        code, 500,
        "as a real apiserver answers an invalid resourceVersion"
    );
    let status: Value = serde_json::from_slice(&body).expect("one document");
    assert_eq!(status["kind"], "Status");
    let records = format!("{:?}", server.records());
    assert!(
        records.contains("no event sent: the request is refused"),
        "{records}"
    );
}
