//! What a run came to, and the contradictions that say why.

use scenario::Place;
use serde::{Deserialize, Serialize};

/// What every scenario expects without a word.
const CONVERGENCE: &str = "INV-13";

/// How a run came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing contradicts the scenario or an invariant.
    Pass,
    /// The client did what it must not, or did not what it must.
    Mismatch,
    /// A step waited for something that never came.
    Stuck,
    /// The client panicked or its process died.
    Crash,
    /// The harness or the scenario is at fault; nothing is said about the client.
    HarnessError,
}

impl Outcome {
    /// The word for it in reports and known-failures files.
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

/// One thing that cannot be true if the client is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// `INV-07`, `expect.requests[2]`, `run`.
    pub check: String,
    /// Requirement ids it is evidence for.
    pub requirements: Vec<String>,
    /// In one sentence, naming first who is at fault.
    pub sentence: String,
    /// Line and column in the scenario file, if a part of the file says what was expected.
    #[serde(serialize_with = "place")]
    pub place: Option<Place>,
    /// `seq` of the records that prove it.
    pub evidence: Vec<u64>,
    /// What should have been, in a few words.
    pub expected: String,
    /// What was, in a few words.
    pub actual: String,
}

/// The result of judging one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// How the run came out.
    pub outcome: Outcome,
    /// Why, most telling first; empty when it passed.
    pub contradictions: Vec<Contradiction>,
}

impl Verdict {
    /// Nothing contradicts the scenario or an invariant.
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Pass
    }

    /// Does it speak against a requirement that the scenario covers? What the scenario itself expects does, that the cache is the
    /// truth at the end among it, and of the other invariants those that stand for the requirement.
    pub fn breaks(&self, requirement: &str) -> bool {
        let breaks = |found: &Contradiction| breaks(&found.check, &found.requirements, requirement);
        self.contradictions.iter().any(breaks)
    }

    /// The first contradiction's sentence; empty when it passed.
    pub fn message(&self) -> &str {
        self.contradictions
            .first()
            .map(|first| first.sentence.as_str())
            .unwrap_or_default()
    }
}

/// Does a contradiction speak against a requirement that its scenario covers? `requirements`: those that it is evidence for.
pub fn breaks(check: &str, requirements: &[String], requirement: &str) -> bool {
    let of_an_invariant = check.starts_with("INV-") && check != CONVERGENCE;
    !of_an_invariant || requirements.iter().any(|id| id == requirement)
}

fn place<S: serde::Serializer>(place: &Option<Place>, serializer: S) -> Result<S::Ok, S::Error> {
    place
        .map(|place| format!("{}:{}", place.line, place.column))
        .serialize(serializer)
}
