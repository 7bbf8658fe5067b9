//! Request bodies: objects as JSON and YAML, patches of every kind, delete options as JSON and protobuf.
//!
//! The first line is `METHOD PATH CONTENT-TYPE`, the rest the body.

use fake_apiserver::api::HttpRequest;

use crate::served;

/// Bodies of real clients.
pub const SEEDS: &[&[u8]] = &[
    b"POST /api/v1/namespaces/default/configmaps application/json\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"generateName\":\"x-\",\"labels\":{\"a\":\"b\"}},\"data\":{\"k\":\"v\"}}",
    b"POST /api/v1/namespaces/default/configmaps application/yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata: {k: \"v\"}\n",
    b"POST /api/v1/namespaces application/json\n{\"metadata\":{\"name\":\"fuzzed\"}}",
    b"PUT /api/v1/namespaces/default/configmaps/a application/json\n{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"\"},\"data\":{\"k\":\"w\"},\"immutable\":true}",
    b"PUT /api/v1/namespaces/default/pods/p/status application/json\n{\"metadata\":{\"name\":\"p\"},\"status\":{\"phase\":\"Running\"}}",
    b"PATCH /api/v1/namespaces/default/configmaps/a application/merge-patch+json\n{\"metadata\":{\"labels\":{\"a\":null,\"b\":\"c\"}},\"data\":{\"k\":\"x\"}}",
    b"PATCH /api/v1/namespaces/default/configmaps/a application/json-patch+json\n[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"v\"},{\"op\":\"add\",\"path\":\"/data/n\",\"value\":\"1\"},{\"op\":\"move\",\"from\":\"/data/n\",\"path\":\"/data/m\"},{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/x\"},{\"op\":\"remove\",\"path\":\"/metadata/labels/l\"}]",
    b"PATCH /apis/apps/v1/namespaces/default/deployments/d application/strategic-merge-patch+json\n{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"j\"},{\"name\":\"e\",\"$patch\":\"delete\"}],\"$setElementOrder/containers\":[{\"name\":\"c\"}]}}}}",
    b"PATCH /apis/apps/v1/namespaces/default/deployments/d?fieldManager=f&force=true application/apply-patch+yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n  replicas: 2\n",
    b"POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions application/json\n{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"crons.example.com\"},\"spec\":{\"group\":\"example.com\",\"names\":{\"plural\":\"crons\",\"singular\":\"cron\",\"kind\":\"Cron\",\"shortNames\":[\"cr\"]},\"scope\":\"Namespaced\",\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}},\"additionalPrinterColumns\":[{\"name\":\"A\",\"type\":\"string\",\"jsonPath\":\".spec.a\"}],\"subresources\":{\"status\":{}}}]}}",
    b"POST /apis/example.com/v1/namespaces/default/crons application/json\n{\"apiVersion\":\"example.com/v1\",\"kind\":\"Cron\",\"metadata\":{\"name\":\"c\"},\"spec\":{\"a\":[1,2.5,{\"b\":null}]}}",
    b"DELETE /api/v1/namespaces/default/configmaps/a application/json\n{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"x\"},\"propagationPolicy\":\"Orphan\",\"gracePeriodSeconds\":5}",
    b"DELETE /api/v1/namespaces/default/pods/p application/vnd.kubernetes.protobuf\nk8s\x00\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x0c\x08\x1e\x12\x05\x0a\x03abc\x22\x00\x1a\x00\"\x00",
    b"POST /api/v1/namespaces/default/pods application/vnd.kubernetes.protobuf\nk8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x00",
];

/// Sends the request.
pub fn body(bytes: &[u8]) {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..line]);
    let mut words = head.split(' ');
    let (method, target, kind) = (words.next(), words.next(), words.next());
    let Ok(method) = http::Method::from_bytes(method.unwrap_or_default().as_bytes()) else {
        return;
    };
    let target = target.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = http::HeaderMap::new();
    if let Ok(kind) = http::HeaderValue::from_str(kind.unwrap_or_default()) {
        headers.insert("content-type", kind);
    }
    served::ask(HttpRequest {
        method,
        path: path.to_owned(),
        query: query.into(),
        headers,
        body: bytes[(line + 1).min(bytes.len())..].to_vec().into(),
    });
}
