//! `fake-apiserver diff`: compares two conformance runs, and separates changes of the client from changes of the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ::report::diff::{Compared, Side, diff};
use ::report::html::Run;
use ::report::results::{Results, digest};
use clap::{Args, ValueEnum};
use conformance::adapter::evidence::{Evidence, judged};
use conformance::adapter::outcome::Outcome;

use crate::{Failure, output, report, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   the client got no worse in any test that both runs judged
  1   the client got worse in a test
  2   a run cannot be read
  4   no test was judged in both runs
  70  system error";

/// Compare two conformance runs.
///
/// A and B are files that `conformance --format json` printed, or directories of evidence. A difference is attributed to the
/// client only if both runs played the same scenario file with the same version of fake-apiserver. Scenario files that
/// changed, that are new or gone, flaky tests and tests that were not judged are listed apart, and do not fail the comparison.
///
/// Example: fake-apiserver diff main.ndjson branch.ndjson
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Diff {
    /// The earlier run.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The later run.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Format of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text.
    Text,
    /// One JSON object.
    Json,
}

/// Compares the runs.
///
/// # Errors
///
/// As the exit codes document.
pub(crate) fn run(arguments: &Diff) -> Result<(), Failure> {
    let diff = diff(side(&arguments.a)?, side(&arguments.b)?);
    let text = match arguments.format {
        Format::Text => output::printable_lines(&diff.text()).into_owned(),
        Format::Json => {
            let text = serde_json::to_string_pretty(&diff);
            text.map_err(|error| Failure::System("no JSON".to_owned(), error.into()))? + "\n"
        }
    };
    stage::block_on(async |stop| output::print(text, &stop).await)?;
    match diff.exit_code() {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

fn side(path: &Path) -> Result<Side, Failure> {
    if path.is_dir() {
        let run = report::read(path)?;
        return match &run.results {
            Some(results) => Ok(Side::of(&run.name, results)),
            None => of_evidence(&run),
        };
    }
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let results = Results::parse(&text).map_err(|error| wrong(&error))?;
    if results.tests.is_empty() && results.footer.is_none() {
        return Err(wrong(&"no line of `conformance --format json`"));
    }
    Ok(Side::of(&path.display().to_string(), &results))
}

/// Returns a run by its evidence alone, judged by this version, so that runs of different versions can be compared. The first
/// attempt that did not pass represents its test, as in results.
fn of_evidence(run: &Run) -> Result<Side, Failure> {
    let mut by_test: BTreeMap<&str, Vec<&Evidence>> = BTreeMap::new();
    for kept in &run.attempts {
        let id = kept.evidence.summary.id.as_str();
        by_test.entry(id).or_default().push(&kept.evidence);
    }
    let mut tests = BTreeMap::new();
    for (id, attempts) in by_test {
        let compared: Result<Vec<Compared>, Failure> = attempts.iter().map(|one| compared(one)).collect();
        let mut compared = compared?;
        let outcomes: Vec<Outcome> = compared.iter().map(|one| one.outcome).collect();
        let failed = outcomes.iter().position(|outcome| *outcome != Outcome::Pass);
        let mut one = compared.swap_remove(failed.unwrap_or(0));
        one.flaky = outcomes.iter().any(|outcome| *outcome != outcomes[0]);
        tests.insert(id.to_owned(), one);
    }
    let first = run.attempts.first().map(|kept| &kept.evidence.summary);
    let hello = first.and_then(|summary| summary.hello.as_ref());
    Ok(Side {
        client: hello.map_or_else(
            || run.name.clone(),
            |hello| format!("{} {}", hello.client.name, hello.client.version),
        ),
        version: first.map(|summary| summary.version.clone()).unwrap_or_default(),
        edition: first.and_then(|summary| summary.edition.clone()),
        edition_digest: first.and_then(|summary| summary.edition_digest.clone()),
        complete: false,
        tests,
    })
}

fn compared(evidence: &Evidence) -> Result<Compared, Failure> {
    let now = judged(evidence)
        .map_err(|errors| Failure::Usage(format!("scenario {}: {errors}", evidence.summary.id)))?;
    let (outcome, message, verdict) = match now {
        Some(now) => (now.outcome, now.why, now.verdict),
        None => (evidence.summary.outcome, evidence.summary.message.clone(), None),
    };
    let broken = verdict.iter().flat_map(|verdict| &verdict.contradictions);
    Ok(Compared {
        outcome,
        flaky: false,
        digest: digest(&evidence.text),
        broken: broken.map(|found| found.check.to_string()).collect(),
        message,
    })
}
