//! Input and output of a ledger: a list or watch, and a suspicion.

use ::trace::record::{ConnId, StreamId, Verb};

use super::position::Version;
use crate::trace::Moment;

/// A request that no set of loops explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspicion {
    /// The invariants that it may break.
    pub(super) checks: &'static [&'static str],
    /// Position of the request; `None` if no single request proves the violation.
    pub(super) seq: Option<u64>,
}

impl Suspicion {
    /// A request with options that the API rejects: it is a violation whatever was sent before.
    pub(super) const ILLEGAL_OPTIONS: Self = Self {
        checks: &["INV-15"],
        seq: None,
    };
    /// Something after the stop, likewise.
    pub(super) const AFTER_THE_STOP: Self = Self {
        checks: &["INV-18"],
        seq: None,
    };
}

/// A list or watch request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) stream: StreamId,
    pub(super) conn: ConnId,
    pub(super) at: Moment,
    pub(super) verb: Verb,
    pub(super) path: &'a str,
    pub(super) query: &'a [(String, String)],
    /// The newest version written before it.
    pub(super) revision: Option<Version>,
}
