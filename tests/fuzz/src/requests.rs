//! `METHOD PATH?QUERY` and header lines: paths, queries, `Accept` and other headers, up to the response.

use fake_apiserver::api::HttpRequest;

use crate::served;

/// Requests of real clients.
pub const SEEDS: &[&[u8]] = &[
    b"GET /api/v1/namespaces/default/configmaps?limit=500&resourceVersion=0\naccept: application/json",
    b"GET /api/v1/pods?watch=1&resourceVersion=1000&allowWatchBookmarks=true&timeoutSeconds=5\naccept: application/json, */*",
    b"GET /api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
    b"GET /api/v1/configmaps?resourceVersion=1001&resourceVersionMatch=Exact&limit=1",
    b"GET /apis/apps/v1/namespaces/default/deployments/d/status",
    b"GET /apis/apps/v1/namespaces/default/deployments/d/scale",
    b"GET /api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D,status.phase!%3DRunning\naccept: application/json;as=Table;g=meta.k8s.io;v=v1",
    b"GET /api/v1/namespaces/default/pods?labelSelector=a+in+(b,c),!d\naccept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    b"GET /api/v1/watch/namespaces/default/configmaps/a",
    b"GET /apis\naccept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    b"GET /openapi/v3/api/v1?hash=AB",
    b"GET /api/v1?pretty=1\naccept: application/yaml\naccept-encoding: gzip",
    b"HEAD /readyz?verbose&exclude=etcd",
    b"DELETE /api/v1/namespaces/default/configmaps?labelSelector=l%3D1&dryRun=All",
    b"DELETE /api/v1/namespaces/default/configmaps/a?gracePeriodSeconds=0&propagationPolicy=Foreground",
    b"OPTIONS /api/v1/namespaces/default/configmaps",
    b"GET /version\nauthorization: Bearer x\nuser-agent: curl/8",
];

/// Sends the request, if HTTP allows it.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let (method, target) = first.split_once(' ').unwrap_or(("GET", first));
    let Ok(method) = http::Method::from_bytes(method.as_bytes()) else {
        return;
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = http::HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::from_bytes(name.as_bytes()),
            http::HeaderValue::from_bytes(value.as_bytes()),
        ) {
            headers.append(name, value);
        }
    }
    served::ask(HttpRequest {
        method,
        path: path.to_owned(),
        query: query.into(),
        headers,
        body: Vec::new().into(),
    });
}
