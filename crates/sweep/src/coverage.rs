//! Coverage of random scenarios, counted from traces: states × inputs of a list/watch client, requests × responses of
//! the fake's decision tables, and faults × phases of a client's life cycle.
//!
//! A cell that stays at 0 has a known reason ([`unreached`]) or is a gap of the generator.

mod decision;
mod life;
mod rare;
mod reasons;

use std::collections::BTreeMap;

use fake_apiserver::record::{Record, What};
use serde::{Deserialize, Serialize};

use crate::generate::Draft;
use crate::generate::names::{self, Trigger};

pub use self::decision::{ANSWERS, requests};
pub use self::life::{INPUTS, PHASES};
pub use self::rare::{Rare, find, rare};
pub use self::reasons::unreached;

/// Counts per cell of the tables: table, row, column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// State of the client × input.
    #[serde(default)]
    pub inputs: Table,
    /// Request × response.
    #[serde(default)]
    pub decisions: Table,
    /// Fault × phase of the client at its start.
    #[serde(default)]
    pub faults: Table,
    /// Fault × trigger of its step.
    #[serde(default)]
    pub triggers: Table,
}

/// Counts by row and column; cells with count 0 are absent.
pub type Table = BTreeMap<String, BTreeMap<String, u64>>;

impl Coverage {
    /// Adds a run.
    pub fn add(&mut self, draft: &Draft, records: &[Record]) {
        let mut life = life::Life::default();
        let mut decisions = decision::Decisions::default();
        let conclusion = draft.conclusion();
        let steps: Vec<_> = draft.steps.iter().chain(&conclusion).collect();
        for record in records {
            if matches!(record.what, What::StopRequested) {
                break;
            }
            if let What::Step { step, .. } = record.what
                && let Some(step) = steps.get(step)
            {
                for name in step.items().map(names::name) {
                    count(&mut self.faults, name, life.phase());
                    count(&mut self.triggers, name, Trigger::of(step).name());
                }
            }
            for (phase, input) in life.take(record) {
                count(&mut self.inputs, phase, input);
            }
            if let Some((request, answer)) = decisions.take(&record.what) {
                count(&mut self.decisions, request, answer);
            }
        }
    }

    /// Adds the counts of another part of a sweep.
    pub fn merge(&mut self, other: &Self) {
        for (mine, others) in [
            (&mut self.inputs, &other.inputs),
            (&mut self.decisions, &other.decisions),
            (&mut self.faults, &other.faults),
            (&mut self.triggers, &other.triggers),
        ] {
            for (row, columns) in others {
                let row = mine.entry(row.clone()).or_default();
                for (column, times) in columns {
                    *row.entry(column.clone()).or_default() += times;
                }
            }
        }
    }
}

fn count(table: &mut Table, row: &str, column: &str) {
    // In nearly all cases both exist, and nothing is allocated.
    if let Some(times) = table.get_mut(row).and_then(|columns| columns.get_mut(column)) {
        *times += 1;
    } else {
        table
            .entry(row.to_owned())
            .or_default()
            .insert(column.to_owned(), 1);
    }
}

/// Returns the count of a cell.
pub fn times(table: &Table, row: &str, column: &str) -> u64 {
    let columns = table.get(row);
    columns
        .and_then(|columns| columns.get(column))
        .copied()
        .unwrap_or(0)
}
