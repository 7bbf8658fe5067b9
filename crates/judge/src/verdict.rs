//! Verdict on a run, with its contradictions.

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

/// A contradiction between a trace and an expectation or invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Failed check: `INV-07`, `expect.requests[2]`, `run`.
    pub check: String,
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
