//! Documents about the server as a process: metrics, status, token issuer. They are minimal, because the fake measures
//! nothing.

use apimachinery::Version;
use apimachinery::encode::encode_json;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::json;

use super::Endpoint;
use crate::api::access::{ALGORITHM, API_AUDIENCE, Issuer};
use crate::api::{Answer, HttpRequest};

const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// `/metrics`.
pub(super) fn metrics(version: Version) -> Answer {
    let text = format!(
        "# HELP kubernetes_build_info [ALPHA] A metric with a constant '1' value labeled by the version it answers as.\n\
         # TYPE kubernetes_build_info gauge\n\
         kubernetes_build_info{{git_version=\"{}\",major=\"1\",minor=\"{}\"}} 1\n",
        version.recorded_release(),
        version.minor()
    );
    plain(EXPOSITION, text)
}

/// `/metrics/slis`: every health check, by name.
pub(super) fn health_metrics(version: Version) -> Answer {
    let mut lines: Vec<String> = Endpoint::ALL
        .into_iter()
        .flat_map(|endpoint| {
            let checks = endpoint.checks(version).into_iter();
            checks.map(move |check| {
                let name = endpoint.name();
                format!("kubernetes_healthcheck{{name=\"{check}\",type=\"{name}\"}} 1\n")
            })
        })
        .collect();
    lines.sort();
    let text = format!(
        "# HELP kubernetes_healthcheck [STABLE] The result of a single health check.\n\
         # TYPE kubernetes_healthcheck gauge\n{}",
        lines.concat()
    );
    plain(EXPOSITION, text)
}

/// `/statusz` (KEP-4827).
pub(super) fn statusz(version: Version) -> Answer {
    let text = format!(
        "\napiserver statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting \
         compatibility guarantees and is for debugging purposes only.\n\nBinary version:  {}\nEmulation version:  \
         1.{}\nPaths:  /healthz /livez /metrics /readyz /statusz /version\n",
        version.recorded_release().trim_start_matches('v'),
        version.minor()
    );
    plain("text/plain; charset=utf-8", text)
}

/// `/.well-known/openid-configuration`: discovery document of the token issuer.
pub(super) fn issuer(request: &HttpRequest) -> Answer {
    let authority = request
        .header(http::header::HOST)
        .unwrap_or("kubernetes.default.svc");
    let document = json!({
        "issuer": API_AUDIENCE,
        "jwks_uri": format!("https://{authority}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    });
    public("application/json", &document)
}

/// `/openid/v1/jwks`.
pub(super) fn issuer_keys(issuer: &Issuer) -> Answer {
    public(
        "application/jwk-set+json",
        &json!({ "keys": [issuer.public_key()] }),
    )
}

fn plain(content_type: &'static str, text: String) -> Answer {
    Answer {
        status: 200,
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))],
        body: text.into(),
    }
}

fn public(content_type: &'static str, document: &serde_json::Value) -> Answer {
    Answer {
        status: 200,
        headers: vec![
            (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        ],
        body: encode_json(document).into(),
    }
}
