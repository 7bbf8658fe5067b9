//! What an operator reads and writes before its own resource, on the server of a scenario.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario;
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;
use serde_json::{Value, json};
use support::request;

/// Returns a server that runs a scenario with this target, and an object of it.
fn server(target: &str, objects: &str) -> Server {
    let text = format!(
        "scenario: v1\ntitle: A claim\nwhy: A reason.\ncovers: [WATCH-01]\n{target}\n{objects}\nsteps:\n  \
         - when: {{list: 1}}\n  - do: {{apply: {{secret: {{name: later, namespace: later}}}}}}\n"
    );
    let parsed = scenario::parse("world", Path::new("world.yaml"), &text);
    Server::new(Arc::new(parsed.unwrap_or_else(|errors| panic!("{errors:?}"))), 0)
}

fn configmaps() -> Server {
    server(
        "target: {resource: configmaps}",
        "objects: [{configmap: {name: a}}]",
    )
}

/// Returns the status code and body of the response.
fn ask(server: &mut Server, stream: u64, (method, path): (&str, &str), body: &Value) -> (u16, Value) {
    let input = Input::Request {
        stream: StreamId(stream),
        conn: ConnId(1),
        request: request(method, path, body),
    };
    server.handle(Duration::ZERO, input);
    let (mut code, mut bytes) = (0, Vec::new());
    while let Some(output) = server.poll_output() {
        match output {
            Output::Head { status, .. } => code = status,
            Output::Data { bytes: more, .. } => bytes.extend_from_slice(&more),
            Output::FlushBarrier { .. }
            | Output::Goaway { .. }
            | Output::Close { .. }
            | Output::End { .. }
            | Output::Call { .. }
            | Output::Upstream { .. }
            | Output::UpstreamWrite { .. } => {}
        }
    }
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

#[test]
fn namespaces_exist_and_are_no_writes_of_the_scenario() {
    let mut server = configmaps();
    let writes = server
        .records()
        .iter()
        .filter(|record| record.what.name() == "wrote");
    assert_eq!(writes.count(), 1, "{:?}", server.records());
    assert_eq!(server.revision(), 1001);
    let (code, list) = ask(&mut server, 1, ("GET", "/api/v1/namespaces"), &Value::Null);
    assert_eq!(code, 200);
    assert_eq!(
        names(&list),
        [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
            "later"
        ]
    );
    let (_, list) = ask(&mut server, 2, ("GET", "/api/v1/configmaps"), &Value::Null);
    assert_eq!(names(&list), ["a"]);
}

#[test]
fn the_namespaces_of_all_namespaced_targets_exist() {
    let mut server = server("target: {resource: pods, namespace: shop}", "");
    let (code, shop) = ask(&mut server, 1, ("GET", "/api/v1/namespaces/shop"), &Value::Null);
    assert_eq!((code, &shop["status"]["phase"]), (200, &json!("Active")));
}

#[test]
fn targets_are_not_mixed_with_the_cluster() {
    for (plural, path) in [
        ("namespaces", "/api/v1/namespaces"),
        ("services", "/api/v1/services"),
    ] {
        let mut server = server(&format!("target: {{resource: {plural}}}"), "");
        let (code, list) = ask(&mut server, 1, ("GET", path), &Value::Null);
        assert_eq!((code, names(&list)), (200, vec![]), "{plural}");
    }
}

#[rstest]
#[case("/api")]
#[case("/apis")]
#[case("/version")]
#[case("/openapi/v3")]
#[case("/api/v1/namespaces/default/services/kubernetes")]
#[case("/api/v1/namespaces/default/endpoints/kubernetes")]
#[case("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")]
#[case("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")]
#[case("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")]
#[case("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")]
fn what_operators_read_first_exists(#[case] path: &str) {
    let (code, body) = ask(&mut configmaps(), 1, ("GET", path), &Value::Null);
    assert_eq!(code, 200, "{body}");
}

#[test]
fn leases_and_reviews_are_created() {
    let mut server = configmaps();
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}});
    for (stream, namespace, created) in [(1, "default", 201), (2, "kube-system", 201), (3, "none", 404)] {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let (code, body) = ask(&mut server, stream, ("POST", &path), &lease);
        assert_eq!(code, created, "{body}");
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "configmaps", "namespace": "default"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, body) = ask(&mut server, 4, ("POST", path), &review);
    assert_eq!((code, &body["status"]["allowed"]), (201, &json!(true)));
}
