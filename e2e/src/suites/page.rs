//! Section of `docs/fidelity.md` about the suites: counts of the last recorded runs, and the known failures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::expected::{Against, Verdict, known_failures};
use super::{SUITES, Suite};

/// Number of tests that passed, and of all tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    passed: usize,
    of: usize,
}

/// Last recorded run on each server.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Counts {
    fake: Option<Count>,
    real: Option<Count>,
}

/// Writes the counts of a run to `e2e/suites/counts.json`.
///
/// # Errors
///
/// The file cannot be read or written.
pub fn record(suite: &Suite, against: Against, verdict: &Verdict) -> Result<(), String> {
    let mut all = counts()?;
    let of = all.entry(suite.name.to_owned()).or_default();
    let count = Some(Count {
        passed: verdict.passed,
        of: verdict.of,
    });
    match against {
        Against::Fake => of.fake = count,
        Against::Real => of.real = count,
    }
    let file = super::folder().join("counts.json");
    let text = serde_json::to_string_pretty(&all).map_err(|why| why.to_string())?;
    std::fs::write(&file, text + "\n").map_err(|why| format!("{}: {why}", file.display()))
}

fn counts() -> Result<BTreeMap<String, Counts>, String> {
    let file = super::folder().join("counts.json");
    let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
    serde_json::from_str(&text).map_err(|why| format!("{}: {why}", file.display()))
}

/// Returns the section of `docs/fidelity.md`.
///
/// # Errors
///
/// A file cannot be read.
pub fn page() -> Result<String, String> {
    let (counts, known) = (counts()?, known_failures()?);
    let mut page = String::from(
        "\n## Suites of other projects\n\n\
         `cargo xtask suites` runs them against `fake-apiserver serve` or, with `--against real`, against a real\n\
         kube-apiserver 1.36, each beside the same components. The table has the last recorded run of each.\n\n\
         | suite | version | fake | real | what it is |\n|---|---|---|---|---|\n",
    );
    let shown = |count: Option<Count>| {
        count.map_or_else(
            || "not recorded".to_owned(),
            |count| format!("{} of {}", count.passed, count.of),
        )
    };
    for suite in &SUITES {
        let (project, version) = suite.pinned()?;
        let Counts { fake, real } = counts.get(suite.name).copied().unwrap_or_default();
        let _infallible = writeln!(
            page,
            "| {} | {project} {version} | {} | {} | {} |",
            suite.name,
            shown(fake),
            shown(real),
            suite.about
        );
    }
    for suite in &SUITES {
        let known = known.get(suite.name).map(Vec::as_slice).unwrap_or_default();
        if known.is_empty() {
            continue;
        }
        let _infallible = writeln!(page, "\nKnown failures of {}:\n", suite.name);
        for expected in known {
            let both = if expected.real { " (a real server too)" } else { "" };
            let specs: Vec<String> = expected.specs.iter().map(|spec| format!("`{spec}`")).collect();
            let reason = expected.reason.trim();
            let _infallible = writeln!(page, "- {reason}{both} {}", specs.join(", "));
        }
    }
    Ok(page)
}
