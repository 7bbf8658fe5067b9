//! `fake-apiserver report`: one self-contained HTML file of earlier conformance runs.

use std::path::{Path, PathBuf};

use clap::Args;
use conformance::adapter::evidence;
use report::html::{self, Kept, Run};
use report::results::Results;

use crate::{Failure, private};

/// The results of a run, in its directory of evidence.
pub(crate) const RESULTS: &str = "results.ndjson";

const EXIT_CODES: &str = "\
Exit codes:
  0   the file is written
  2   evidence cannot be read
  4   there is neither evidence nor results
  70  system error";

/// Write an HTML report of earlier conformance runs.
///
/// Reads what `conformance --evidence DIR` wrote, and starts nothing. Several directories are shown side by side, a column each.
/// The file is complete: it needs no server, no network and no JavaScript.
///
/// Example: fake-apiserver report evidence/ --html report.html
#[derive(Debug, Args)]
#[command(name = "report", after_help = EXIT_CODES)]
pub(crate) struct ReportArguments {
    /// Directories of evidence, one per run.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// File to write.
    #[arg(long, value_name = "FILE", required = true)]
    html: PathBuf,
}

/// Writes the report.
///
/// # Errors
///
/// The evidence cannot be read, or the file cannot be written.
pub(crate) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    private::check_new(&arguments.html)?;
    let runs: Result<Vec<Run>, Failure> = arguments.folders.iter().map(|folder| read(folder)).collect();
    private::write_new(&arguments.html, &html::page(&runs?))
}

/// Reads the evidence and the results of one run.
///
/// # Errors
///
/// They cannot be read, or do not exist.
pub(crate) fn read(folder: &Path) -> Result<Run, Failure> {
    let wrong =
        |path: &Path, error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let found = evidence::find(folder).map_err(|error| wrong(folder, &error))?;
    let file = folder.join(RESULTS);
    let results = match private_files::read(&file, evidence::FILE_BYTES_MAX) {
        Ok(bytes) => {
            let parsed = Results::parse(&String::from_utf8_lossy(&bytes));
            Some(parsed.map_err(|error| wrong(&file, &error))?)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(wrong(&file, &error)),
    };
    if found.is_empty() && results.is_none() {
        return Err(Failure::NothingToDo(format!(
            "there is neither evidence nor {RESULTS} in {}",
            folder.display()
        )));
    }
    let attempts = found.iter().map(|attempt| {
        Ok(Kept {
            number: number(attempt),
            evidence: evidence::read(attempt).map_err(Failure::Usage)?,
            scenario: None,
            trimmed: Vec::new(),
        })
    });
    Ok(Run {
        name: name(folder),
        results,
        attempts: attempts.collect::<Result<_, Failure>>()?,
    })
}

/// Returns the last named component of a path.
fn name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let last = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    last.unwrap_or_else(|| folder.display().to_string())
}

/// Returns the number of an attempt: 2 for `attempt-2`.
fn number(attempt: &Path) -> u32 {
    let name = attempt.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix("attempt-")?.parse().ok())
        .unwrap_or(1)
}
