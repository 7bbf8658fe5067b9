//! Mutating admission policies in a server: which writes they change, when they are evaluated again, and what a failing one does.
//! What a single mutation makes of an object is tested with the evaluator, in `builtin_kinds::admission_policy`, and by the
//! probes of `fidelity/oracle/probes/mutations.yaml`.

mod support;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{HookCall, Input, Outcome, Output, Server};
use rstest::rstest;
use serde_json::{Value, json};
use support::request;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Status and body of the answer.
fn ask(server: &mut Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = request(method, path, body);
    let input = Input::Request {
        stream: StreamId(1),
        conn: ConnId(1),
        request,
    };
    server.handle(Duration::ZERO, input);
    let (mut code, mut bytes) = (0, Vec::new());
    while let Some(output) = server.poll_output() {
        if let Output::Head { status, .. } = &output {
            code = *status;
        }
        if let Output::Call { id, call } = &output {
            let outcome = reviewed(call);
            server.handle(Duration::ZERO, Input::HookAnswered { id: *id, outcome });
        }
        if let Output::Data { bytes: chunk, .. } = output {
            bytes.extend_from_slice(&chunk);
        }
    }
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// What the only webhook answers: it notes what the policies made of the data, unless it did that before.
fn reviewed(call: &HookCall) -> Outcome {
    let review: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let data = &review["request"]["object"]["data"];
    let mut response = json!({ "uid": review["request"]["uid"], "allowed": true });
    if data["hook"].is_null() {
        let noted = format!("saw {}", data["size"].as_str().unwrap_or("nothing"));
        let patch = json!([{ "op": "add", "path": "/data/hook", "value": noted }]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    let answer =
        json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response });
    Outcome::Answered {
        status: 200,
        content_type: "application/json".to_owned(),
        body: answer.to_string().into_bytes(),
    }
}

fn server() -> Server {
    Server::standalone(ServerSettings::default(), 7)
}

/// Adds a policy for ConfigMaps with a binding of the same name. `spec` overrides fields.
fn add(server: &mut Server, name: &str, expression: &str, spec: &Value) {
    let mut policy = json!({ "metadata": { "name": name }, "spec": {
        "matchConstraints": { "resourceRules": [
            { "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"] },
        ] },
        "reinvocationPolicy": "Never",
        "mutations": [
            { "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } },
        ],
    } });
    for (field, value) in spec.as_object().into_iter().flatten() {
        policy["spec"][field] = value.clone();
    }
    let (status, answer) = ask(server, "POST", POLICIES, &policy);
    assert_eq!(status, 201, "{answer}");
    let mut binding = json!({ "metadata": { "name": name }, "spec": { "policyName": name } });
    if policy["spec"]["paramKind"].is_object() {
        binding["spec"]["paramRef"] =
            json!({ "name": "params", "namespace": "default", "parameterNotFoundAction": "Deny" });
    }
    let (status, answer) = ask(server, "POST", BINDINGS, &binding);
    assert_eq!(status, 201, "{answer}");
}

fn map(data: &Value) -> Value {
    json!({ "metadata": { "name": "m" }, "data": data })
}

#[test]
fn a_policy_changes_what_is_created_updated_and_patched() {
    let mut server = server();
    add(
        &mut server,
        "p",
        "Object{data: {'by': 'p', 'what': request.operation}}",
        &Value::Null,
    );
    let (status, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(
        (status, &created["data"]),
        (201, &json!({ "own": "1", "by": "p", "what": "CREATE" }))
    );
    let path = format!("{MAPS}/m");
    let (status, updated) = ask(&mut server, "PUT", &path, &map(&json!({ "own": "2" })));
    assert_eq!(
        (status, &updated["data"]),
        (200, &json!({ "own": "2", "by": "p", "what": "UPDATE" }))
    );
    let (status, patched) = ask(&mut server, "PATCH", &path, &json!({ "data": { "by": "me" } }));
    assert_eq!((status, &patched["data"]["by"]), (200, &json!("p")));
    let (_, stored) = ask(&mut server, "GET", &path, &Value::Null);
    assert_eq!(stored["data"], patched["data"]);
}

#[test]
fn a_policy_that_is_deleted_changes_nothing() {
    let mut server = server();
    add(&mut server, "p", "Object{data: {'by': 'p'}}", &Value::Null);
    let (status, _) = ask(&mut server, "DELETE", &format!("{BINDINGS}/p"), &json!({}));
    assert_eq!(status, 200);
    let (_, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(created["data"], json!({ "own": "1" }));
}

#[rstest]
#[case::never("Never", "1")]
#[case::if_needed("IfNeeded", "2")]
fn a_policy_is_evaluated_again_after_a_later_one_changed_the_object(
    #[case] reinvoked: &str,
    #[case] expected: &str,
) {
    let mut server = server();
    let count = "Object{data: {'seen': string(object.data.size())}}";
    add(
        &mut server,
        "a",
        count,
        &json!({ "reinvocationPolicy": reinvoked, "matchConditions": [
            { "name": "early", "expression": "!('seen' in object.data) || object.data['seen'] == '1'" },
        ] }),
    );
    add(
        &mut server,
        "b",
        "Object{data: {'late': 'x'}}",
        &json!({ "mutations": [
            { "patchType": "JSONPatch", "jsonPatch": { "expression":
                "[JSONPatch{op: 'add', path: '/data/late', value: 'x'}, JSONPatch{op: 'remove', path: '/data/own'}]" } },
        ] }),
    );
    let (status, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(
        (status, &created["data"]),
        (201, &json!({ "late": "x", "seen": expected }))
    );
}

/// Adds the webhook for ConfigMaps that [`reviewed`] answers.
fn add_webhook(server: &mut Server) {
    let webhook = json!({
        "name": "h.example.com",
        "clientConfig": { "url": "https://127.0.0.1:1" },
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    let configuration = json!({ "metadata": { "name": "h" }, "webhooks": [webhook] });
    assert_eq!(ask(server, "POST", WEBHOOKS, &configuration).0, 201);
}

/// The policy counts what is there: "1" before the webhook added to it.
#[rstest]
#[case::never("Never", "1")]
#[case::if_needed("IfNeeded", "3")]
fn policies_come_before_webhooks_and_again_after_their_changes(
    #[case] reinvoked: &str,
    #[case] expected: &str,
) {
    let mut server = server();
    let spec = json!({ "reinvocationPolicy": reinvoked });
    add(
        &mut server,
        "p",
        "Object{data: {'size': string(object.data.size())}}",
        &spec,
    );
    add_webhook(&mut server);
    let (status, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(
        (status, &created["data"]),
        (201, &json!({ "own": "1", "size": expected, "hook": "saw 1" }))
    );
}

#[test]
fn a_policy_that_failed_is_evaluated_again_after_a_webhook_changed_the_object() {
    let mut server = server();
    let spec = json!({ "reinvocationPolicy": "IfNeeded", "failurePolicy": "Ignore" });
    add(
        &mut server,
        "p",
        "Object{data: {'after': object.data.hook}}",
        &spec,
    );
    add_webhook(&mut server);
    let (status, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(
        (status, &created["data"]),
        (
            201,
            &json!({ "own": "1", "hook": "saw nothing", "after": "saw nothing" })
        )
    );
}

#[test]
fn parameters_are_read_and_must_be_there() {
    let mut server = server();
    let spec = json!({ "paramKind": { "apiVersion": "v1", "kind": "Secret" } });
    add(
        &mut server,
        "p",
        "Object{data: {'of': params.metadata.name}}",
        &spec,
    );
    let (status, refused) = ask(&mut server, "POST", MAPS, &map(&Value::Null));
    assert_eq!((status, refused["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        refused["message"],
        "policy 'p' with binding 'p' denied request: failed to configure binding: no params found for policy binding with \
         `Deny` parameterNotFoundAction"
    );
    let secret = json!({ "metadata": { "name": "params" } });
    assert_eq!(
        ask(&mut server, "POST", "/api/v1/namespaces/default/secrets", &secret).0,
        201
    );
    let (status, created) = ask(&mut server, "POST", MAPS, &map(&Value::Null));
    assert_eq!((status, &created["data"]), (201, &json!({ "of": "params" })));
}

#[rstest]
#[case::fail("Fail", 403)]
#[case::ignore("Ignore", 201)]
fn an_error_is_a_refusal_unless_it_is_ignored(#[case] failure_policy: &str, #[case] expected: u16) {
    let mut server = server();
    let spec = json!({ "failurePolicy": failure_policy });
    add(&mut server, "p", "Object{data: {'a': object.data.nope}}", &spec);
    let (status, answer) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    assert_eq!(status, expected);
    if status == 403 {
        let message = "policy 'p' with binding 'p' denied request: expression 'Object{data: {'a': object.data.nope}}' \
                       resulted in error: no such key: nope";
        assert_eq!(
            (&answer["message"], &answer["reason"]),
            (&json!(message), &json!("Invalid"))
        );
        assert_eq!(answer["details"]["causes"], json!([{ "message": message }]));
    } else {
        assert_eq!(answer["data"], json!({ "own": "1" }));
    }
}

#[test]
fn the_writer_does_not_own_what_a_policy_adds() {
    let mut server = server();
    add(&mut server, "p", "Object{data: {'by': 'p'}}", &Value::Null);
    let (_, created) = ask(&mut server, "POST", MAPS, &map(&json!({ "own": "1" })));
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(*fields, json!({ ".": {}, "f:own": {} }));
}
