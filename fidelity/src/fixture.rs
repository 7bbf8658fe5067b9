//! Fixture F: two namespaces, six ConfigMaps, one custom resource definition with one object. Restored through the API alone,
//! so that it works on any server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;
use crate::transport::{Call, ReadResponse, Transport};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/probe/configmaps";
const WIDGETS: &str = "/apis/probe.example.com/v1/namespaces/probe/widgets";
const NAMESPACES: [&str; 3] = ["probe", "probe-b", "probe-empty"];

pub(crate) async fn reset(server: &mut impl Transport) -> Result<(), Error> {
    for namespace in NAMESPACES {
        let path = format!("/api/v1/namespaces/{namespace}");
        if send(server, "GET", &path, None).await?.head.status == 404 {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            expect(server, "POST", "/api/v1/namespaces", Some(body)).await?;
        }
    }
    ensure_crd(server).await?;
    for namespace in NAMESPACES {
        empty(server, &format!("/api/v1/namespaces/{namespace}/configmaps")).await?;
        empty(
            server,
            &format!("/apis/probe.example.com/v1/namespaces/{namespace}/widgets"),
        )
        .await?;
    }
    for number in 1..=5 {
        let mut body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("cm-{number}")},
            "data": {"k": "1"},
        });
        if number % 2 == 1 {
            body["metadata"]["labels"] = json!({"app": "x"});
        }
        expect(server, "POST", CONFIG_MAPS, Some(body)).await?;
    }
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm-1"}, "data": {"k": "1"}});
    expect(
        server,
        "POST",
        "/api/v1/namespaces/probe-b/configmaps",
        Some(body),
    )
    .await?;
    let body = json!({
        "apiVersion": "probe.example.com/v1", "kind": "Widget",
        "metadata": {"name": "wd-1"},
        "spec": {"size": 1},
    });
    expect(server, "POST", WIDGETS, Some(body)).await?;
    Ok(())
}

/// Returns the resourceVersion that probes refer to as `{L}`.
pub(crate) async fn resource_version(server: &mut impl Transport) -> Result<String, Error> {
    let answer = expect(server, "GET", CONFIG_MAPS, None).await?;
    let list: Value = serde_json::from_slice(&answer.body)
        .map_err(|why| Error::server(format!("GET {CONFIG_MAPS}: the list is no JSON: {why}")))?;
    match list["metadata"]["resourceVersion"].as_str() {
        Some(version) => Ok(version.to_owned()),
        None => Err(Error::server(format!(
            "GET {CONFIG_MAPS}: the list has no resourceVersion"
        ))),
    }
}

async fn ensure_crd(server: &mut impl Transport) -> Result<(), Error> {
    if send(server, "GET", WIDGETS, None).await?.head.status == 200 {
        return Ok(());
    }
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.probe.example.com"},
        "spec": {
            "group": "probe.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open.clone(), "status": open}}},
                "subresources": {"status": {}},
            }],
        },
    });
    expect(server, "POST", CRD, Some(body)).await?;
    // Served with a delay; the same holds for discovery.
    let discovery = ["/apis/probe.example.com/v1", "/apis"];
    for _ in 0..100 {
        let listed = send(server, "GET", WIDGETS, None).await?.head.status == 200;
        let mut discovered = true;
        for path in discovery {
            let body = send(server, "GET", path, None).await?.body;
            discovered &= String::from_utf8_lossy(&body).contains("probe.example.com");
        }
        if listed && discovered {
            // Further writes follow the creation of a CRD (conditions, APIService).
            pause(server, Duration::from_secs(2)).await;
            return Ok(());
        }
        pause(server, Duration::from_millis(100)).await;
    }
    Err(Error::server(
        "the CRD widgets.probe.example.com was accepted, but is not served after 10 s",
    ))
}

/// Deletes all objects, including those with finalizers.
async fn empty(server: &mut impl Transport, collection: &str) -> Result<(), Error> {
    let answer = expect(server, "GET", collection, None).await?;
    let list: Value = serde_json::from_slice(&answer.body)
        .map_err(|why| Error::server(format!("GET {collection}: the list is no JSON: {why}")))?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return Ok(());
    }
    for item in items
        .iter()
        .filter(|item| item["metadata"].get("finalizers").is_some())
    {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{collection}/{name}");
        let body = json!({"metadata": {"finalizers": null}}).to_string().into_bytes();
        let mut call = Call::new("PATCH", &path, Some(body));
        call.headers.insert(
            "content-type".to_owned(),
            Some("application/merge-patch+json".to_owned()),
        );
        server.send(&call).await?;
    }
    expect(server, "DELETE", collection, None).await?;
    Ok(())
}

/// Retries while the server responds with 429, as kube-apiserver does while it fills its caches after a start.
async fn send(
    server: &mut impl Transport,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<ReadResponse, Error> {
    let body = body.map(|body| body.to_string().into_bytes());
    let call = Call::new(method, path, body);
    let mut patience = 60;
    loop {
        let answer = server.send(&call).await?;
        if answer.head.status != 429 || patience == 0 {
            return Ok(answer);
        }
        patience -= 1;
        pause(server, Duration::from_millis(500)).await;
    }
}

async fn expect(
    server: &mut impl Transport,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<ReadResponse, Error> {
    let answer = send(server, method, path, body).await?;
    if answer.head.status / 100 == 2 {
        return Ok(answer);
    }
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    Err(Error::server(format!(
        "fixture: {method} {path}: {} {text}",
        answer.head.line
    )))
}

async fn pause(server: &mut impl Transport, time: Duration) {
    let until = server.now() + time;
    server.sleep_until(until).await;
}
