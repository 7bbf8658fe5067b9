//! `--allow-writes`: rules write to the cluster, with the identity that is lent, and only what they name.

use rstest::rstest;
use serde_json::{Value, json};

use crate::running::{Running, UPSTREAM_TOKEN, failing};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Sends a request to the upstream, as its administrator.
async fn read(upstream: &Running, path: &str) -> (u16, Value) {
    let token = format!("Bearer {UPSTREAM_TOKEN}");
    let (status, _, text) = upstream.send("GET", path, &[("authorization", &token)]).await;
    (status, serde_json::from_str(&text).expect("it answers in JSON"))
}

/// Runs a verb of `ctl` that has to fail; returns its message.
fn rejected(proxy: &Running, rule: &str) -> String {
    let done = proxy.ctl(&["apply", rule]);
    assert!(!done.status.success(), "{rule}: {done:?}");
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[tokio::test]
async fn a_rule_writes_to_the_cluster() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me", "--allow-writes", "--strict"]);

    let done = proxy.steer(&["apply", "do: {apply: {configmap: {name: a, data: {k: v}}}}"]);
    assert_eq!(done, "configmaps default/a created\n");
    let (status, map) = read(&upstream, &format!("{MAPS}/a")).await;
    assert_eq!((status, &map["data"]["k"]), (200, &json!("v")));
    assert_eq!(map["metadata"]["managedFields"][0]["manager"], "fake-apiserver");

    let done = proxy.steer(&["apply", "do: {apply: {configmap: {name: a, data: {k: w}}}}"]);
    assert_eq!(done, "configmaps default/a configured\n");
    let done = proxy.steer(&["apply", "do: {relabel: {name: a, labels: {tier: web}}}"]);
    assert_eq!(done, "configmaps default/a relabeled\n");
    let (_, map) = read(&upstream, &format!("{MAPS}/a")).await;
    assert_eq!(map["data"]["k"], "w");
    assert_eq!(map["metadata"]["labels"], json!({ "tier": "web" }));

    let trace = proxy.steer(&["trace"]);
    assert!(
        trace.contains("write 1 to the upstream: configmaps default/a created"),
        "{trace}"
    );
    let done = proxy.steer(&["apply", "do: {delete: a}"]);
    assert_eq!(done, "configmaps default/a deleted\n");
    assert_eq!(read(&upstream, &format!("{MAPS}/a")).await.0, 404);
    // Nobody listed or watched: there is nothing to accuse anyone of.
    assert_eq!(proxy.stop().code, Some(0));
}

#[tokio::test]
async fn a_rule_writes_custom_resources() {
    let definition = |kind: &str| {
        let plural = format!("{}s", kind.to_lowercase());
        json!({"apply": {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.tools.example.com")},
            "spec": {"group": "tools.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        }})
    };
    let object = |kind: &str| {
        let object = json!({"apiVersion": "tools.example.com/v1", "kind": kind, "metadata": {"name": "a", "namespace": "default"}});
        json!({ "do": { "apply": object } }).to_string()
    };
    let upstream = Running::upstream();
    // One is there at the start, the other is written by a rule.
    upstream.steer(&["apply", &json!({ "do": definition("Gadget") }).to_string()]);
    let proxy = Running::proxy(&upstream, &["--as-me", "--allow-writes"]);
    let done = proxy.steer(&["apply", &json!({ "do": definition("Widget") }).to_string()]);
    assert_eq!(
        done,
        "customresourcedefinitions.apiextensions.k8s.io widgets.tools.example.com created\n"
    );
    for (kind, plural) in [("Gadget", "gadgets"), ("Widget", "widgets")] {
        let done = proxy.steer(&["apply", &object(kind)]);
        assert_eq!(done, format!("{plural}.tools.example.com default/a created\n"));
        let path = format!("/apis/tools.example.com/v1/namespaces/default/{plural}/a");
        assert_eq!(read(&upstream, &path).await.0, 200);
        let delete =
            json!({"do": {"delete": {"name": "a", "resource": format!("{plural}.tools.example.com")}}});
        let done = proxy.steer(&["apply", &delete.to_string()]);
        assert_eq!(done, format!("{plural}.tools.example.com default/a deleted\n"));
        assert_eq!(read(&upstream, &path).await.0, 404);
    }
}

#[tokio::test]
async fn a_request_lets_a_rule_write() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me", "--allow-writes"]);
    proxy.steer(&[
        "apply",
        "when: {list: next}, do: {apply: {configmap: {name: late}}}",
    ]);
    proxy.steer(&["apply", "when: {list: next}, do: {delete: missing}"]);
    let token = format!("Bearer {}", proxy.token());
    for _ in 0..2 {
        proxy.send("GET", MAPS, &[("authorization", &token)]).await;
    }
    // Writes are carried out in order: once this one is, those before it have been.
    proxy.steer(&["apply", "do: {apply: {configmap: {name: last}}}"]);
    let trace = proxy.steer(&["trace"]);
    for part in [
        "write 1 to the upstream: configmaps default/late created",
        "write 2 to the upstream: configmaps default/missing not deleted: 404: configmaps \"missing\" not found",
    ] {
        assert!(trace.contains(part), "{part}: {trace}");
    }
    assert_eq!(read(&upstream, &format!("{MAPS}/late")).await.0, 200);
}

#[tokio::test]
async fn the_reason_of_the_cluster_is_shown() {
    let upstream = Running::upstream();
    let mallory = Running::proxy(&upstream, &["--as", "mallory", "--allow-writes"]);
    let message = rejected(&mallory, "do: {apply: {configmap: {name: a}}}");
    assert!(
        message.contains("User \"mallory\" cannot patch resource \"configmaps\""),
        "{message}"
    );
    assert!(message.contains("nothing was written"), "{message}");
    let me = Running::proxy(&upstream, &["--as-me", "--allow-writes"]);
    let message = rejected(&me, "do: [{apply: {configmap: {name: a}}}, {delete: b}]");
    for part in [
        "configmaps default/b not deleted: 404",
        "1 of 2 were written",
        "default/a created",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[rstest]
#[case::apply("{apply: {configmap: {name: a}}}")]
#[case::delete("{delete: a}")]
#[case::relabel("{relabel: {name: a, labels: {x: y}}}")]
#[tokio::test]
async fn nothing_is_written_without_being_allowed(#[case] action: &str) {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    for rule in [
        format!("do: {action}"),
        format!("when: {{list: next}}, do: {action}"),
    ] {
        let message = rejected(&proxy, &rule);
        assert!(message.contains("--allow-writes"), "{message}");
    }
    let token = format!("Bearer {}", proxy.token());
    proxy.send("GET", MAPS, &[("authorization", &token)]).await;
    let (_, list) = read(&upstream, MAPS).await;
    let names: Vec<&str> = { list["items"].as_array().into_iter().flatten() }
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert!(!names.contains(&"a"), "{names:?}");
}

#[rstest]
#[case::up("../../../../apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x")]
#[case::parent("..")]
#[case::query("a?dryRun=All&fieldManager=x")]
#[tokio::test]
async fn a_name_does_not_leave_its_collection(#[case] name: &str) {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me", "--allow-writes"]);
    let named = json!({ "name": name, "namespace": "default", "resource": "configmaps" });
    let message = rejected(&proxy, &json!({ "do": { "delete": named } }).to_string());
    assert!(message.contains("cannot be an object's name"), "{message}");
    let requests = upstream.steer(&["trace"]);
    assert!(!requests.contains("DELETE"), "{requests}");
}

#[test]
fn an_identity_is_needed() {
    let (code, message) = failing(&["--kubeconfig", "/nowhere", "--allow-writes"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("--as-me"), "{message}");
}
