//! Minimal valid objects by kind.

use fake_apiserver::model::catalog::ApiResource;
use serde_json::{Map, Value, json};

/// Required fields of each kind besides metadata. A test creates them all.
const SAMPLES: &[(&str, &str)] = &[
    ("configmaps", "{}"),
    ("secrets", "{}"),
    ("serviceaccounts", "{}"),
    ("namespaces", "{}"),
    ("nodes", "{}"),
    ("endpoints", "{}"),
    ("limitranges", r#"{"spec":{"limits":[]}}"#),
    ("resourcequotas", r#"{"spec":{}}"#),
    ("pods", r#"{"spec":POD}"#),
    ("services", r#"{"spec":{"ports":[{"port":80}]}}"#),
    (
        "persistentvolumeclaims",
        r#"{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#,
    ),
    (
        "replicationcontrollers",
        r#"{"spec":{"selector":{"app":"main"},"template":TEMPLATE}}"#,
    ),
    (
        "deployments.apps",
        r#"{"spec":{"selector":SELECTOR,"template":TEMPLATE}}"#,
    ),
    (
        "replicasets.apps",
        r#"{"spec":{"selector":SELECTOR,"template":TEMPLATE}}"#,
    ),
    (
        "daemonsets.apps",
        r#"{"spec":{"selector":SELECTOR,"template":TEMPLATE}}"#,
    ),
    (
        "statefulsets.apps",
        r#"{"spec":{"serviceName":"main","selector":SELECTOR,"template":TEMPLATE}}"#,
    ),
    ("jobs.batch", r#"{"spec":{"template":JOB}}"#),
    (
        "cronjobs.batch",
        r#"{"spec":{"schedule":"0 0 * * *","jobTemplate":{"spec":{"template":JOB}}}}"#,
    ),
    ("leases.coordination.k8s.io", r#"{"spec":{}}"#),
    (
        "endpointslices.discovery.k8s.io",
        r#"{"addressType":"IPv4","endpoints":[]}"#,
    ),
    (
        "ingresses.networking.k8s.io",
        r#"{"spec":{"defaultBackend":{"service":{"name":"main","port":{"number":80}}}}}"#,
    ),
    (
        "networkpolicies.networking.k8s.io",
        r#"{"spec":{"podSelector":{}}}"#,
    ),
    (
        "poddisruptionbudgets.policy",
        r#"{"spec":{"minAvailable":1,"selector":SELECTOR}}"#,
    ),
    ("roles.rbac.authorization.k8s.io", r#"{"rules":[]}"#),
    ("clusterroles.rbac.authorization.k8s.io", r#"{"rules":[]}"#),
    (
        "storageclasses.storage.k8s.io",
        r#"{"provisioner":"example.com/none"}"#,
    ),
    ("priorityclasses.scheduling.k8s.io", r#"{"value":1}"#),
    ("widgets.probe.example.com", "{}"),
];

const SELECTOR: &str = r#"{"matchLabels":{"app":"main"}}"#;
const POD: &str = r#"{"containers":[{"name":"main","image":"registry.k8s.io/pause:3.10"}]}"#;
const TEMPLATE: &str = r#"{"metadata":{"labels":{"app":"main"}},"spec":POD}"#;
const JOB: &str = r#"{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"registry.k8s.io/pause:3.10"}]}}"#;

/// Returns the resources with a sample.
pub(super) fn known() -> Vec<&'static str> {
    SAMPLES.iter().map(|(resource, _)| *resource).collect()
}

/// Returns an object of this kind without metadata; `None` if there is no sample.
pub(super) fn object(kind: &ApiResource) -> Option<Value> {
    let resource = kind.qualified();
    let known = SAMPLES.iter().find(|(known, _)| *known == resource);
    // What a custom resource requires, only its cluster knows.
    let text = match known {
        Some((_, text)) => text,
        None if kind.custom => "{}",
        None => return None,
    };
    let text = text.replace("TEMPLATE", TEMPLATE).replace("SELECTOR", SELECTOR);
    let text = text.replace("JOB", JOB).replace("POD", POD);
    let parts: Map<String, Value> = serde_json::from_str(&text).ok()?;
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind});
    object.as_object_mut()?.extend(parts);
    Some(object)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use fake_apiserver::api::HttpRequest;
    use fake_apiserver::model::catalog::Catalog;
    use fake_apiserver::record::{ConnId, StreamId};
    use fake_apiserver::scenario::{Scenario, ServerSettings, Version};
    use fake_apiserver::server::{Input, Output, Server};

    use super::*;

    fn create(server: &mut Server, nth: u64, path: String, object: &Value) -> (u16, String) {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("application/json"));
        let request = HttpRequest {
            method: http::Method::POST,
            path,
            query: Default::default(),
            headers,
            body: object.to_string().into(),
        };
        let (stream, conn) = (StreamId(nth), ConnId(1));
        server.handle(
            Duration::ZERO,
            Input::Request {
                stream,
                conn,
                request,
            },
        );
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
        (code, String::from_utf8_lossy(&body).into_owned())
    }

    #[test]
    fn every_sample_is_a_valid_object() {
        let mut server = Server::new(Arc::new(Scenario::empty(ServerSettings::default())), 0);
        let account = json!({"metadata": {"name": "default"}});
        create(
            &mut server,
            1,
            "/api/v1/namespaces/default/serviceaccounts".to_owned(),
            &account,
        );
        let catalog = Catalog::of_scenarios(Version::default());
        for (nth, resource) in (2..).zip(known()) {
            let mut kinds = catalog.kinds().iter().filter(|kind| kind.qualified() == resource);
            let kind = kinds.find(|kind| kind.is_stored()).unwrap();
            let mut sample = object(kind).unwrap();
            sample["metadata"] = json!({"name": "a-sample"});
            let root = if kind.group.is_empty() { "/api" } else { "/apis" };
            let place = if kind.namespaced {
                "/namespaces/default"
            } else {
                ""
            };
            let path = format!("{root}/{}{place}/{}", kind.api_version(), kind.plural);
            let (code, body) = create(&mut server, nth, path, &sample);
            assert_eq!(code, 201, "{resource}: {body}");
        }
    }
}
