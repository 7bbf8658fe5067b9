//! Requests judged by roles and bindings, as they are at the moment of the request. What a single rule allows is tested
//! with the evaluator, in `builtin_kinds::rbac`.

mod support;

use std::time::Duration;

use fake_apiserver::api::User;
use fake_apiserver::api::access::{AUTHENTICATED, Authorization};
use fake_apiserver::record::{ConnId, Replica, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;
use serde_json::{Value, json};
use support::request;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Connections whose clients have certificates: each a user.
const ADMIN: ConnId = ConnId(1);
const ANN: ConnId = ConnId(2);

struct World {
    server: Server,
    stream: u64,
}

impl World {
    fn new() -> Self {
        let mut server = Server::standalone(ServerSettings::default(), 7)
            .with_bootstrap_objects()
            .with_authorization(Authorization::Rbac);
        for (conn, name, group) in [(ADMIN, "root", "system:masters"), (ANN, "ann", "team")] {
            server.handle(
                Duration::ZERO,
                Input::Connected {
                    conn,
                    replica: Replica::Primary,
                    peer: None,
                },
            );
            let user = User {
                name: name.to_owned(),
                groups: vec![group.to_owned(), AUTHENTICATED.to_owned()],
                ..User::default()
            };
            server.handle(Duration::ZERO, Input::Authenticated { conn, user });
        }
        Self { server, stream: 0 }
    }

    fn ask(&mut self, conn: ConnId, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.ask_as(conn, method, path, body, &[])
    }

    /// Code and body; of a stream its beginning.
    fn ask_as(
        &mut self,
        conn: ConnId,
        method: &str,
        path: &str,
        body: &Value,
        impersonated: &[(&'static str, &str)],
    ) -> (u16, Value) {
        let mut request = request(method, path, body);
        for (name, value) in impersonated {
            let value = value.parse().expect("names are ASCII");
            request.headers.append(*name, value);
        }
        self.stream += 1;
        let stream = StreamId(self.stream);
        self.server.handle(
            Duration::ZERO,
            Input::Request {
                stream,
                conn,
                request,
            },
        );
        let (mut code, mut bytes) = (0, Vec::new());
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Head { status, .. } => code = status,
                Output::Data { bytes: more, .. } => bytes.extend_from_slice(&more),
                Output::FlushBarrier { stream } => self.server.handle(Duration::ZERO, Input::Flushed(stream)),
                Output::Goaway { .. }
                | Output::End { .. }
                | Output::Call { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. }
                | Output::Close { .. } => {}
            }
        }
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Creates a role object as the administrator.
    fn grant(&mut self, path: &str, object: &Value) {
        let (code, answer) = self.ask(ADMIN, "POST", &format!("{RBAC}/{path}"), object);
        assert_eq!(code, 201, "{answer}");
    }

    /// Grants `ann` these rules everywhere.
    fn grant_ann(&mut self, rules: &Value) {
        self.grant(
            "clusterroles",
            &json!({ "metadata": { "name": "anns" }, "rules": rules }),
        );
        self.grant(
            "clusterrolebindings",
            &binding("anns", "ClusterRole", "anns", "ann"),
        );
    }

    /// Code and message of what `ann` is answered.
    fn ann(&mut self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let (code, answer) = self.ask(ANN, method, path, body);
        (code, answer["message"].as_str().unwrap_or_default().to_owned())
    }
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    })
}

fn rule(verbs: &[&str], resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": ["", "rbac.authorization.k8s.io"], "resources": resources })
}

#[test]
fn a_right_lasts_as_long_as_its_role_and_binding() {
    let mut world = World::new();
    let refused = (
        403,
        "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\""
            .to_owned(),
    );
    assert_eq!(world.ann("GET", PODS, &Value::Null), refused);
    let role = json!({ "metadata": { "name": "reader" }, "rules": [rule(&["list", "watch"], &["pods"])] });
    world.grant("namespaces/default/roles", &role);
    assert_eq!(world.ann("GET", PODS, &Value::Null), refused);
    let readers = binding("readers", "Role", "reader", "ann");
    world.grant("namespaces/default/rolebindings", &readers);
    assert_eq!(world.ann("GET", PODS, &Value::Null).0, 200);
    assert_eq!(world.ann("GET", &format!("{PODS}?watch=1"), &Value::Null).0, 200);
    assert_eq!(world.ann("GET", "/api/v1/pods", &Value::Null).0, 403);

    let narrowed = json!({ "rules": [rule(&["list"], &["pods"])] });
    let role = format!("{RBAC}/namespaces/default/roles/reader");
    assert_eq!(world.ask(ADMIN, "PATCH", &role, &narrowed).0, 200);
    let (code, message) = world.ann("GET", &format!("{PODS}?watch=1"), &Value::Null);
    assert_eq!(code, 403, "a watch is refused before it begins");
    assert_eq!(
        message,
        "pods is forbidden: User \"ann\" cannot watch resource \"pods\" in API group \"\" in the namespace \"default\""
    );

    assert_eq!(world.ask(ADMIN, "DELETE", &role, &Value::Null).0, 200);
    let (code, message) = world.ann("GET", PODS, &Value::Null);
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\": \
         RBAC: role.rbac.authorization.k8s.io \"reader\" not found"
    );
}

#[test]
fn default_roles_are_objects_like_others() {
    let mut world = World::new();
    assert_eq!(world.ann("GET", "/apis", &Value::Null).0, 200);
    let discovery = format!("{RBAC}/clusterrolebindings/system:discovery");
    assert_eq!(world.ask(ADMIN, "DELETE", &discovery, &Value::Null).0, 200);
    assert_eq!(
        world.ann("GET", "/apis", &Value::Null),
        (
            403,
            "forbidden: User \"ann\" cannot get path \"/apis\"".to_owned()
        )
    );
    let viewers = binding("viewers", "ClusterRole", "view", "ann");
    world.grant("namespaces/default/rolebindings", &viewers);
    assert_eq!(
        world.ann("GET", PODS, &Value::Null).0,
        200,
        "the rules of `view` are aggregated"
    );
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(world.ann("GET", secrets, &Value::Null).0, 403);
}

const ESCALATES: &str = "user \"ann\" (groups=[\"team\" \"system:authenticated\"]) is attempting to grant RBAC permissions \
                         not currently held:\n";

#[rstest]
#[case::own_rights(&["create"], "clusterroles", json!({ "metadata": { "name": "x" }, "rules": [rule(&["create"], &["roles"])] }), "")]
#[case::more(
    &["create"],
    "clusterroles",
    json!({ "metadata": { "name": "x" }, "rules": [rule(&["get", "delete"], &["pods"])] }),
    "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: {ESCALATES}\
     {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"delete\"]}\n\
     {APIGroups:[\"rbac.authorization.k8s.io\"], Resources:[\"pods\"], Verbs:[\"get\" \"delete\"]}"
)]
#[case::escalate(&["create", "escalate"], "clusterroles", json!({ "metadata": { "name": "x" }, "rules": [rule(&["get"], &["pods"])] }), "")]
#[case::aggregation(
    &["create"],
    "clusterroles",
    json!({ "metadata": { "name": "x" }, "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] } }),
    "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: must have cluster-admin privileges to use the \
     aggregationRule"
)]
#[case::binding(
    &["create"],
    "clusterrolebindings",
    binding("x", "ClusterRole", "system:public-info-viewer", "ann"),
    ""
)]
#[case::binding_to_more(
    &["create"],
    "namespaces/default/rolebindings",
    binding("x", "ClusterRole", "system:auth-delegator", "ann"),
    "rolebindings.rbac.authorization.k8s.io \"x\" is forbidden: {ESCALATES}\
     {APIGroups:[\"authentication.k8s.io\"], Resources:[\"tokenreviews\"], Verbs:[\"create\"]}\n\
     {APIGroups:[\"authorization.k8s.io\"], Resources:[\"subjectaccessreviews\"], Verbs:[\"create\"]}"
)]
#[case::bind(&["create", "bind"], "namespaces/default/rolebindings", binding("x", "ClusterRole", "cluster-admin", "ann"), "")]
#[case::binding_to_nothing(
    &["create"],
    "clusterrolebindings",
    binding("x", "ClusterRole", "nosuch", "ann"),
    "clusterrolebindings.rbac.authorization.k8s.io \"nosuch\" not found"
)]
fn nobody_grants_more_than_they_have(
    #[case] verbs: &[&str],
    #[case] path: &str,
    #[case] object: Value,
    #[case] expected: &str,
) {
    let mut world = World::new();
    let all = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];
    world.grant_ann(&json!([rule(verbs, &all)]));
    let (code, message) = world.ann("POST", &format!("{RBAC}/{path}"), &object);
    assert_eq!(message, expected.replace("{ESCALATES}", ESCALATES));
    let expected = match expected {
        "" => 201,
        lost if lost.ends_with("not found") => 404,
        _ => 403,
    };
    assert_eq!(code, expected);
}

#[test]
fn an_update_is_checked_as_what_it_leads_to() {
    let mut world = World::new();
    world.grant_ann(&json!([rule(&["get", "patch", "update"], &["clusterroles"])]));
    let role = json!({ "metadata": { "name": "x" }, "rules": [rule(&["get"], &["clusterroles"])] });
    world.grant("clusterroles", &role);
    let path = format!("{RBAC}/clusterroles/x");
    let wider = json!({ "rules": [rule(&["get"], &["secrets"])] });
    let (code, message) = world.ann("PATCH", &path, &wider);
    assert_eq!(code, 403);
    assert!(
        message.contains("Resources:[\"secrets\"], Verbs:[\"get\"]"),
        "{message}"
    );
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    assert_eq!(world.ann("PATCH", &path, &labelled).0, 200, "its rights are held");
    assert_eq!(world.ask(ADMIN, "PATCH", &path, &wider).0, 200);
    assert_eq!(world.ann("PATCH", &path, &labelled).0, 200, "nothing changes");
    let finalized = json!({ "metadata": { "finalizers": ["example.com/x"] } });
    assert_eq!(
        world.ann("PATCH", &path, &finalized).0,
        200,
        "finalizers grant nothing"
    );
    let relabelled = json!({ "metadata": { "labels": { "a": "c" } } });
    assert_eq!(world.ann("PATCH", &path, &relabelled).0, 403);
}

#[test]
fn reviews_answer_by_the_same_roles() {
    let mut world = World::new();
    world.grant_ann(&json!([rule(&["get"], &["pods"])]));
    let own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked =
        |verb: &str| json!({ "spec": { "resourceAttributes": { "verb": verb, "resource": "pods" } } });
    let (_, answer) = world.ask(ANN, "POST", own, &asked("get"));
    assert_eq!(
        answer["status"],
        json!({
            "allowed": true,
            "reason": "RBAC: allowed by ClusterRoleBinding \"anns\" of ClusterRole \"anns\" to User \"ann\"",
        })
    );
    let (_, answer) = world.ask(ANN, "POST", own, &asked("list"));
    assert_eq!(answer["status"], json!({ "allowed": false }));
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (_, answer) = world.ask(ANN, "POST", rules, &json!({ "spec": { "namespace": "default" } }));
    let listed = answer["status"]["resourceRules"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(listed.first(), Some(&rule(&["get"], &["pods"])), "{answer}");
}

#[test]
fn who_impersonates_needs_a_right_to_each_name() {
    let mut world = World::new();
    world.grant_ann(&json!([
        { "verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"] },
        { "verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["devs"] },
        { "verbs": ["impersonate"], "apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"] },
    ]));
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut code = |headers: &[(&'static str, &str)]| {
        let (code, answer) = world.ask_as(ANN, "POST", whoami, &json!({}), headers);
        (code, answer["status"]["userInfo"]["username"].clone())
    };
    let user = ("impersonate-user", "bob");
    assert_eq!(code(&[user]), (201, json!("bob")));
    assert_eq!(code(&[user, ("impersonate-group", "devs")]), (201, json!("bob")));
    assert_eq!(
        code(&[user, ("impersonate-extra-scopes", "x")]),
        (201, json!("bob"))
    );
    assert_eq!(code(&[user, ("impersonate-group", "system:masters")]).0, 403);
    assert_eq!(code(&[user, ("impersonate-uid", "u")]).0, 403);
    assert_eq!(code(&[user, ("impersonate-extra-other", "x")]).0, 403);
    assert_eq!(code(&[("impersonate-user", "eve")]).0, 403);
}

/// Without certificates and tokens everybody is anonymous.
#[test]
fn anonymous_requests_are_judged_too() {
    let mut world = World::new();
    let nobody = ConnId(9);
    assert_eq!(world.ask(nobody, "GET", "/readyz", &Value::Null).0, 200);
    assert_eq!(world.ask(nobody, "GET", PODS, &Value::Null).0, 403);
    world.server = Server::standalone(ServerSettings::default(), 7);
    assert_eq!(world.ask(nobody, "GET", PODS, &Value::Null).0, 200);
}
