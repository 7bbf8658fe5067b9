//! Cells that a long run may not reach though nothing forbids them, each with a seed that reaches it.
//!
//! Most need TLS or HTTP/2, which few seeds have, and a fault within a phase that is short. [`find`] searches for such a
//! seed among those whose draft has the fault. Seeds belong to a version of the generator; a test plays them.

use std::ops::Range;
use std::sync::Arc;

use conformance::client::Client;
use conformance::drive::sim::Link;

use super::{Coverage, Table, times};
use crate::generate::{Draft, Profile, names};
use crate::play::play;

/// A cell of a table, and a seed that reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rare {
    /// Profile of the seed.
    pub profile: Profile,
    /// Table: `inputs`, `decisions`, `faults`.
    pub table: &'static str,
    /// Row.
    pub row: &'static str,
    /// Column.
    pub column: &'static str,
    /// The seed.
    pub seed: u64,
}

/// Returns all cells with a known seed.
pub fn rare() -> &'static [Rare] {
    &RARE
}

const RARE: [Rare; 26] = [
    fault(
        Profile::Honest,
        "truncate no_close_notify",
        "initial watch",
        318_249,
    ),
    fault(Profile::Honest, "truncate no_close_notify", "paging", 832),
    fault(Profile::Honest, "truncate no_close_notify", "probing", 77_140),
    fault(Profile::Honest, "truncate goaway", "initial watch", 209_660),
    fault(Profile::Honest, "truncate goaway", "paging", 899_533),
    fault(Profile::Honest, "truncate goaway", "probing", 45_248),
    fault(Profile::Honest, "end no_close_notify", "initial watch", 7_344),
    fault(Profile::Honest, "end no_close_notify", "paging", 8_503),
    fault(Profile::Honest, "end no_close_notify", "probing", 9_086),
    fault(Profile::Honest, "end goaway", "initial watch", 348_786),
    fault(Profile::Honest, "end goaway", "paging", 946),
    fault(Profile::Honest, "end goaway", "probing", 34_420),
    fault(
        Profile::Lies,
        "truncate no_close_notify",
        "initial watch",
        161_305,
    ),
    fault(Profile::Lies, "truncate no_close_notify", "paging", 66_568),
    fault(Profile::Lies, "truncate no_close_notify", "probing", 6_200),
    fault(Profile::Lies, "truncate goaway", "probing", 44_724),
    fault(Profile::Lies, "end no_close_notify", "paging", 16_914),
    fault(Profile::Lies, "end no_close_notify", "probing", 405),
    fault(Profile::Lies, "end goaway", "probing", 2_789),
    fault(Profile::Lies, "end no_close_notify", "initial watch", 260_824),
    fault(Profile::Lies, "truncate goaway", "initial watch", 1_852_492),
    fault(Profile::Lies, "truncate goaway", "paging", 756_537),
    fault(Profile::Lies, "end goaway", "initial watch", 630_023),
    fault(Profile::Lies, "end goaway", "paging", 153_804),
    input(Profile::Lies, "paging", "503", 24_246),
    input(Profile::Lies, "paging", "given up by the client", 34_726),
];

const fn input(profile: Profile, row: &'static str, column: &'static str, seed: u64) -> Rare {
    Rare {
        profile,
        table: "inputs",
        row,
        column,
        seed,
    }
}

const fn fault(profile: Profile, row: &'static str, column: &'static str, seed: u64) -> Rare {
    Rare {
        profile,
        table: "faults",
        row,
        column,
        seed,
    }
}

/// Returns the reason of a cell that has a known seed in this profile.
pub(super) fn reason(profile: Profile, table: &str, row: &str, column: &str) -> Option<&'static str> {
    let is_known =
        |rare: &Rare| (rare.profile, rare.table, rare.row, rare.column) == (profile, table, row, column);
    RARE.iter()
        .any(is_known)
        .then_some("rare: a test plays a seed that reaches it")
}

/// Returns the first seed that reaches a cell with this client.
pub fn find(
    (table, row, column): (&str, &str, &str),
    profile: Profile,
    client: &dyn Client,
    mut seeds: Range<u64>,
) -> Option<u64> {
    seeds.find(|seed| {
        let draft = Draft::of(*seed, profile);
        let may = table != "faults" || draft.actions().any(|action| names::name(action) == row);
        may && times(named(&covered(&draft, client), table), row, column) > 0
    })
}

fn covered(draft: &Draft, client: &dyn Client) -> Coverage {
    let played = play(Link::InProcess, &Arc::new(draft.scenario()), client, draft.seed);
    let mut coverage = Coverage::default();
    coverage.add(draft, &played.records);
    coverage
}

/// Returns the table of this name, as in [`Unreached`](super::reasons::Unreached).
fn named<'a>(coverage: &'a Coverage, table: &str) -> &'a Table {
    match table {
        "inputs" => &coverage.inputs,
        "decisions" => &coverage.decisions,
        _ => &coverage.faults,
    }
}
