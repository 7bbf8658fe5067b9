//! `crates/command/libraries.yaml`: what `fake-apiserver run --library` knows of a library, made of the records of the programs that
//! use it in its documented way, and of the public issues of its adapter's known failures. It must not run anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use conformance::baseline::Baseline;

use super::record::{Record, SERVE, folded};
use super::{Crowd, Program};
use crate::adapters::known_failures;

/// The file, from the root.
pub const FILE: &str = "crates/command/libraries.yaml";

/// First lines of the file.
const HEADER: &str = "\
# What `fake-apiserver run --library` knows of libraries: failures of programs that use one as its documentation shows, each upheld
# by a person. `cargo xtask crowd --write-libraries` writes it, from e2e/crowd/record.yaml and adapters/known-failures.
";

/// What a library does wrong in a scenario.
#[derive(Debug, Default)]
struct Failure {
    /// Requirements that it breaks.
    breaks: BTreeSet<String>,
    /// Failed checks that are evidence against no requirement.
    checks: BTreeSet<String>,
}

/// Returns the text of the file.
///
/// # Errors
///
/// The record or a file of known failures has mistakes.
pub fn text(root: &Path, crowd: &Crowd, record: &Record) -> Result<String, String> {
    let mut text = HEADER.to_owned();
    for ((library, version), programs) in by_library(crowd) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{library}@{version}:");
        let issues = issues(root, &programs)?;
        let failures = failures(record, &programs);
        if failures.is_empty() {
            text.push_str("  {}\n");
        }
        for (scenario, failures) in &failures {
            let _ = writeln!(text, "  {scenario}:");
            for (reason, failure) in failures {
                let _ = writeln!(text, "    - breaks: [{}]", listed(&failure.breaks));
                if !failure.checks.is_empty() {
                    let _ = writeln!(text, "      checks: [{}]", listed(&failure.checks));
                }
                let _ = writeln!(text, "      reason:{}", folded(reason, 8));
                if let Some(issue) = issues.get(scenario) {
                    let _ = writeln!(text, "      issue: \"{issue}\"");
                }
            }
        }
    }
    Ok(text)
}

/// Returns the programs of each library and version.
fn by_library(crowd: &Crowd) -> BTreeMap<(String, String), Vec<&Program>> {
    let mut libraries: BTreeMap<_, Vec<&Program>> = BTreeMap::new();
    for program in crowd.programs() {
        if let Some(known_as) = &program.known_as {
            let key = (known_as.library.clone(), program.version().to_owned());
            libraries.entry(key).or_default().push(program);
        }
    }
    libraries
}

/// Returns the failures of programs by scenario and sentence of the record.
fn failures(record: &Record, programs: &[&Program]) -> BTreeMap<String, BTreeMap<String, Failure>> {
    let mut failures: BTreeMap<String, BTreeMap<String, Failure>> = BTreeMap::new();
    for program in programs {
        for entry in record.of(&program.name).accusations {
            let entry = entry.value;
            if entry.scenario == SERVE {
                continue;
            }
            let reason = entry.upheld.split_whitespace().collect::<Vec<_>>().join(" ");
            let failure = failures
                .entry(entry.scenario)
                .or_default()
                .entry(reason)
                .or_default();
            if entry.requirements.is_empty() {
                failure.checks.insert(entry.check);
            }
            failure.breaks.extend(entry.requirements);
        }
    }
    failures
}

/// Returns the public issues of a library by scenario.
fn issues(root: &Path, programs: &[&Program]) -> Result<BTreeMap<String, String>, String> {
    let clients: BTreeSet<&str> = programs
        .iter()
        .filter_map(|program| Some(program.known_as.as_ref()?.client.as_str()))
        .collect();
    let mut issues = BTreeMap::new();
    for client in clients {
        let baseline = Baseline::read(&known_failures(root, client)).map_err(|error| error.to_string())?;
        let public = baseline
            .entries
            .into_iter()
            .filter(|known| known.issue != "none public");
        issues.extend(public.map(|known| (known.scenario, known.issue)));
    }
    Ok(issues)
}

/// Formats names as the items of a list: those with a bracket, as `expect.requests[0]`, are quoted.
fn listed(names: &BTreeSet<String>) -> String {
    let names = names.iter().map(|name| match name.contains('[') {
        true => format!("\"{name}\""),
        false => name.clone(),
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::repository;

    #[test]
    fn what_the_command_knows_is_what_was_recorded() {
        let root = repository();
        let crowd = Crowd::read(root).unwrap();
        let record = Record::read(root).unwrap();
        let written = std::fs::read_to_string(root.join(FILE)).unwrap();
        let now = text(root, &crowd, &record).unwrap();
        assert!(
            written == now,
            "{FILE} is not of the records: cargo xtask crowd --write-libraries"
        );
    }

    #[test]
    fn known_failures_exist_for_every_client() {
        let root = repository();
        for program in Crowd::read(root).unwrap().programs() {
            if let Some(known_as) = &program.known_as {
                let file = known_failures(root, &known_as.client);
                assert!(
                    file.is_file(),
                    "{}: {} is no client",
                    program.name,
                    known_as.client
                );
            }
        }
    }
}
