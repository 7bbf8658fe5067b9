//! Reviews of tokens and rules, which no recording can hold: every server knows other tokens, and a real one names its
//! rules in an order of its own. The rest is compared by the crate `fidelity`.

use std::time::Duration;

use fake_apiserver::api::{Access, HttpRequest};
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;
use serde_json::{Value, json};

const RULES: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const ASKER: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const TOKEN: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A server that knows two tokens, or one that lets everybody in.
fn server(knows_tokens: bool) -> Server {
    let server = Server::standalone(ServerSettings::default(), 7);
    if !knows_tokens {
        return server;
    }
    server.with_access(Access {
        token: "full".to_owned(),
        limited_token: Some("poor".to_owned()),
    })
}

/// The status of a review that is answered.
fn status(server: &mut Server, token: &str, path: &str, spec: &Value) -> Value {
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    if !token.is_empty() {
        headers.insert(
            "authorization",
            format!("Bearer {token}").parse().expect("tokens are ASCII"),
        );
    }
    let request = HttpRequest {
        method: http::Method::POST,
        path: path.to_owned(),
        query: String::new(),
        headers,
        body: json!({ "spec": spec }).to_string().into(),
    };
    let (stream, conn) = (StreamId(1), ConnId(1));
    let input = Input::Request {
        stream,
        conn,
        request,
    };
    server.handle(Duration::ZERO, input);
    let (mut code, mut body) = (0, Vec::new());
    while let Some(output) = server.poll_output() {
        match output {
            Output::Head { status, .. } => code = status,
            Output::Data { bytes, .. } => body.extend_from_slice(&bytes),
            Output::Fence { .. } | Output::Goaway { .. } | Output::End { .. } => {}
        }
    }
    let body: Value = serde_json::from_slice(&body).expect("answers are JSON");
    assert_eq!(code, 201, "{body}");
    body["status"].clone()
}

fn admin() -> Value {
    json!({ "username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"] })
}

fn limited() -> Value {
    json!({ "username": "limited", "uid": "limited", "groups": ["system:authenticated"] })
}

fn nobody() -> Value {
    json!({ "username": "system:anonymous", "groups": ["system:unauthenticated"] })
}

const AUDIENCE: &str = "https://kubernetes.default.svc";

#[rstest]
#[case::full(true, json!({ "token": "full" }), json!({ "authenticated": true, "user": admin(), "audiences": [AUDIENCE] }))]
#[case::poor(true, json!({ "token": "poor", "audiences": ["x", AUDIENCE] }), json!({ "authenticated": true, "user": limited(), "audiences": [AUDIENCE] }))]
#[case::for_others(true, json!({ "token": "full", "audiences": ["x"] }), json!({ "user": {}, "error": "invalid bearer token" }))]
#[case::unknown(true, json!({ "token": "ful" }), json!({ "user": {}, "error": "invalid bearer token" }))]
#[case::known_to_none(false, json!({ "token": "full" }), json!({ "user": {}, "error": "invalid bearer token" }))]
fn whose_token_it_is(#[case] knows_tokens: bool, #[case] spec: Value, #[case] expected: Value) {
    let mut server = server(knows_tokens);
    assert_eq!(status(&mut server, "full", TOKEN, &spec), expected);
}

#[rstest]
#[case::full(true, "full", admin())]
#[case::poor(true, "poor", limited())]
#[case::of_nobody(false, "", nobody())]
#[case::with_a_token_that_nobody_asks_for(false, "full", nobody())]
fn who_asks(#[case] knows_tokens: bool, #[case] token: &str, #[case] expected: Value) {
    let mut server = server(knows_tokens);
    let told = status(&mut server, token, ASKER, &json!({}));
    assert_eq!(told, json!({ "userInfo": expected }));
}

/// The rules that stand at the end are those that make the difference.
#[rstest]
#[case::full(true, "full", (3, 3), "*")]
#[case::poor(true, "poor", (2, 2), "/version/")]
#[case::whoever_comes(false, "", (1, 1), "*")]
fn what_they_may_do(
    #[case] knows_tokens: bool,
    #[case] token: &str,
    #[case] count: (usize, usize),
    #[case] last: &str,
) {
    let mut server = server(knows_tokens);
    let told = status(&mut server, token, RULES, &json!({ "namespace": "default" }));
    let of = |field: &str| told[field].as_array().unwrap().clone();
    let (resources, paths) = (of("resourceRules"), of("nonResourceRules"));
    assert_eq!((resources.len(), paths.len()), count, "{told}");
    let urls = paths.last().unwrap()["nonResourceURLs"].as_array().unwrap();
    assert_eq!(urls.last().unwrap(), last);
    assert_eq!(told["incomplete"], false);
}

#[rstest]
#[case::where_rights_are_kept(true, false)]
#[case::where_everybody_may(false, true)]
fn what_another_may_do(#[case] knows_tokens: bool, #[case] allowed: bool) {
    let mut server = server(knows_tokens);
    let spec = json!({ "user": "bob", "resourceAttributes": { "verb": "get", "resource": "pods" } });
    assert_eq!(
        status(&mut server, "full", ACCESS, &spec),
        json!({ "allowed": allowed })
    );
}
