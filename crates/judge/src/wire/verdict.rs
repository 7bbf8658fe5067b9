//! What the wire says about clients: values for people and programs, without a decision.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::verdict::Contradiction;

/// A client broke an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The User-Agent of the client, or `(no User-Agent)`.
    pub client: String,
    /// The port it came from, of a client without a User-Agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// In reading what: `pods in default`.
    pub reading: String,
    /// What it contradicts.
    #[serde(flatten)]
    pub found: Contradiction,
    /// The request that proves it, as the trace tells it.
    pub proof: String,
    /// When it was found, in milliseconds since the server started.
    pub at_ms: u64,
}

/// What the wire says about every client so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WireVerdict {
    /// `pass`, `mismatch`, or `nothing` where no client listed or watched.
    pub outcome: &'static str,
    /// Who was there.
    pub clients: Vec<ClientVerdict>,
    /// The invariants that were decided.
    pub judged: Vec<&'static str>,
    /// What was not, and why.
    pub not_judged: &'static str,
}

/// What the wire says about one user agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientVerdict {
    /// Its User-Agent.
    pub client: String,
    /// List/watch loops of it that read one collection at the same time: at least so many.
    pub loops: u64,
    /// Connections it used for lists and watches.
    pub connections: u64,
    /// All requests it sent.
    pub requests: u64,
    /// Lists and watches among them.
    pub reads: u64,
    /// How often it broke which invariant.
    pub violations: BTreeMap<String, u64>,
    /// How, the first of them in full.
    pub contradictions: Vec<Violation>,
}
