//! HTTP of the reference client: sends a read and returns the response; untyped access to JSON. Makes no decisions.

use std::time::Duration;

use conformance::client::Start;
use fake_apiserver::scenario::ClientMode;
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use serde_json::Value;

/// Timeout for a response head, and for a body that is read completely.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a read and waits for the response head.
pub(super) async fn get(
    kube: &kube_client::Client,
    start: &Start,
    query: &str,
    list: bool,
    accept_encoding: Option<&str>,
    patience: Duration,
) -> Result<Body, Trouble> {
    let target = &start.target;
    let base = if target.group.is_empty() {
        "/api".to_owned()
    } else {
        format!("/apis/{}", target.group)
    };
    let namespace = target
        .namespace
        .as_ref()
        .map(|namespace| format!("/namespaces/{namespace}"))
        .unwrap_or_default();
    let uri = format!("{base}/{}{namespace}/{}?{query}", target.version, target.plural);
    let metadata = start.settings.mode == ClientMode::Metadata;
    let accept = match (metadata, list) {
        (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        (false, _) => "application/json",
    };
    let mut request = http::Request::get(uri).header("accept", accept);
    if let Some(accepted) = accept_encoding {
        request = request.header("accept-encoding", accepted);
    }
    let request = request
        .body(Body::empty())
        .expect("a path and a query that were just escaped make a request");
    let answer = tokio::time::timeout(patience, kube.send(request)).await;
    let response = match answer {
        Err(_) => return Err(Trouble::of_transport("no answer")),
        Ok(Err(problem)) => return Err(Trouble::of_transport(&problem.to_string())),
        Ok(Ok(response)) => response,
    };
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let code = response.status().as_u16();
    let retry_after = response
        .headers()
        .get("retry-after")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse().ok())
        .map(Duration::from_secs);
    let body = collect(response.into_body()).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    Err(Trouble {
        code: Some(code),
        body,
        retry_after,
    })
}

#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) code: Option<u16>,
    pub(super) body: String,
    pub(super) retry_after: Option<Duration>,
}

impl Trouble {
    pub(super) fn of_transport(message: &str) -> Self {
        Self {
            code: None,
            body: message.to_owned(),
            retry_after: None,
        }
    }

    pub(super) fn expired(&self) -> bool {
        self.code == Some(410) || self.body.contains("\"reason\":\"Expired\"")
    }

    pub(super) fn too_large(&self) -> bool {
        self.body.contains("Too large resource version") || self.body.contains("ResourceVersionTooLarge")
    }
}

pub(super) async fn collect(body: Body) -> Result<Vec<u8>, String> {
    match tokio::time::timeout(PATIENCE, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes().to_vec()),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err("the body never ended".to_owned()),
    }
}

pub(super) fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

pub(super) fn version_of(object: &Value) -> String {
    text(object, "/metadata/resourceVersion")
}

pub(super) fn key(object: &Value) -> (String, String) {
    (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

pub(super) fn between(text: &str, before: &str) -> Option<String> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
