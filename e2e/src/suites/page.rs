//! Section of `docs/fidelity.md` about the suites: counts of the last recorded runs, and the known failures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::expected::{Against, Verdict, known_failures};
use super::{SUITES, Suite};

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    /// Number of tests that passed.
    passed: usize,
    /// Number of all tests.
    of: usize,
    /// Version of the suite's project.
    version: String,
    /// Kubernetes minor version of the server, e.g. 1.37.
    kubernetes: String,
}

/// Last recorded run on each server.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    fake: Option<Count>,
    real: Option<Count>,
}

/// Writes the counts of a run to `e2e/suites/counts.json`. `kubernetes` is the minor version of the server.
///
/// # Errors
///
/// The file, or the pinned version, cannot be read, or the file cannot be written.
pub fn record(suite: &Suite, against: Against, kubernetes: &str, verdict: &Verdict) -> Result<(), String> {
    let mut all = counts()?;
    let (_, version) = suite.pinned()?;
    let count = Some(Count {
        passed: verdict.passed,
        of: verdict.of,
        version,
        kubernetes: kubernetes.to_owned(),
    });
    let of = all.entry(suite.name.to_owned()).or_default();
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
    let runs = counts
        .values()
        .flat_map(|Counts { fake, real }| fake.iter().chain(real));
    let kubernetes = runs
        .map(|run| run.kubernetes.as_str())
        .max_by_key(|version| minor(version))
        .unwrap_or_default();
    let mut page = format!(
        "\n## Suites of other projects\n\n\
         `cargo xtask suites` runs them against `fake-apiserver serve` or, with `--against real`, against a real\n\
         kube-apiserver, each beside the same components. The table has the last recorded run of each. The servers\n\
         are of Kubernetes {kubernetes}, the suites of the version in the table, unless a count has another one.\n\n\
         | suite | version | fake | real | what it is |\n|---|---|---|---|---|\n",
    );
    let none = Counts::default();
    for suite in &SUITES {
        let (project, version) = suite.pinned()?;
        let Counts { fake, real } = counts.get(suite.name).unwrap_or(&none);
        let [fake, real] = [fake, real].map(|run| shown(run.as_ref(), &version, kubernetes));
        let _infallible = writeln!(
            page,
            "| {} | {project} {version} | {fake} | {real} | {} |",
            suite.name, suite.about
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

/// Returns the minor number of a version such as 1.37.
fn minor(version: &str) -> Option<u32> {
    version.split_once('.')?.1.parse().ok()
}

/// Returns the cell of a run, with its versions if they are not `version` of the suite and `kubernetes` of the server.
fn shown(run: Option<&Count>, version: &str, kubernetes: &str) -> String {
    let Some(run) = run else {
        return "not recorded".to_owned();
    };
    let mut cell = format!("{} of {}", run.passed, run.of);
    if run.version != version {
        let _infallible = write!(cell, ", of {}", run.version);
    }
    if run.kubernetes != kubernetes {
        let _infallible = write!(cell, ", on Kubernetes {}", run.kubernetes);
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::{Count, minor, shown};

    #[test]
    fn other_versions_are_shown_with_the_count() {
        let run = Count {
            passed: 3,
            of: 4,
            version: "0.24.1".to_owned(),
            kubernetes: "1.36".to_owned(),
        };
        assert_eq!(shown(Some(&run), "0.24.1", "1.36"), "3 of 4");
        assert_eq!(
            shown(Some(&run), "0.25.2", "1.37"),
            "3 of 4, of 0.24.1, on Kubernetes 1.36"
        );
        assert_eq!(shown(None, "0.25.2", "1.37"), "not recorded");
    }

    #[test]
    fn minors_are_compared_as_numbers() {
        assert!(minor("1.100") > minor("1.37"));
    }
}
