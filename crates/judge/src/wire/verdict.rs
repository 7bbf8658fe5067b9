//! Violations found on the wire, as data for people and programs. No decisions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::verdict::Contradiction;

/// A violation of an invariant by a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The User-Agent of the client, or `(no User-Agent)`.
    pub client: String,
    /// The client's port, if it sends no User-Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The collection read: `pods in default`.
    pub reading: String,
    /// The violation.
    #[serde(flatten)]
    pub found: Contradiction,
    /// The request that proves it, formatted as in the trace.
    pub proof: String,
    /// When it was found, in milliseconds since the server started.
    pub at_ms: u64,
}

/// Verdicts on all clients so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WireVerdict {
    /// `pass`, `mismatch`, or `nothing` if no client sent a list or watch.
    pub outcome: &'static str,
    /// Verdict per client.
    pub clients: Vec<ClientVerdict>,
    /// The invariants that were checked.
    pub judged: Vec<&'static str>,
    /// Which invariants were not checked, and why.
    pub not_judged: &'static str,
}

/// Verdict on one user agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientVerdict {
    /// User-Agent.
    pub client: String,
    /// Minimum number of its list/watch loops that read one collection at the same time.
    pub loops: u64,
    /// Number of connections it used for lists and watches.
    pub connections: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of lists and watches.
    pub reads: u64,
    /// Number of violations by invariant.
    pub violations: BTreeMap<String, u64>,
    /// The first violations in full.
    pub contradictions: Vec<Violation>,
}
