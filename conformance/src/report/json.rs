//! One NDJSON record a scenario and a footer with counts; a report without its footer was cut off.

use serde::Serialize;

use crate::suite::{Counts, Judged, Standing};
use crate::verdict::{Contradiction, Outcome};

/// One scenario's line.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    id: &'a str,
    client: &'a str,
    driver: &'a str,
    seed: u64,
    outcome: Outcome,
    /// `passed`, `failed`, `known`, `stale`.
    verdict: Standing,
    covers: Vec<&'a str>,
    message: &'a str,
    contradictions: &'a [Contradiction],
}

/// The last line.
#[derive(Debug, Serialize)]
struct Footer<'a> {
    footer: &'a Counts,
}

/// The line of one scenario, without its newline.
pub fn entry(judged: &Judged) -> String {
    let entry = Entry {
        id: &judged.scenario.id,
        client: judged.client,
        driver: judged.driver.word(),
        seed: judged.seed,
        outcome: judged.verdict.outcome,
        verdict: judged.standing,
        covers: judged
            .scenario
            .covers
            .iter()
            .map(|covered| covered.id.as_str())
            .collect(),
        message: judged.verdict.message(),
        contradictions: &judged.verdict.contradictions,
    };
    serde_json::to_string(&entry).expect("proven invariant: plain strings and numbers always serialize")
}

/// The last line, without its newline.
pub fn footer(counts: &Counts) -> String {
    serde_json::to_string(&Footer { footer: counts })
        .expect("proven invariant: plain strings and numbers always serialize")
}
