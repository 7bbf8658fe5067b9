//! Writes of `cargo xtask crowd` through the API of a served apiserver, as kubectl in another shell.

use std::path::Path;

use http::{Request, StatusCode};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::plan::Write;

/// User-Agent of the writer, so that a verdict does not mix it up with the program under test.
pub const USER_AGENT: &str = "crowd-writer";

/// Collection that is changed.
const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// A client that only writes.
pub struct Writer {
    runtime: Runtime,
    client: kube_client::Client,
}

/// Result of a write that did not fail for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The store has changed.
    Changed,
    /// The object existed already, or no longer.
    Unchanged,
    /// The server was not reached: it is restarting, or refuses connections.
    Unreachable,
}

impl Writer {
    /// Creates a client for the server of a kubeconfig.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be used.
    pub fn of(kubeconfig: &Path) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        let unusable = |error: &dyn std::fmt::Display| format!("{}: {error}", kubeconfig.display());
        let file = Kubeconfig::read_from(kubeconfig).map_err(|error| unusable(&error))?;
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = kube_client::Config::from_custom_kubeconfig(file, &options)
                .await
                .map_err(|error| unusable(&error))?;
            kube_client::Client::try_from(config).map_err(|error| unusable(&error))
        })?;
        Ok(Self { runtime, client })
    }

    /// Sends a write once.
    ///
    /// # Errors
    ///
    /// The server rejects it for another reason than the state of the object.
    pub fn write(&self, write: &Write) -> Result<Written, String> {
        let (method, path, content_type, body) = request(write);
        let request = Request::builder()
            .method(method)
            .uri(&path)
            .header("content-type", content_type)
            .header("user-agent", USER_AGENT)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .map_err(|error| error.to_string())?;
        match self.runtime.block_on(self.client.request::<Value>(request)) {
            Ok(_) => Ok(Written::Changed),
            Err(kube_client::Error::Api(status))
                if [StatusCode::CONFLICT.as_u16(), StatusCode::NOT_FOUND.as_u16()].contains(&status.code) =>
            {
                Ok(Written::Unchanged)
            }
            Err(kube_client::Error::Api(status)) => {
                Err(format!("{method} {path}: {} {}", status.code, status.message))
            }
            // No response: the connection was refused, or closed by a restart.
            Err(_) => Ok(Written::Unreachable),
        }
    }
}

/// Returns method, path, content type and body of a write.
fn request(write: &Write) -> (&'static str, String, &'static str, Option<Value>) {
    let object = |name: &String| format!("{COLLECTION}/{name}");
    let json = "application/json";
    match write {
        Write::Create { name, value } => {
            let body = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {"value": value},
            });
            ("POST", COLLECTION.to_owned(), json, Some(body))
        }
        Write::Update { name, value } => {
            let body = json!({"data": {"value": value}});
            ("PATCH", object(name), "application/merge-patch+json", Some(body))
        }
        Write::Delete { name } => ("DELETE", object(name), json, None),
    }
}
