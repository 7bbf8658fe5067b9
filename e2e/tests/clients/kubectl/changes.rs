//! Changes of existing objects: apply, patch, labels, deletions.

use e2e::kubectl::Kubectl;
use e2e::server::{Server, Transport};
use e2e::toolchain::or_skip;
use rstest::rstest;

use super::{DEPLOYMENT, PODS, value};

/// Returns the value at `path` of the deployment `web`.
fn of_web(kubectl: &Kubectl, path: &str) -> String {
    kubectl.ok(&["get", "deployment", "web", "-o", &format!("jsonpath={{{path}}}")])
}

#[rstest]
fn apply_creates_leaves_alone_and_changes(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    let command = &["apply", "-f", "-"];
    kubectl_at!(transport, _server, kubectl);
    assert_eq!(
        kubectl.ok_with(command, DEPLOYMENT),
        "deployment.apps/web created\n"
    );
    let version = || of_web(&kubectl, ".metadata.resourceVersion");
    let before = version();
    assert_eq!(
        kubectl.ok_with(command, DEPLOYMENT),
        "deployment.apps/web unchanged\n"
    );
    assert_eq!(version(), before, "what changes nothing is no write");
    let two = DEPLOYMENT.replace("image: nginx", "image: nginx, env: [{name: A, value: b}]");
    assert_eq!(kubectl.ok_with(command, &two), "deployment.apps/web configured\n");
    let env = of_web(&kubectl, ".spec.template.spec.containers[0].env[0].value");
    assert_eq!(env, "b");
    // Fields that are no longer applied are removed.
    assert_eq!(
        kubectl.ok_with(command, DEPLOYMENT),
        "deployment.apps/web configured\n"
    );
    let env = of_web(&kubectl, ".spec.template.spec.containers[0].env");
    assert_eq!(env, "");
}

#[rstest]
fn server_side_apply_tracks_field_managers(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, _server, kubectl);
    let apply = |manager: &str, text: &str| {
        let field_manager = format!("--field-manager={manager}");
        kubectl.run_with(&["apply", "--server-side", &field_manager, "-f", "-"], text)
    };
    let applied = "deployment.apps/web serverside-applied\n";
    assert_eq!(apply("one", DEPLOYMENT).out, applied);
    let version = || of_web(&kubectl, ".metadata.resourceVersion");
    let before = version();
    assert_eq!(apply("one", DEPLOYMENT).out, applied);
    assert_eq!(version(), before, "what changes nothing is no write");
    let env = || of_web(&kubectl, ".spec.template.spec.containers[0].env[0].value");
    let two = DEPLOYMENT.replace("image: nginx", "image: nginx, env: [{name: A, value: b}]");
    assert_eq!(apply("one", &two).out, applied);
    assert_eq!(env(), "b");
    // Fields that are no longer applied are removed.
    assert_eq!(apply("one", DEPLOYMENT).out, applied);
    assert_eq!(env(), "");
    // Fields of another manager cause a conflict.
    let conflict = apply("two", &DEPLOYMENT.replace("replicas: 2", "replicas: 5"));
    assert!(
        conflict.err.contains("conflict with \"one\": .spec.replicas"),
        "{conflict:?}"
    );
}

#[test]
fn a_typing_error_is_refused_before_it_is_stored() {
    kubectl_at!(Transport::Http, _server, kubectl);
    let wrong = kubectl.run_with(&["apply", "-f", "-"], &DEPLOYMENT.replace("replicas", "replicsa"));
    assert!(!wrong.success);
    assert!(
        wrong
            .err
            .contains("strict decoding error: unknown field \"spec.replicsa\""),
        "{wrong:?}"
    );
}

#[test]
fn patch_has_three_content_types() {
    kubectl_at!(Transport::Http, _server, kubectl);
    kubectl.ok_with(&["apply", "-f", "-"], DEPLOYMENT);
    let patch = |dialect: &str, patch: &str| {
        let command = ["patch", "deployment", "web", "--type", dialect, "-p", patch];
        assert_eq!(kubectl.ok(&command), "deployment.apps/web patched\n");
    };
    let spec = || value(&kubectl.ok(&["get", "deployment", "web", "-o", "json"]))["spec"].clone();
    // Strategic: containers are merged by their names.
    patch(
        "strategic",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"busybox"}]}}}}"#,
    );
    let containers = spec()["template"]["spec"]["containers"].clone();
    assert_eq!(containers.as_array().map(Vec::len), Some(2), "{containers}");
    patch("merge", r#"{"spec":{"paused":true}}"#);
    assert_eq!(spec()["paused"], true);
    patch("json", r#"[{"op":"replace","path":"/spec/replicas","value":5}]"#);
    assert_eq!(spec()["replicas"], 5);
    let none = kubectl.ok(&["patch", "deployment", "web", "-p", r#"{"spec":{"replicas":5}}"#]);
    assert_eq!(none, "deployment.apps/web patched (no change)\n");
}

#[test]
fn labels_and_annotations_come_and_go() {
    kubectl_at!(Transport::Http, _server, kubectl);
    kubectl.ok(&["create", "configmap", "a"]);
    assert_eq!(
        kubectl.ok(&["label", "configmap", "a", "x=y"]),
        "configmap/a labeled\n"
    );
    assert_eq!(
        kubectl.ok(&["annotate", "configmap", "a", "p=q"]),
        "configmap/a annotated\n"
    );
    assert_eq!(
        kubectl.ok(&["get", "configmaps", "-l", "x=y", "-o", "name"]),
        "configmap/a\n"
    );
    let again = kubectl.run(&["label", "configmap", "a", "x=z"]);
    assert!(
        again
            .err
            .contains("already has a value (y), and --overwrite is false"),
        "{again:?}"
    );
    assert_eq!(
        kubectl.ok(&["label", "configmap", "a", "x-"]),
        "configmap/a unlabeled\n"
    );
    assert_eq!(kubectl.ok(&["get", "configmaps", "-l", "x", "-o", "name"]), "");
}

#[rstest]
fn delete_waits_until_it_is_gone(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, server, kubectl);
    kubectl.ok_with(&["apply", "-f", "-"], PODS);
    let deleted = kubectl.ok(&["delete", "pod", "one"]);
    assert!(deleted.starts_with("pod \"one\" deleted"), "{deleted}");
    assert_eq!(kubectl.ok(&["get", "pods", "-o", "name"]), "pod/two\n");

    // A marked object is deleted with its last finalizer.
    kubectl.ok(&[
        "patch",
        "pod",
        "two",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["example.com/hold"]}}"#,
    ]);
    let going = kubectl.start(&["delete", "pod", "two"]);
    server.expect("the deletion", |line| {
        line.contains("update pods/default/two") || line.contains("store ") && line.contains("/two")
    });
    kubectl.ok(&[
        "wait",
        "pod/two",
        "--for=jsonpath={.metadata.deletionTimestamp}",
        "--timeout=30s",
    ]);
    kubectl.ok(&[
        "patch",
        "pod",
        "two",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    assert!(going.ends_well());

    kubectl.ok_with(&["apply", "-f", "-"], PODS);
    let all = kubectl.ok(&["delete", "pods", "--all"]);
    assert!(
        all.contains("pod \"one\" deleted") && all.contains("pod \"two\" deleted"),
        "{all}"
    );
    assert_eq!(kubectl.ok(&["get", "pods", "-o", "name"]), "");
}
