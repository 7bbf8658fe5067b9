//! Verdict on a run, with its contradictions.

use std::fmt;

use scenario::Place;
use serde::{Deserialize, Serialize};

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing contradicts the scenario or an invariant.
    Pass,
    /// The client did something forbidden, or did not do something required.
    Mismatch,
    /// A step's trigger was never met.
    Stuck,
    /// The client panicked or its process exited.
    Crash,
    /// The harness or the scenario failed; there is no verdict on the client.
    HarnessError,
}

impl Outcome {
    /// Returns the word in reports and known-failures files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Mismatch => "mismatch",
            Self::Stuck => "stuck",
            Self::Crash => "crash",
            Self::HarnessError => "harness_error",
        }
    }
}

/// A check that a run can fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// An invariant, by id.
    Invariant(&'static str),
    /// Something that the scenario expects, by its key in `expect`: `requests[2]`.
    Expected(String),
    /// Something that the client must not do, or not so often, whatever else happens; by its key in `expect`.
    Forbidden(String),
    /// The cache of the client, as the client shows it.
    Dump,
    /// That the run comes to its end.
    Run,
}

impl Check {
    /// Returns whether it is an invariant.
    pub fn is_invariant(&self) -> bool {
        match self {
            Self::Invariant(_) => true,
            Self::Expected(_) | Self::Forbidden(_) | Self::Dump | Self::Run => false,
        }
    }

    /// Returns whether it is the invariant of this id.
    pub fn is(&self, invariant: &str) -> bool {
        match self {
            Self::Invariant(id) => *id == invariant,
            Self::Expected(_) | Self::Forbidden(_) | Self::Dump | Self::Run => false,
        }
    }

    /// Returns whether its failure proves that the client did something wrong, also in a run that took another course than the
    /// scenario: what a client must not do, it did. What is missing may be missing because of that course.
    pub fn proves_alone(&self) -> bool {
        match self {
            Self::Invariant(_) | Self::Forbidden(_) => true,
            Self::Expected(_) | Self::Dump | Self::Run => false,
        }
    }
}

/// `INV-07`, `expect.requests[2]`, `dump`, `run`.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(id) => f.write_str(id),
            Self::Expected(key) | Self::Forbidden(key) => write!(f, "expect.{key}"),
            Self::Dump => f.write_str("dump"),
            Self::Run => f.write_str("run"),
        }
    }
}

impl Serialize for Check {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A contradiction between a trace and an expectation or invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Failed check.
    pub check: Check,
    /// Requirements whose text it contradicts; empty: it is evidence against none.
    pub requirements: Vec<String>,
    /// Description in one sentence, starting with the side at fault.
    pub sentence: String,
    /// Position in the scenario file of the expectation, if any.
    #[serde(serialize_with = "place")]
    pub place: Option<Place>,
    /// `seq` of the records that prove it.
    pub evidence: Vec<u64>,
    /// What was expected, in a few words.
    pub expected: String,
    /// What happened, in a few words.
    pub actual: String,
}

/// The result of judging one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Outcome.
    pub outcome: Outcome,
    /// Contradictions, most important first; empty if the run passed.
    pub contradictions: Vec<Contradiction>,
}

impl Verdict {
    /// Returns true if the outcome is `Pass`.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Pass
    }

    /// Returns true if the verdict is evidence against a requirement: a contradiction names it.
    pub fn breaks(&self, requirement: &str) -> bool {
        let mut named = self.contradictions.iter().flat_map(|found| &found.requirements);
        named.any(|id| id == requirement)
    }

    /// Returns the first contradiction's sentence; empty if the run passed.
    pub fn message(&self) -> &str {
        self.contradictions
            .first()
            .map(|first| first.sentence.as_str())
            .unwrap_or_default()
    }
}

fn place<S: serde::Serializer>(place: &Option<Place>, serializer: S) -> Result<S::Ok, S::Error> {
    place
        .map(|place| format!("{}:{}", place.line, place.column))
        .serialize(serializer)
}
