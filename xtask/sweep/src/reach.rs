//! `cargo xtask sweep reach`: a seed for a cell that no long run has reached.

use sweep::coverage;

use super::arguments::Played;
use super::{Chosen, NOTHING_PLAYED, out};

#[derive(clap::Args)]
pub(super) struct Reach {
    /// Table: inputs, decisions or faults.
    #[arg(value_name = "TABLE", value_parser = ["inputs", "decisions", "faults"])]
    table: String,
    /// Row, as printed by --coverage.
    #[arg(value_name = "ROW")]
    row: String,
    /// Column, as printed by --coverage.
    #[arg(value_name = "COLUMN")]
    column: String,
    /// Number of seeds to search.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    seeds: u64,
    #[command(flatten)]
    played: Played,
}

/// Searches, prints the seed, and returns the exit code.
pub(super) fn find(options: &Reach) -> Result<u8, String> {
    let client = Chosen::by(&options.played.client)?;
    let cell = (
        options.table.as_str(),
        options.row.as_str(),
        options.column.as_str(),
    );
    let seeds = options.played.first..options.played.first + options.seeds;
    let profile = options.played.profile.value();
    Ok(match coverage::find(cell, profile, client.client(), seeds) {
        Some(seed) => {
            out(&format!("seed {seed}\n"));
            0
        }
        None => {
            out("no seed reaches it\n");
            NOTHING_PLAYED
        }
    })
}
