//! Upstream: a real apiserver whose responses replace those of the model. Values only: no sockets, no deviations.
//!
//! # Origin of a response
//!
//! What a request is answered with before faults apply comes from one of two origins: the model, or an upstream. Rules,
//! actions, faults, trace and judge read only the response, and are the same for both.
//!
//! 1. `apiserver/upstream.rs` is the only place of the core that distinguishes them: a request that nothing has answered yet
//!    goes out as [`Order::Send`], and its response comes back in parts ([`Inbound`]), each after an [`Order::Pull`]: as the
//!    call of a webhook and its outcome. No code of the core waits, and a client that does not read stops the upstream.
//! 2. A line of a watch becomes the same frame as an event of the model, once it is complete; a list is sent on while its
//!    metadata is read (`document.rs`). Versions, uids and order are the upstream's.
//! 3. Watch caches are those of the proxy: a frozen one delivers nothing, one that lags delivers later, and a list that any
//!    version satisfies gets the answer that the upstream gave the same user before.
//! 4. What only the model can do (compaction, restore, clocks) is an error when the rule that names it is added
//!    ([`Action::needs_model`](scenario::Action::needs_model)), with what to do instead. Writes of a rule are requests of the
//!    server itself, if it may ([`Settings::may_write`]), one after the other (`write.rs`); their outcomes are in the trace.
//! 5. A request carries the credentials of its client, or is sent with the identity that the proxy lends, which may impersonate
//!    the user of a client certificate (`request.rs`); the edge has the credentials of that identity, and this crate never does.

pub(crate) mod document;
pub(crate) mod frame;
pub(crate) mod frames;
pub(crate) mod lines;
mod protobuf;
pub(crate) mod request;
pub(crate) mod write;

use apimachinery::kind::{KindRef, qualified};
use builtin_kinds::crd::rows;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Value, json};

/// A request for the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    /// HTTP method.
    pub method: Method,
    /// Path and query, as the client sent them.
    pub target: String,
    /// End-to-end headers; those of an upgrade too.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whose credentials it has.
    pub identity: Identity,
}

/// Whose credentials a request for the upstream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Its client's, in its headers.
    Own,
    /// Those that the proxy lends: its headers have none, and the edge adds them.
    Lent,
}

/// What the edge does for a forwarded request.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Send this request, and report the head of the response.
    Send(Box<Outbound>),
    /// Report the next part of the response.
    Pull,
}

/// A part of a response of the upstream.
#[derive(Debug)]
pub enum Inbound {
    /// Status and headers.
    Head {
        /// HTTP status.
        status: u16,
        /// Headers, as received.
        headers: HeaderMap,
    },
    /// Bytes of the body.
    Data(Bytes),
    /// The body is complete.
    End,
    /// There is no response, or no more of it.
    Failed(Failure),
}

/// Why there is no response, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No connection, or it broke before the head; with the reason.
    Unreachable(String),
    /// The lent credentials cannot be loaded: an exec plugin or a token file failed; with the reason.
    NoCredentials(String),
    /// The connection broke within the body; with the reason.
    Broken(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "no response of the upstream: {why}"),
            Self::NoCredentials(why) => {
                write!(f, "cannot load the credentials for the upstream: {why}")
            }
            Self::Broken(why) => write!(f, "the response of the upstream ended early: {why}"),
        }
    }
}

/// Returns the message of the first cause of an error, for a [`Failure`].
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns the kind of a custom resource, by its entry in the discovery of a group and version (`APIResource`); `None`: the entry
/// is of no resource.
pub fn custom_resource(group: &str, version: &str, entry: &Value) -> Option<KindRef> {
    let plural = entry["name"].as_str()?;
    let kind = entry["kind"].as_str()?;
    let scope = if entry["namespaced"] == true {
        "Namespaced"
    } else {
        "Cluster"
    };
    let names = json!({
        "plural": plural,
        "singular": entry["singularName"],
        "kind": kind,
        "listKind": format!("{kind}List"),
    });
    let rows = rows(&json!({
        "metadata": { "name": qualified(plural, group) },
        "spec": {
            "group": group,
            "scope": scope,
            "versions": [{ "name": version, "served": true, "storage": true }],
        },
        "status": { "acceptedNames": names, "conditions": [{ "type": "Established", "status": "True" }] },
    }));
    rows.into_iter().next()
}

/// Settings of a server that forwards.
#[derive(Clone)]
pub struct Settings {
    /// Token of the proxy.
    pub token: String,
    /// To whom it lends its identity.
    pub lends: Lends,
    /// Whether rules may write to the upstream, with the identity that it lends.
    pub may_write: bool,
}

/// To whom a server that forwards lends its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lends {
    /// Nobody: a request needs its own credentials.
    Nothing,
    /// Clients with the proxy's token, which they send instead of credentials.
    ForToken,
    /// Clients with a certificate, each as the user of it: the identity may impersonate everybody. A certificate ends at the
    /// proxy, so it cannot be forwarded. Requests without one go out as they are, anonymous ones too.
    ForCertificate,
}

/// Metadata of an object or a list, as far as the trace needs it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "text")]
    pub(crate) name: String,
    #[serde(deserialize_with = "text")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "text")]
    pub(crate) uid: String,
    #[serde(deserialize_with = "text")]
    pub(crate) resource_version: String,
    #[serde(rename = "continue", deserialize_with = "text")]
    pub(crate) continue_token: String,
    pub(crate) remaining_item_count: Option<i64>,
    pub(crate) annotations: Option<Marker>,
}

/// The annotation that ends the initial events of a watch.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Marker {
    #[serde(rename = "k8s.io/initial-events-end")]
    pub(crate) initial_events_end: Option<String>,
}

/// Reads `null` as the empty text.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Metadata {
    /// Returns the identity of the object.
    pub(crate) fn object_ref(self) -> apimachinery::ObjectRef {
        apimachinery::ObjectRef {
            key: apimachinery::ObjectRef::key(&self.namespace, &self.name),
            uid: self.uid,
            resource_version: self.resource_version,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("lends", &self.lends)
            .field("may_write", &self.may_write)
            .finish_non_exhaustive()
    }
}
