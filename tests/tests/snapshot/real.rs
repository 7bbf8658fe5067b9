//! A snapshot of a real kube-apiserver, as `cargo xtask oracle build` builds it.

use http::Request;
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Value, json};
use tests::oracle::Oracle;

use crate::cluster::{config_map, end, folder, path_of, read, served, snapshot, version};

async fn send(client: &Client, method: &str, path: &str, body: Vec<u8>) -> (u16, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    let (head, body) = client.send(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned())
}

/// Creates an object, as soon as its kind is served.
async fn create(client: &Client, path: &str, object: &Value) {
    for _ in 0..1_000 {
        match send(client, "POST", path, object.to_string().into_bytes()).await {
            (201, _) => return,
            (404 | 409, _) => {}
            (status, text) => panic!("{path}: {status} {text}"),
        }
    }
    panic!("{path} is never served");
}

#[tokio::test]
#[ignore = "needs the oracle"]
async fn every_list_of_a_real_apiserver_is_the_same_byte_for_byte() {
    let folder = folder("real");
    let oracle = Oracle::start(&folder);
    let client = oracle.client().await;
    let core = "/api/v1/namespaces/default";
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    create(
        &client,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": { "ratio": 1.5e10, "text": "<&>\u{2028}" },
    });
    create(
        &client,
        "/apis/example.com/v1/namespaces/default/widgets",
        &widget,
    )
    .await;
    let container = json!({ "containers": [{ "name": "c", "image": "i" }] });
    let pods = json!({ "metadata": { "labels": { "a": "b" } }, "spec": container });
    let deployment = json!({ "metadata": { "name": "d" }, "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": pods } });
    create(
        &client,
        "/apis/apps/v1/namespaces/default/deployments",
        &deployment,
    )
    .await;
    for number in 0..700 {
        let mut map = config_map(number);
        map["metadata"]["namespace"] = "default".into();
        create(&client, &format!("{core}/configmaps"), &map).await;
    }
    let (_, page) = send(&client, "GET", &format!("{core}/configmaps?limit=2"), Vec::new()).await;
    let output = folder.join("s");
    let (code, log) = snapshot(oracle.kubeconfig(), &output, &[]);
    assert_eq!(code, Some(0), "{log}");
    let listed = end(&output)["resources"].as_array().unwrap().clone();
    let mut before = Vec::new();
    for path in listed.iter().map(path_of) {
        let (status, list) = send(&client, "GET", &path, Vec::new()).await;
        assert_eq!(status, 200, "{path}: {list}");
        before.push((path, list));
    }
    drop(oracle);
    let after = served(&output, &["--strict"]);
    for (path, list) in before {
        assert_eq!(read(&after, &path).await, list, "{path}");
    }
    let page: Value = serde_json::from_str(&page).unwrap();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = read(&after, &format!("{core}/configmaps?limit=500&continue={token}")).await;
    assert!(rest.contains("m-0002") && !rest.contains("m-0001"), "{rest}");
    let watch = format!(
        "{core}/configmaps?watch=true&timeoutSeconds=1&resourceVersion={}",
        version(&output)
    );
    assert_eq!(read(&after, &watch).await, "", "nothing has happened since");
    assert_eq!(after.stop().code, Some(0));
}
