//! Reviews of tokens and rules, which no recording can hold: every server knows other tokens, and a real one returns its
//! rules in another order. The rest is compared by the crate `fidelity`.

mod support;

use std::time::Duration;

use fake_apiserver::api::access::{AccessSettings, Authorization};
use fake_apiserver::api::{Access, User};
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;
use serde_json::{Value, json};
use support::request;

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
        signing_secret: [0; 32],
    })
}

/// Code and body of the answer to a request at `now`.
fn ask(
    server: &mut Server,
    now: Duration,
    token: &str,
    (method, path): (&str, &str),
    body: &Value,
) -> (u16, Value) {
    let mut request = request(method, path, body);
    if !token.is_empty() {
        let value = format!("Bearer {token}").parse().expect("tokens are ASCII");
        request.headers.insert("authorization", value);
    }
    let (stream, conn) = (StreamId(1), ConnId(1));
    let input = Input::Request {
        stream,
        conn,
        request,
    };
    server.handle(now, input);
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
    (code, serde_json::from_slice(&body).expect("answers are JSON"))
}

/// The status of a review that is answered.
fn status(server: &mut Server, token: &str, path: &str, spec: &Value) -> Value {
    let body = json!({ "spec": spec });
    let (code, body) = ask(server, Duration::ZERO, token, ("POST", path), &body);
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
fn self_subject_reviews_return_the_user(
    #[case] knows_tokens: bool,
    #[case] token: &str,
    #[case] expected: Value,
) {
    let mut server = server(knows_tokens);
    let outcome = status(&mut server, token, ASKER, &json!({}));
    assert_eq!(outcome, json!({ "userInfo": expected }));
}

/// `path`: one that only they have.
#[rstest]
#[case::full(true, "full", (3, 3), "*")]
#[case::poor(true, "poor", (2, 2), "/version/")]
#[case::any_user(false, "", (1, 1), "*")]
fn what_they_may_do(
    #[case] knows_tokens: bool,
    #[case] token: &str,
    #[case] count: (usize, usize),
    #[case] path: &str,
) {
    let mut server = server(knows_tokens);
    let outcome = status(&mut server, token, RULES, &json!({ "namespace": "default" }));
    let of = |field: &str| outcome[field].as_array().unwrap().clone();
    let (resources, paths) = (of("resourceRules"), of("nonResourceRules"));
    assert_eq!((resources.len(), paths.len()), count, "{outcome}");
    let mut urls = paths
        .iter()
        .map(|rule| rule["nonResourceURLs"].as_array().unwrap());
    assert!(urls.any(|urls| urls.contains(&path.into())), "{outcome}");
    assert_eq!(outcome["incomplete"], false);
}

#[rstest]
#[case::where_rights_are_kept(true, false)]
#[case::where_everybody_may(false, true)]
fn what_another_may_do(#[case] knows_tokens: bool, #[case] allowed: bool) {
    let mut server = server(knows_tokens);
    let spec = json!({ "user": "bob", "resourceAttributes": { "verb": "get", "resource": "pods" } });
    assert_eq!(status(&mut server, "full", ACCESS, &spec)["allowed"], allowed);
}

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// A server with the service account `robot`, and a token of it.
fn with_token(spec: Value) -> (Server, String) {
    let mut server = server(true);
    let account = json!({ "metadata": { "name": "robot" } });
    let post = ("POST", ACCOUNTS);
    assert_eq!(ask(&mut server, Duration::ZERO, "full", post, &account).0, 201);
    let outcome = status(&mut server, "full", &format!("{ACCOUNTS}/robot/token"), &spec);
    let token = outcome["token"].as_str().expect("there is one").to_owned();
    (server, token)
}

/// Who asks with this token at this time, or the code of the refusal.
fn requester(server: &mut Server, now: Duration, token: &str) -> Result<Value, u16> {
    match ask(server, now, token, ("POST", ASKER), &json!({})) {
        (201, body) => Ok(body["status"]["userInfo"]["username"].clone()),
        (code, _) => Err(code),
    }
}

#[test]
fn a_token_of_a_service_account_is_good_until_it_expires() {
    let (mut server, token) = with_token(json!({ "expirationSeconds": 600 }));
    let at = Duration::from_secs;
    let robot = Ok(json!("system:serviceaccount:default:robot"));
    assert_eq!(requester(&mut server, at(599), &token), robot);
    let pods = ("GET", "/api/v1/namespaces/default/pods");
    assert_eq!(ask(&mut server, at(599), &token, pods, &Value::Null).0, 403);
    assert_eq!(requester(&mut server, at(600), &token), Err(401));
    let review = json!({ "spec": { "token": token } });
    let (_, outcome) = ask(&mut server, at(600), "full", ("POST", TOKEN), &review);
    let why = "[invalid bearer token, service account token has expired]";
    assert_eq!(outcome["status"], json!({ "user": {}, "error": why }));
}

#[test]
fn a_token_is_good_for_whom_it_is_meant() {
    let (mut server, token) = with_token(json!({ "audiences": ["a", "b"] }));
    assert_eq!(requester(&mut server, Duration::ZERO, &token), Err(401));
    let review = json!({ "token": token, "audiences": ["b", "c", "a"] });
    let outcome = status(&mut server, "full", TOKEN, &review);
    assert_eq!(outcome["audiences"], json!(["b", "a"]));
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(outcome["user"]["groups"], json!(groups));
    let outcome = status(&mut server, "full", TOKEN, &json!({ "token": token }));
    let why = "[invalid bearer token, token audiences [\"a\" \"b\"] is invalid for the target audiences \
               [\"https://kubernetes.default.svc\"]]";
    assert_eq!(outcome["error"], why);
}

#[rstest]
#[case::the_account(json!({}), "serviceaccounts/robot", "serviceaccounts \"robot\" not found")]
#[case::what_it_is_bound_to(
    json!({ "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "door" } }),
    "secrets/door",
    "service account token has been invalidated"
)]
fn a_token_is_good_for_nothing_without(#[case] spec: Value, #[case] gone: &str, #[case] why: &str) {
    let mut server = server(true);
    let now = Duration::ZERO;
    let mut create = |path: &str, name: &str| {
        let path = format!("/api/v1/namespaces/default/{path}");
        let object = json!({ "metadata": { "name": name } });
        assert_eq!(ask(&mut server, now, "full", ("POST", &path), &object).0, 201);
    };
    create("serviceaccounts", "robot");
    create("secrets", "door");
    let outcome = status(&mut server, "full", &format!("{ACCOUNTS}/robot/token"), &spec);
    let token = outcome["token"].as_str().expect("there is one").to_owned();
    assert!(requester(&mut server, now, &token).is_ok());
    let gone = format!("/api/v1/namespaces/default/{gone}");
    assert_eq!(
        ask(&mut server, now, "full", ("DELETE", &gone), &json!({})).0,
        200
    );
    assert_eq!(requester(&mut server, now, &token), Err(401));
    let outcome = status(&mut server, "full", TOKEN, &json!({ "token": token }));
    assert_eq!(outcome["error"], format!("[invalid bearer token, {why}]"));
}

#[test]
fn another_server_does_not_take_it() {
    let (_, token) = with_token(json!({}));
    let mut other = Server::standalone(ServerSettings::default(), 7).with_access(Access {
        token: "full".to_owned(),
        limited_token: None,
        signing_secret: [1; 32],
    });
    assert_eq!(requester(&mut other, Duration::ZERO, &token), Err(401));
}

/// As the flags `--token-auth-file`, `--anonymous-auth` and `--authorization-mode` of kube-apiserver.
#[test]
fn settings_of_access_are_those_of_the_flags() {
    let with = |settings: AccessSettings| server(true).with_access_settings(settings);
    let pods = ("GET", "/api/v1/pods");
    let code = |server: &mut Server, token: &str, request: (&str, &str)| {
        ask(server, Duration::ZERO, token, request, &Value::Null).0
    };

    let jane = User {
        name: "jane".to_owned(),
        uid: "7".to_owned(),
        groups: vec!["dev".to_owned()],
        ..User::default()
    };
    let mut listed = with(AccessSettings {
        tokens: vec![("hers".to_owned(), jane)],
        ..AccessSettings::default()
    });
    let outcome = status(&mut listed, "hers", ASKER, &json!({}));
    let expected = json!({ "username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"] });
    assert_eq!(outcome["userInfo"], expected);
    let outcome = status(&mut listed, "full", TOKEN, &json!({ "token": "hers" }));
    assert_eq!(outcome["user"], expected);
    assert_eq!(code(&mut listed, "hers", pods), 403);
    assert_eq!(
        code(&mut listed, "", pods),
        403,
        "anonymous, and without the right"
    );

    let mut closed = with(AccessSettings {
        anonymous: false,
        ..AccessSettings::default()
    });
    assert_eq!(code(&mut closed, "", pods), 401);
    assert_eq!(code(&mut closed, "poor", ("GET", "/version")), 200);

    let mut open = with(AccessSettings::default()).with_authorization(Authorization::AlwaysAllow);
    assert_eq!(code(&mut open, "poor", pods), 200);
    assert_eq!(code(&mut open, "unknown", pods), 401);
}

#[rstest]
#[case::everybody_is_let_in(false, true)]
#[case::tokens_are_known(true, false)]
fn what_is_allowed_for_want_of_authorization_has_that_as_its_reason(
    #[case] knows_tokens: bool,
    #[case] expected: bool,
) {
    let mut server = server(knows_tokens);
    let review = json!({
        "kind": "SubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {
            "user": "bob",
            "groups": ["system:masters"],
            "resourceAttributes": { "verb": "delete", "resource": "nodes" },
        },
    });
    let token = if knows_tokens { "full" } else { "" };
    let (code, answer) = ask(&mut server, Duration::ZERO, token, ("POST", ACCESS), &review);
    assert_eq!((code, &answer["status"]["allowed"]), (201, &json!(true)));
    let reason = answer["status"]["reason"].as_str().unwrap_or_default();
    assert_eq!(
        reason.starts_with("there is no authorization"),
        expected,
        "{reason}"
    );
}
