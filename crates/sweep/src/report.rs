//! Summary of a sweep on one screen. Text only; the command prints it.

use std::fmt::Write as _;

use crate::coverage::{self, PHASES, Table, times};
use crate::generate::names::NAMES;
use crate::result::{Group, Sweep};

/// Maximum number of causes printed.
const CAUSES_MAX: usize = 12;
/// Maximum number of gaps printed.
const GAPS_MAX: usize = 12;

/// Returns the summary: what was run and found, and what was never reached.
pub fn screen(sweep: &Sweep) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_screen(&mut text, sweep);
    text
}

fn write_screen(text: &mut String, sweep: &Sweep) -> std::fmt::Result {
    let missing = sweep.missing();
    writeln!(
        text,
        "{} {}, profile {}, generator {}: {} of {} seeds from {} played, {} flagged, {} causes",
        sweep.client,
        sweep.client_version,
        sweep.profile.word(),
        sweep.generator,
        sweep.played,
        sweep.seeds,
        sweep.first,
        sweep.flagged,
        sweep.causes.len()
    )?;
    if !missing.is_empty() {
        writeln!(text, "  {} of {} shards are missing", missing.len(), sweep.shards)?;
    }
    let mut causes: Vec<(&String, &Group)> = sweep.causes.iter().collect();
    causes.sort_by_key(|(_, group)| (std::cmp::Reverse(group.count), group.seed));
    for (cause, group) in causes.iter().take(CAUSES_MAX) {
        let control = match group.control_fails {
            Some(true) => "; the control client fails it too",
            Some(false) | None => "",
        };
        writeln!(text, "{:>8} × {cause}", group.count)?;
        match &group.file {
            Some(file) => writeln!(text, "           first seed {}{control}; {file}", group.seed)?,
            None => writeln!(text, "           first seed {}{control}", group.seed)?,
        }
    }
    if causes.len() > CAUSES_MAX {
        writeln!(text, "           and {} causes more", causes.len() - CAUSES_MAX)?;
    }
    if let Some(traces) = sweep.traces {
        writeln!(text, "traces: {traces}")?;
    }
    let unreached = coverage::unreached(&sweep.coverage, sweep.profile);
    let gaps: Vec<_> = unreached.iter().filter(|cell| cell.why.is_none()).collect();
    writeln!(
        text,
        "reached: states × inputs {}, requests × answers {}, faults × phases {}; never reached {}, of which {} without a known reason",
        reached(&sweep.coverage.inputs),
        reached(&sweep.coverage.decisions),
        reached(&sweep.coverage.faults),
        unreached.len(),
        gaps.len()
    )?;
    for gap in gaps.iter().take(GAPS_MAX) {
        writeln!(text, "  never: {}: {} × {}", gap.table, gap.row, gap.column)?;
    }
    if gaps.len() > GAPS_MAX {
        writeln!(
            text,
            "  and {} more; --coverage prints all",
            gaps.len() - GAPS_MAX
        )?;
    }
    Ok(())
}

fn reached(table: &Table) -> usize {
    table.values().map(std::collections::BTreeMap::len).sum()
}

/// Returns all tables, and each cell that was never reached with its reason.
pub fn tables(sweep: &Sweep) -> String {
    let coverage = &sweep.coverage;
    let mut text = String::new();
    let requests = coverage::requests();
    let requests: Vec<&str> = requests
        .iter()
        .map(String::as_str)
        .filter(|row| coverage.decisions.contains_key(*row))
        .collect();
    for (title, rows, columns, table) in [
        (
            "inputs × states",
            &coverage::INPUTS[..],
            &PHASES[..],
            &turned(&coverage.inputs),
        ),
        (
            "requests × answers",
            &requests[..],
            &coverage::ANSWERS[..],
            &coverage.decisions,
        ),
        ("faults × phases", &NAMES[..], &PHASES[..], &coverage.faults),
    ] {
        let _ = writeln!(text, "\n{title}: {}", columns.join(" | "));
        for row in rows {
            let counts: Vec<String> = columns
                .iter()
                .map(|column| times(table, row, column).to_string())
                .collect();
            let _ = writeln!(text, "  {row}: {}", counts.join(" | "));
        }
    }
    text.push_str("\nnever reached:\n");
    for cell in coverage::unreached(coverage, sweep.profile) {
        let why = cell.why.unwrap_or("NO KNOWN REASON");
        let _ = writeln!(text, "  {}: {} × {}: {why}", cell.table, cell.row, cell.column);
    }
    text
}

/// Transposes a table.
fn turned(table: &Table) -> Table {
    let mut turned = Table::new();
    for (row, columns) in table {
        for (column, count) in columns {
            turned
                .entry(column.clone())
                .or_default()
                .insert(row.clone(), *count);
        }
    }
    turned
}
