//! Calls of webhooks as values: what an answer waits for, and the outcomes it has so far.
//!
//! An answer that needs a webhook is computed again from its beginning with each outcome: nothing is stored before the last
//! one. What changed meanwhile is seen, and a review that is different then is sent again, as a server does that retries an
//! update. It must not know what a review holds, or how calls are carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::{Details, Status};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use builtin_kinds::webhook::{ClientConfig, Endpoint, Outcome};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Model, write};

/// Time that a request may take with all its webhooks (`--request-timeout`).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A POST of a review, to be carried out by the edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    /// Name of the webhook, for the trace.
    pub webhook: String,
    /// URL.
    pub url: String,
    /// Host and port to connect to; `Err`: there is none, for this reason.
    pub address: Result<(String, u16), String>,
    /// Name that the certificate must have.
    pub server_name: String,
    /// Authorities to trust (PEM); empty: those of the system.
    pub authority_pem: Vec<u8>,
    /// Body.
    pub body: Bytes,
    /// Time for connecting, and the whole response.
    pub timeout: Duration,
}

impl HookCall {
    /// Outcome of the call where nothing listens.
    pub fn refused(&self) -> Outcome {
        let why = match &self.address {
            Ok((host, port)) if host.contains(':') => {
                format!("dial tcp [{host}]:{port}: connect: connection refused")
            }
            Ok((host, port)) => format!("dial tcp {host}:{port}: connect: connection refused"),
            Err(why) => why.clone(),
        };
        Outcome::Failed(why)
    }
}

/// Outcomes of the calls that an answer waited for, and those it waits for now.
#[derive(Debug, Default)]
pub struct Replies {
    /// Time of the first attempt, and what made its identifiers unique.
    began: Option<(Duration, u64)>,
    known: BTreeMap<String, Arc<Reply>>,
    wanted: Vec<(String, HookCall)>,
    /// Whether it waited before.
    waited: bool,
}

/// Outcome of a call.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) uid: String,
    pub(super) url: String,
    pub(super) outcome: Outcome,
}

impl Replies {
    /// Begins an attempt at `now`. Returns the time of the first one, and a number that makes its identifiers unique.
    pub(super) fn begin(&mut self, now: Duration, model: &Model) -> (Duration, u64) {
        self.wanted.clear();
        *self
            .began
            .get_or_insert_with(|| (now, model.writes + model.dry_runs))
    }

    /// Whether the last attempt waits for a call.
    pub(super) fn waits(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Whether this is the first time that an attempt waits.
    pub(super) fn waits_first(&mut self) -> bool {
        !std::mem::replace(&mut self.waited, true)
    }

    /// Returns the calls that the last attempt waits for, with their keys.
    pub fn take_wanted(&mut self) -> Vec<(String, HookCall)> {
        std::mem::take(&mut self.wanted)
    }

    /// Adds the outcome of a call.
    pub fn add(&mut self, key: String, call: HookCall, outcome: Outcome) {
        let (_, nonce) = self.began.unwrap_or_default();
        let reply = Reply {
            uid: write::uid(nonce, &key),
            url: call.url,
            outcome,
        };
        self.known.insert(key, Arc::new(reply));
    }

    /// Returns the outcome of a review, if there is one; else the answer waits for it. `review` is that with a uid; `round`
    /// tells calls with the same review apart.
    ///
    /// # Errors
    /// 504: the request takes too long.
    pub(super) fn call(
        &mut self,
        model: &Model,
        now: Duration,
        (webhook, client, timeout): (&str, &ClientConfig, Duration),
        round: u8,
        review: impl Fn(&str) -> Value,
    ) -> Result<Option<Arc<Reply>>, Status> {
        let text = format!("{webhook}/{round}/{:?}/{}", client.place, review(""));
        let key = URL_SAFE_NO_PAD.encode(Sha256::digest(text));
        if let Some(known) = self.known.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let (began, nonce) = self.began.unwrap_or_default();
        let rest = (began + REQUEST_TIMEOUT).saturating_sub(now);
        if rest.is_zero() {
            return Err(timed_out());
        }
        let timeout = timeout.min(rest);
        let call = HookCall {
            webhook: webhook.to_owned(),
            url: client.url(timeout),
            address: model.address_of(client),
            server_name: client.server_name(),
            authority_pem: client.authority_pem.clone(),
            body: Bytes::from(review(&write::uid(nonce, &key)).to_string()),
            timeout,
        };
        self.wanted.push((key, call));
        Ok(None)
    }
}

fn timed_out() -> Status {
    Status {
        code: 504,
        reason: "Timeout".to_owned(),
        message: "Timeout: request did not complete within requested timeout - context deadline exceeded"
            .to_owned(),
        ..Status::default()
    }
    .with_details(Details::default())
}

impl Model {
    /// Host and port of a webhook: of a Service, those of an endpoint, because nothing here forwards a cluster IP.
    ///
    /// # Errors
    /// The words of apiserver for a Service that leads nowhere.
    pub(super) fn address_of(&self, client: &ClientConfig) -> Result<(String, u16), String> {
        let (namespace, name, port) = match &client.place {
            Endpoint::Url(_) => return client.address().ok_or_else(String::new),
            Endpoint::Service {
                namespace,
                name,
                port,
                ..
            } => (namespace.as_str(), name.as_str(), *port),
        };
        let found = |group: &str, plural: &str| {
            let kind = self.catalog.find(group, plural)?;
            let key = kind.key(Some(namespace), name);
            self.objects(kind).get(key.as_str()).map(|object| object.json())
        };
        let service = found("", "services").ok_or_else(|| format!("service \"{name}\" not found"))?;
        if service["spec"]["type"] == "ExternalName" {
            let host = service["spec"]["externalName"].as_str().unwrap_or_default();
            return Ok((host.to_owned(), port));
        }
        let ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let wanted = { ports }
            .find(|known| known["port"] == port)
            .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        let named = |port: &&Value| port["name"].as_str().unwrap_or_default() == text(&wanted["name"]);
        let ready = |address: &Value, ports: &Value| {
            let port = ports.as_array()?.iter().find(named)?["port"].as_u64()?;
            Some((address.as_str()?.to_owned(), u16::try_from(port).ok()?))
        };
        let endpoints = found("", "endpoints").unwrap_or_default();
        let subsets = endpoints["subsets"].as_array().into_iter().flatten();
        let direct = { subsets }.find_map(|subset| ready(&subset["addresses"][0]["ip"], &subset["ports"]));
        direct
            .or_else(|| {
                self.slices(namespace, name).iter().find_map(|slice| {
                    let listed = slice["endpoints"].as_array()?;
                    let mut serving = listed
                        .iter()
                        .filter(|endpoint| endpoint["conditions"]["ready"] != false);
                    serving.find_map(|endpoint| ready(&endpoint["addresses"][0], &slice["ports"]))
                })
            })
            .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
    }

    /// EndpointSlices of a Service.
    fn slices(&self, namespace: &str, service: &str) -> Vec<Value> {
        let Some(kind) = self.catalog.find("discovery.k8s.io", "endpointslices") else {
            return Vec::new();
        };
        watchcache::range(self.objects(kind), Some(namespace), "")
            .filter(|slice| slice.label("kubernetes.io/service-name") == Some(service))
            .map(|slice| slice.json())
            .collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
