//! Results of a sweep: written as JSON, merged from shards, without times, so that the same seeds give the same bytes
//! on any machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::coverage::Coverage;
use crate::digest::Digest;
use crate::generate::Profile;

/// Results of a sweep, or of some of its shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of the generator.
    pub generator: u32,
    /// Profile of the faults.
    pub profile: Profile,
    /// The client's name.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// The first seed of the whole sweep.
    pub first: u64,
    /// Number of seeds of the whole sweep.
    pub seeds: u64,
    /// Number of shards of the whole sweep.
    pub shards: u64,
    /// Shards included here.
    pub done: BTreeSet<u64>,
    /// Number of seeds run; less than its share if the time was limited.
    pub played: u64,
    /// Number of failing seeds.
    pub flagged: u64,
    /// Failures by cause.
    pub causes: BTreeMap<String, Group>,
    /// Coverage.
    pub coverage: Coverage,
    /// Digest of all traces; `None`: not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Digest>,
}

/// Failures with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Number of seeds.
    pub count: u64,
    /// The first seed.
    pub seed: u64,
    /// Sentence of the first seed's contradiction.
    pub sentence: String,
    /// Whether the control client fails this seed for the same reason; `None`: no control client.
    pub control_fails: Option<bool>,
    /// Name of the shrunk scenario file; `None`: not shrunk.
    pub file: Option<String>,
    /// The shrunk scenario file.
    pub scenario: Option<String>,
}

/// Why results cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// There are no results.
    Nothing,
    /// This field differs.
    Differs(&'static str),
    /// A shard occurs twice.
    Twice(u64),
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => write!(f, "there is no result to merge"),
            Self::Differs(what) => write!(f, "the results are not of one sweep: their {what} differ"),
            Self::Twice(shard) => write!(f, "shard {shard} is in two results"),
        }
    }
}

impl Sweep {
    /// Merges parts of one sweep, in any order.
    ///
    /// # Errors
    /// If they are not parts of one sweep.
    pub fn merge(parts: Vec<Self>) -> Result<Self, Mismatch> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().ok_or(Mismatch::Nothing)?;
        for part in parts {
            whole.add(part)?;
        }
        Ok(whole.normal())
    }

    /// Returns the missing shards.
    pub fn missing(&self) -> Vec<u64> {
        (0..self.shards)
            .filter(|shard| !self.done.contains(shard))
            .collect()
    }

    fn add(&mut self, part: Self) -> Result<(), Mismatch> {
        for (differs, what) in [
            (self.generator != part.generator, "versions of the generator"),
            (self.profile != part.profile, "profiles"),
            (
                (&self.client, &self.client_version) != (&part.client, &part.client_version),
                "clients",
            ),
            ((self.first, self.seeds) != (part.first, part.seeds), "seeds"),
            (self.shards != part.shards, "numbers of shards"),
            (
                self.traces.is_some() != part.traces.is_some(),
                "options (`--digest`)",
            ),
        ] {
            if differs {
                return Err(Mismatch::Differs(what));
            }
        }
        for shard in part.done {
            if !self.done.insert(shard) {
                return Err(Mismatch::Twice(shard));
            }
        }
        self.played += part.played;
        self.flagged += part.flagged;
        self.coverage.merge(&part.coverage);
        if let (Some(mine), Some(digest)) = (&mut self.traces, part.traces) {
            mine.merge(digest);
        }
        for (cause, group) in part.causes {
            let Some(mine) = self.causes.get_mut(&cause) else {
                self.causes.insert(cause, group);
                continue;
            };
            let count = mine.count + group.count;
            if group.seed < mine.seed {
                *mine = group;
            }
            mine.count = count;
        }
        Ok(())
    }

    /// Normalises a complete result to a single shard.
    fn normal(mut self) -> Self {
        if self.missing().is_empty() {
            self.shards = 1;
            self.done = BTreeSet::from([0]);
        }
        self
    }
}
