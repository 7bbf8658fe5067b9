//! Documents that are not objects: discovery, version, health, OpenAPI.
//!
//! It must not know stored objects.

use apimachinery::Version;
use apimachinery::encode::{encode_json, encode_json_indented};
use apimachinery::status::{Details, Status};
use builtin_kinds::catalog::Catalog;
use http::Method;
use serde_json::json;

use super::access::Issuer;
use super::{Answer, HttpRequest};

mod discovery;
mod health;
mod openapi;
mod process;

pub use discovery::Discovery;

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `/`: the list of paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health(Endpoint),
    /// A single check below them, by name.
    Check(Endpoint, String),
    /// `/api`, `/apis` and paths below them, down to a group version.
    Discovery(Discovery),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// A document below it, by name: `apis/apps/v1`.
    OpenApi(String),
    /// `/metrics`.
    Metrics,
    /// `/metrics/slis`.
    HealthMetrics,
    /// `/statusz`.
    Statusz,
    /// `/.well-known/openid-configuration`.
    Issuer,
    /// `/openid/v1/jwks`.
    IssuerKeys,
}

/// Health endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `/healthz`.
    Healthz,
    /// `/livez`.
    Livez,
    /// `/readyz`.
    Readyz,
}

impl Document {
    /// Returns the document at a path outside of the groups. `segments` is the path, decoded and split.
    pub(super) fn named(segments: &[&str]) -> Option<Self> {
        let endpoint = |name: &str| match name {
            "healthz" => Some(Endpoint::Healthz),
            "livez" => Some(Endpoint::Livez),
            "readyz" => Some(Endpoint::Readyz),
            _ => None,
        };
        match segments {
            [""] => Some(Self::Root),
            ["version"] | ["version", ""] => Some(Self::Version),
            ["metrics"] => Some(Self::Metrics),
            ["metrics", "slis"] => Some(Self::HealthMetrics),
            ["statusz"] => Some(Self::Statusz),
            [".well-known", "openid-configuration"] => Some(Self::Issuer),
            ["openid", "v1", "jwks"] => Some(Self::IssuerKeys),
            ["openapi", "v2"] => Some(Self::OpenApiV2),
            ["openapi", "v3"] => Some(Self::OpenApiIndex),
            ["openapi", "v3", name @ ..] => Some(Self::OpenApi(name.join("/"))),
            [name] => endpoint(name).map(Self::Health),
            [name, check @ ..] => endpoint(name).map(|endpoint| Self::Check(endpoint, check.join("/"))),
            [] => None,
        }
    }

    /// Returns the response with the document, or the error.
    ///
    /// Documents routed by go-restful support GET only; others ignore the method.
    pub(crate) fn answer(
        &self,
        request: &HttpRequest,
        catalog: &Catalog,
        version: Version,
        issuer: &Issuer,
    ) -> Answer {
        match self {
            Self::Root => indented(&json!({ "paths": paths(catalog, version) })),
            Self::Version => routed(request, &["application/json"], || {
                indented(&server_version(version))
            }),
            Self::Health(endpoint) => health::all(*endpoint, request.query.pairs(), version),
            Self::Check(endpoint, check) => health::one(*endpoint, check, version),
            Self::Discovery(discovery) => discovery.answer(request, catalog, version),
            Self::OpenApiV2 => openapi::version_2(request, catalog, version),
            Self::OpenApiIndex => openapi::index(catalog, version),
            Self::OpenApi(name) => openapi::document(name, request, catalog, version),
            Self::Metrics => process::metrics(version),
            Self::HealthMetrics => process::health_metrics(version),
            Self::Statusz if version >= Version::V1_36 => process::statusz(version),
            Self::Statusz => Answer::text(404, "404 page not found\n"),
            Self::Issuer => process::issuer(request),
            Self::IssuerKeys => process::issuer_keys(issuer),
        }
    }
}

/// Returns the answer if go-restful routes the request: GET, and one of the types of the route.
fn routed(request: &HttpRequest, types: &[&str], answer: impl FnOnce() -> Answer) -> Answer {
    if request.method != Method::GET {
        return Answer::from(Status::method_not_allowed()).in_the_style_of(request);
    }
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    let takes = |clause: &str| {
        let media_type = clause.split(';').next().unwrap_or_default().trim();
        media_type == "*/*" || types.contains(&media_type)
    };
    if accept.is_empty() || accept.split(',').any(takes) {
        answer()
    } else {
        Answer::from(unrouted_type(types)).in_the_style_of(request)
    }
}

/// 406 of the router: the route has only these types.
fn unrouted_type(types: &[&str]) -> Status {
    Status {
        code: 406,
        reason: "NotAcceptable".to_owned(),
        message: format!(
            "406: Not Acceptable\n\nAvailable representations: {}",
            types.join(", ")
        ),
        ..Status::default()
    }
    .with_details(Details::default())
}

fn compact(document: &serde_json::Value) -> Answer {
    let mut body = encode_json(document);
    body.push(b'\n');
    Answer::json(200, body.into())
}

fn indented(document: &serde_json::Value) -> Answer {
    Answer::json(200, encode_json_indented(document).into())
}

/// Returns the paths listed by `/`.
fn paths(catalog: &Catalog, version: Version) -> Vec<String> {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    if version >= Version::V1_36 {
        paths.push("/statusz".to_owned());
    }
    for group in catalog.groups() {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(
            group
                .versions
                .iter()
                .map(|version| format!("/apis/{}/{version}", group.name)),
        );
    }
    paths.extend(health::paths(version));
    paths.sort();
    paths
}

fn server_version(version: Version) -> serde_json::Value {
    let minor = version.minor();
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": version.recorded_release(),
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

#[cfg(test)]
mod tests;
