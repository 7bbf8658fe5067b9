//! Webhooks of a probe: scripted responses over TLS on loopback, for a real server and the fake alike, and the reviews that they
//! receive. It must not know what a review means.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_apiserver::net::tls::{Authority, Protocols};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::error::Error;

/// Response of a webhook; without any key an empty body.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default = "json_type")]
    content_type: String,
    /// `response` of the review (JSON); the uid of the request is added, unless there is one.
    #[serde(default)]
    response: Option<String>,
    /// JSON patch that is added to `response`.
    #[serde(default)]
    patch: Option<String>,
    /// `response` of a ConversionReview: each object with the requested apiVersion, and the result Success.
    #[serde(default)]
    converts: bool,
    /// The same, and the field of `spec` that has the name of the version gets that of the requested one.
    #[serde(default)]
    renames: bool,
    /// Body, in place of `response`; `{uid}` is that of the request.
    #[serde(default)]
    body: Option<String>,
    /// Never responds.
    #[serde(default)]
    silent: bool,
    /// Closes the connection in place of a response.
    #[serde(default)]
    closes: bool,
}

fn ok() -> u16 {
    200
}

fn json_type() -> String {
    "application/json".to_owned()
}

/// A request that a webhook received.
pub(crate) struct Called {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

type Calls = Arc<Mutex<Vec<Called>>>;

/// The webhooks of a probe, served until this is dropped.
pub(crate) struct Webhooks {
    secured: SocketAddr,
    plain: SocketAddr,
    authority: Authority,
    /// A certificate that the webhooks do not have.
    other: String,
    calls: Calls,
    serving: Vec<JoinHandle<()>>,
}

impl Webhooks {
    pub(crate) async fn serve(webhooks: &BTreeMap<String, Webhook>) -> Result<Self, Error> {
        let failed = |why: &dyn std::fmt::Display| Error::caller(format!("webhooks of the probe: {why}"));
        let authority = Authority::generate().map_err(|why| failed(&why))?;
        let other = Authority::generate().and_then(|other| other.client("other", None));
        let acceptor = authority.acceptor(&[], Protocols::Http1);
        let acceptor = acceptor.map_err(|why| failed(&why))?;
        let webhooks = Arc::new(webhooks.clone());
        let calls = Calls::default();
        let mut addresses = Vec::new();
        let mut serving = Vec::new();
        for acceptor in [Some(acceptor), None] {
            let listener = TcpListener::bind("127.0.0.1:0")
                .await
                .map_err(|why| failed(&why))?;
            addresses.push(listener.local_addr().map_err(|why| failed(&why))?);
            let (webhooks, calls) = (Arc::clone(&webhooks), Arc::clone(&calls));
            serving.push(tokio::spawn(listen(listener, acceptor, webhooks, calls)));
        }
        Ok(Self {
            secured: addresses[0],
            plain: addresses[1],
            authority,
            other: other.map_err(|why| failed(&why))?.certificate_pem,
            calls,
            serving,
        })
    }

    /// Names for the bodies of requests.
    pub(crate) fn names(&self) -> [(&'static str, String); 4] {
        [
            ("hook", format!("https://{}", self.secured)),
            ("plainhook", format!("https://{}", self.plain)),
            ("hookca", STANDARD.encode(self.authority.certificate_pem())),
            ("otherca", STANDARD.encode(&self.other)),
        ]
    }

    /// Returns what was received since the last call of this.
    pub(crate) fn take_calls(&self) -> Vec<Called> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        for task in &self.serving {
            task.abort();
        }
    }
}

async fn listen(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    webhooks: Arc<BTreeMap<String, Webhook>>,
    calls: Calls,
) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, webhooks, calls) = (acceptor.clone(), Arc::clone(&webhooks), Arc::clone(&calls));
        tokio::spawn(async move {
            match acceptor {
                None => answer(socket, &webhooks, &calls).await,
                Some(acceptor) => {
                    // A client that does not trust the certificate disconnects.
                    if let Ok(secured) = acceptor.accept(socket).await {
                        answer(secured, &webhooks, &calls).await;
                    }
                }
            }
        });
    }
}

async fn answer<S>(socket: S, webhooks: &BTreeMap<String, Webhook>, calls: &Calls)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let service = service_fn(|request| received(request, webhooks, calls));
    // The client closes it; an error of the service closes it too, which is how one `closes`.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

/// Headers that are recorded.
const HEADERS: [&str; 3] = ["accept", "content-type", "user-agent"];

async fn received(
    request: hyper::Request<Incoming>,
    webhooks: &BTreeMap<String, Webhook>,
    calls: &Calls,
) -> Result<hyper::Response<Full<Bytes>>, Closed> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let headers = HEADERS.iter().filter_map(|name| {
        let value = head.headers.get(*name)?.to_str().ok()?;
        Some(format!("{name}: {value}"))
    });
    let called = Called {
        line: format!("{} {path}", head.method),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    calls.lock().unwrap_or_else(PoisonError::into_inner).push(called);
    let name = head.uri.path().trim_start_matches('/');
    let Some(webhook) = webhooks.get(name) else {
        let missing = format!("no webhook {name}");
        return respond(404, "text/plain", missing);
    };
    if webhook.silent {
        return std::future::pending().await;
    }
    if webhook.closes {
        return Err(Closed);
    }
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    respond(webhook.status, &webhook.content_type, webhook.body(&review))
}

fn respond(status: u16, content_type: &str, body: String) -> Result<hyper::Response<Full<Bytes>>, Closed> {
    hyper::Response::builder()
        .status(status)
        .header("content-type", content_type)
        .body(Full::from(body))
        .map_err(|_| Closed)
}

impl Webhook {
    /// Body of the response to a review.
    fn body(&self, review: &Value) -> String {
        let request = &review["request"];
        if let Some(body) = &self.body {
            return body.replace("{uid}", request["uid"].as_str().unwrap_or_default());
        }
        let scripted = self.response.as_deref().map(serde_json::from_str::<Value>);
        let mut response = match scripted {
            Some(response) => response.unwrap_or_default(),
            None if self.converts || self.renames => {
                let mut objects = request["objects"].clone();
                for object in objects.as_array_mut().into_iter().flatten() {
                    if self.renames {
                        rename(object, &request["desiredAPIVersion"]);
                    }
                    object["apiVersion"] = request["desiredAPIVersion"].clone();
                }
                json!({ "convertedObjects": objects, "result": { "status": "Success" } })
            }
            None => return String::new(),
        };
        if response.is_object() && response["uid"].is_null() {
            response["uid"] = request["uid"].clone();
        }
        if let Some(patch) = &self.patch {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(patch).into();
        }
        let (kind, version) = (&review["kind"], &review["apiVersion"]);
        json!({ "kind": kind, "apiVersion": version, "response": response }).to_string()
    }
}

/// Renames the field of `spec` that is named after the version of an object.
fn rename(object: &mut Value, to: &Value) {
    let version = |api_version: &Value| {
        let text = api_version.as_str().unwrap_or_default();
        text.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let from = version(&object["apiVersion"]);
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.shift_remove(&from)
    {
        spec.insert(version(to), value);
    }
}

/// The connection is closed without a response.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed by the script")
    }
}

impl std::error::Error for Closed {}
