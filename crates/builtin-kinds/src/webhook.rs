//! Webhooks that a server calls: where one is, and what a REST client makes of its response.
//!
//! No I/O: a call is described here and carried out elsewhere. It must not know what a review holds.
//!
//! Source: apiserver `pkg/util/webhook/client.go`; client-go `rest/request.go` (`transformResponse`), apimachinery
//! `api/errors/errors.go` (`NewGenericServerResponse`).

use std::time::Duration;

use apimachinery::go_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Bytes of a text response that an error shows.
const SHOWN_BYTES_MAX: usize = 2048;

/// `clientConfig` of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where it is.
    pub place: Endpoint,
    /// `caBundle` (PEM); empty: the authorities that the system trusts.
    pub authority_pem: Vec<u8>,
}

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `url`.
    Url(String),
    /// `service`.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
        /// Path of the request.
        path: String,
        /// Port of the Service.
        port: u16,
    },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a response.
    Answered {
        /// HTTP status.
        status: u16,
        /// `Content-Type`; empty: there is none.
        content_type: String,
        /// Body.
        body: Vec<u8>,
    },
    /// Without one, for this reason, in the words of Go's HTTP client.
    Failed(String),
}

impl ClientConfig {
    /// Reads `clientConfig`. What validation rejects reads as a webhook that cannot be reached.
    pub fn read(json: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let service = &json["service"];
        let place = match json["url"].as_str() {
            Some(url) => Endpoint::Url(url.to_owned()),
            None => Endpoint::Service {
                namespace: text(&service["namespace"]),
                name: text(&service["name"]),
                path: text(&service["path"]),
                port: service["port"]
                    .as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(443),
            },
        };
        Self {
            place,
            authority_pem: STANDARD
                .decode(json["caBundle"].as_str().unwrap_or_default())
                .unwrap_or_default(),
        }
    }

    /// URL of a request, which has its timeout as a parameter.
    pub fn url(&self, timeout: Duration) -> String {
        let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
        let (authority, path) = match &self.place {
            Endpoint::Url(url) => split(url),
            Endpoint::Service {
                namespace,
                name,
                path,
                port,
            } => (format!("{name}.{namespace}.svc:{port}"), path.as_str()),
        };
        let mut clean: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(clean.pop()),
                part => clean.push(part),
            }
        }
        format!("https://{authority}/{}?timeout={seconds}s", clean.join("/"))
    }

    /// Host name that the certificate must have, without brackets.
    pub fn server_name(&self) -> String {
        match &self.place {
            Endpoint::Url(url) => host_and_port(&split(url).0).0,
            Endpoint::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
        }
    }

    /// Host and port of a URL; `None`: it is a Service.
    pub fn address(&self) -> Option<(String, u16)> {
        match &self.place {
            Endpoint::Url(url) => Some(host_and_port(&split(url).0)),
            Endpoint::Service { .. } => None,
        }
    }
}

/// Host with port, and path, of an https URL.
fn split(url: &str) -> (String, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    match rest.find('/') {
        Some(at) => (rest[..at].to_owned(), &rest[at..]),
        None => (rest.to_owned(), ""),
    }
}

fn host_and_port(authority: &str) -> (String, u16) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(443)),
        Some(_) | None => (authority, 443),
    };
    (host.trim_matches(['[', ']']).to_owned(), port)
}

/// A kind of reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Review {
    /// Kind.
    pub kind: &'static str,
    /// API group, whose versions are `v1` and `v1beta1`.
    pub group: &'static str,
    /// Version of the request and its response.
    pub version: &'static str,
}

impl Review {
    /// Checks kind and version of a response; an empty one is that of the review.
    ///
    /// # Errors
    /// The words of the decoder.
    fn check(&self, json: &Value) -> Result<(), String> {
        let text = |field: &str| json[field].as_str().unwrap_or_default();
        let own = format!("{}/{}", self.group, self.version);
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        let kind = if kind.is_empty() { self.kind } else { kind };
        let api_version = if api_version.is_empty() {
            own.as_str()
        } else {
            api_version
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if kind != self.kind || group != self.group || !matches!(version, "v1" | "v1beta1") {
            let [kind, api_version] = [kind, api_version].map(go_text::quote);
            return Err(format!(
                "no kind {kind} is registered for version {api_version} in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        if version != self.version {
            let (kind, own) = (self.kind, self.version);
            return Err(format!(
                "converting ({version}.{kind}) to ({own}.{kind}): unknown conversion"
            ));
        }
        Ok(())
    }
}

/// Returns the JSON of a response, a review; `url` is that of the request.
///
/// # Errors
/// The words of client-go for a call that failed, or whose response is an error or no such review.
pub fn response(url: &str, outcome: &Outcome, expected: &Review) -> Result<Value, String> {
    let (status, content_type, body) = match outcome {
        Outcome::Failed(why) => return Err(format!("Post {}: {why}", go_text::quote(url))),
        Outcome::Answered {
            status,
            content_type,
            body,
        } => (*status, content_type.as_str(), body.as_slice()),
    };
    if !(200..=206).contains(&status) {
        return Err(told(body).unwrap_or_else(|| generic_error(status, content_type, body)));
    }
    if body.is_empty() {
        return Err(format!(
            "0-length response with status code: {status} and content type: {content_type}"
        ));
    }
    let unread = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let json: Value = match body.trim_ascii_start().first() {
        Some(b'{') => {
            serde_json::from_slice(body).map_err(|error| unread(go_text::json_error(body, &error)))?
        }
        // Anything else is read as YAML.
        Some(_) | None => serde_saphyr::from_slice(body)
            .map_err(|error| unread(format!("error converting YAML to JSON: yaml: {error}")))?,
    };
    if !json.is_object() && !json.is_null() {
        let found = go_text::json_kind(&json);
        let of_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                       \"json:\\\"kind,omitempty\\\"\" }";
        return Err(unread(format!(
            "json: cannot unmarshal {found} into Go value of type {of_type}"
        )));
    }
    expected.check(&json)?;
    Ok(json)
}

/// Message of a Status in the body of an error.
fn told(body: &[u8]) -> Option<String> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let is_status = json["kind"] == "Status" && json["apiVersion"] == "v1" && json["status"] != "Success";
    is_status.then(|| json["message"].as_str().unwrap_or_default().to_owned())
}

fn generic_error(status: u16, content_type: &str, body: &[u8]) -> String {
    let is_text = content_type.is_empty() || content_type.starts_with("text/");
    let shown = match is_text {
        true => String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)])
            .trim()
            .to_owned(),
        false => "unknown".to_owned(),
    };
    let told = match status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => return shown,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        415 => "the body of the request was in an unknown format",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            let shown = go_text::quote(&shown);
            return format!("an error on the server ({shown}) has prevented the request from succeeding");
        }
        status => {
            return format!(
                "the server responded with the status code {status} but did not return more information"
            );
        }
    };
    told.to_owned()
}

/// Describes an outcome for the trace, without content: `allowed`, `denied`, `patched`, `converted`, `rejected`, the HTTP
/// status of an error, or why there was no response.
pub fn gist(outcome: &Outcome) -> String {
    let (status, body) = match outcome {
        Outcome::Failed(why) => return why.clone(),
        Outcome::Answered { status, body, .. } => (*status, body),
    };
    let Ok(json) = serde_json::from_slice::<Value>(body) else {
        return format!("{status}, no JSON");
    };
    let response = &json["response"];
    match (status, response["allowed"].as_bool()) {
        (200..=206, Some(false)) => "denied".to_owned(),
        (200..=206, Some(true)) if response["patch"].is_string() => "patched".to_owned(),
        (200..=206, Some(true)) => "allowed".to_owned(),
        (200..=206, None) if response["result"]["status"] == "Success" => "converted".to_owned(),
        (200..=206, None) if response["result"].is_object() => "rejected".to_owned(),
        (_, _) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_url_has_its_timeout_and_no_query() {
        let config = |json| ClientConfig::read(&json);
        let url = config(json!({"url": "https://[::1]:8443/a//b/?x=1"}));
        assert_eq!(
            url.url(Duration::from_millis(1500)),
            "https://[::1]:8443/a/b?timeout=2s"
        );
        assert_eq!(url.address(), Some(("::1".to_owned(), 8443)));
        assert_eq!(url.server_name(), "::1");
        let bare = config(json!({"url": "https://localhost"}));
        assert_eq!(
            bare.url(Duration::from_secs(10)),
            "https://localhost/?timeout=10s"
        );
        assert_eq!(bare.address(), Some(("localhost".to_owned(), 443)));
        let service = config(json!({"service": {"namespace": "n", "name": "s", "path": "/p"}}));
        assert_eq!(
            service.url(Duration::from_secs(1)),
            "https://s.n.svc:443/p?timeout=1s"
        );
        assert_eq!(
            (service.server_name().as_str(), service.address()),
            ("s.n.svc", None)
        );
    }

    #[test]
    fn errors_are_those_of_client_go() {
        let answered = |status, content_type: &str, body: &str| Outcome::Answered {
            status,
            content_type: content_type.to_owned(),
            body: body.as_bytes().to_vec(),
        };
        let expected = Review {
            kind: "AdmissionReview",
            group: "admission.k8s.io",
            version: "v1",
        };
        let told = |outcome: &Outcome| response("https://h/", outcome, &expected).unwrap_err();
        assert_eq!(
            told(&Outcome::Failed("EOF".to_owned())),
            "Post \"https://h/\": EOF"
        );
        assert_eq!(
            told(&answered(500, "text/plain", " no\n")),
            "an error on the server (\"no\") has prevented the request from succeeding"
        );
        assert_eq!(
            told(&answered(404, "", "x")),
            "the server could not find the requested resource"
        );
        assert_eq!(
            told(&answered(302, "", "")),
            "the server responded with the status code 302 but did not return more information"
        );
        assert_eq!(
            told(&answered(200, "application/json", "")),
            "0-length response with status code: 200 and content type: application/json"
        );
        assert_eq!(
            told(&answered(200, "", "{hello")),
            "couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of object key string"
        );
        assert_eq!(
            told(&answered(200, "", r#"{"kind":"Other"}"#)),
            "no kind \"Other\" is registered for version \"admission.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert_eq!(
            told(&answered(200, "", r#"{"apiVersion":"admission.k8s.io/v1beta1"}"#)),
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
        );
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m"}"#;
        assert_eq!(told(&answered(500, "application/json", status)), "m");
    }
}
