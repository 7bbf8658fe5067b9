//! A real apiserver as the upstream of a proxy: loads a kubeconfig as client libraries do, and sends requests with its TLS and,
//! if they are lent, its credentials.
//!
//! The only crate beside adapters and `testing` that uses kube-client: for certificates, tokens, exec plugins and proxies. It
//! must not know what is forwarded, or which deviations there are. No error has a part of a kubeconfig or of a plugin's output,
//! because both have credentials.

mod cause;
mod load;
mod requests;

use fake_apiserver::net::{Upstream, UpstreamBody};
use fake_apiserver::upstream::{Failure, Identity, Outbound};
use futures::future::{BoxFuture, FutureExt as _};
use http::StatusCode;
use http_body_util::{BodyExt as _, Limited};
use kube_client::client::Body;
pub use load::{LoadError, SERVICE_HOST, SERVICE_PORT, load, load_in_cluster};
use requests::Requests;
use serde_json::Value;

/// Longest response to the probe, in bytes.
const PROBE_BYTES_MAX: usize = 64 * 1024;

/// Longest list of CustomResourceDefinitions, in bytes.
const DEFINITIONS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Whose rights clients with the proxy's token have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lending {
    /// Nobody's.
    Nothing,
    /// The kubeconfig's user's.
    Oneself,
    /// Those of another user, whom the kubeconfig's user impersonates.
    User {
        /// Name.
        name: String,
        /// Groups.
        groups: Vec<String>,
    },
}

/// The cluster of a kubeconfig.
pub struct Cluster {
    server: String,
    /// What it was loaded from, in words.
    of: &'static str,
    /// Default namespace.
    namespace: String,
    /// Without credentials.
    bare: Requests,
    /// With those that are lent.
    lending: Option<Requests>,
}

/// Why a cluster is of no use as an upstream.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No connection.
    #[error(
        "no connection to {server}: {why}; check that the cluster is up, and the server and certificate authority of the {of}"
    )]
    Unreachable {
        /// `kubeconfig` or `service account`.
        of: &'static str,
        /// URL.
        server: String,
        /// Reason.
        why: String,
    },
    /// The credentials cannot be loaded.
    #[error(
        "cannot load the credentials of the kubeconfig: {why}; run kubectl with this kubeconfig, and log in again if it fails as well"
    )]
    NoCredentials {
        /// Reason.
        why: String,
    },
    /// The credentials are not accepted.
    #[error(
        "{server} does not accept the credentials of the {of} (401 Unauthorized): they may have expired; run kubectl with this kubeconfig, and log in again if it fails as well"
    )]
    Expired {
        /// `kubeconfig` or `service account`.
        of: &'static str,
        /// URL.
        server: String,
    },
    /// Something else answers.
    #[error(
        "{server} answered GET /version with {answer}: it is no apiserver, or something in front of it answers; check the server of the {of}"
    )]
    NoApiserver {
        /// `kubeconfig` or `service account`.
        of: &'static str,
        /// URL.
        server: String,
        /// Status and content type.
        answer: String,
    },
}

impl Cluster {
    /// URL of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Default namespace of the context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the error of an attempt that got no response.
    pub fn unreachable(&self, why: String) -> ProbeError {
        ProbeError::Unreachable {
            of: self.of,
            server: self.server.clone(),
            why,
        }
    }

    /// Returns the error of a response 401 to the credentials that are lent.
    pub fn expired(&self) -> ProbeError {
        ProbeError::Expired {
            of: self.of,
            server: self.server.clone(),
        }
    }

    /// Reads the version of the apiserver, with the credentials that are lent; `None`: it answers only known users, and none are
    /// lent.
    ///
    /// # Errors
    /// There is no response, or none of an apiserver to these credentials.
    pub async fn probe(&self) -> Result<Option<String>, ProbeError> {
        let no_apiserver = |answer| ProbeError::NoApiserver {
            of: self.of,
            server: self.server.clone(),
            answer,
        };
        let client = self.lending.as_ref().unwrap_or(&self.bare);
        let request = http::Request::get("/version").body(Body::empty());
        let request = request.expect("a constant request is valid");
        let response = client
            .send(request)
            .await
            .map_err(|error| match cause::failure(&*error) {
                Failure::NoCredentials(why) => ProbeError::NoCredentials { why },
                Failure::Unreachable(why) | Failure::Broken(why) => self.unreachable(why),
            })?;
        let (head, body) = response.into_parts();
        let content_type = head.headers.get(http::header::CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or("no content type");
        let answer = format!("{} and {content_type}", head.status);
        let is_json = content_type.starts_with("application/json");
        match head.status.as_u16() {
            401 if self.lending.is_some() => return Err(self.expired()),
            // With a Status; a login page has none.
            401 | 403 if is_json => return Ok(None),
            200 if is_json => {}
            _ => return Err(no_apiserver(answer)),
        }
        let body = Limited::new(body, PROBE_BYTES_MAX).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let version: Value = serde_json::from_slice(&body).unwrap_or_default();
        match version["gitVersion"].as_str() {
            Some(version) => Ok(Some(
                version.chars().filter(|shown| !shown.is_control()).collect(),
            )),
            None => Err(no_apiserver(answer)),
        }
    }

    /// Reads the CustomResourceDefinitions, with the credentials that are lent.
    ///
    /// # Errors
    /// A message: nothing is lent, these credentials may not list them, or there is no list.
    pub async fn definitions(&self) -> Result<Vec<Value>, String> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, mut list) = self.read(path, DEFINITIONS_BYTES_MAX).await?;
        if let Value::Array(definitions) = list["items"].take() {
            return Ok(definitions);
        }
        Err(match list["message"].as_str() {
            Some(message) => message.to_owned(),
            None => format!("the response has status {status} and no list"),
        })
    }

    /// Reads a document of at most `bytes_max` bytes, with the credentials that are lent. Returns the status, and `null` for what is
    /// no JSON.
    ///
    /// # Errors
    /// A message: nothing is lent, there is no response, or it is longer.
    pub async fn read(&self, path: &str, bytes_max: usize) -> Result<(StatusCode, Value), String> {
        let client = self.lending.as_ref().ok_or("no identity is lent")?;
        let request = http::Request::get(path).header(http::header::ACCEPT, "application/json");
        let request = request.body(Body::empty()).map_err(|error| error.to_string())?;
        let response = client.send(request).await;
        let (head, body) = response
            .map_err(|error| cause::failure(&*error).to_string())?
            .into_parts();
        let body = Limited::new(body, bytes_max).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((head.status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn forward(&self, request: Outbound) -> Result<http::Response<UpstreamBody>, Failure> {
        let client = match (request.identity, &self.lending) {
            (Identity::Own, _) => &self.bare,
            (Identity::Lent, Some(lending)) => lending,
            (Identity::Lent, None) => return Err(Failure::NoCredentials("none are lent".to_owned())),
        };
        let mut sent = http::Request::new(Body::from(request.body));
        *sent.method_mut() = request.method;
        *sent.uri_mut() = request
            .target
            .parse()
            .map_err(|error| Failure::Unreachable(format!("{error}")))?;
        *sent.headers_mut() = request.headers;
        client.send(sent).await.map_err(|error| cause::failure(&*error))
    }
}

impl Upstream for Cluster {
    fn send(&self, request: Outbound) -> BoxFuture<'_, Result<http::Response<UpstreamBody>, Failure>> {
        self.forward(request).boxed()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
