//! The directory of evidence that `run` and `conformance` write: a folder per attempt, and the results. It must not know how tests are
//! run.

use std::path::Path;

use conformance::adapter::attempt::Attempt;
use conformance::adapter::evidence;
use fake_apiserver::scenario::edition::Edition;
use report::results::Results;

use crate::report::RESULTS;
use crate::{Failure, private};

/// Checks, before anything is played, that the directory is new or empty.
///
/// # Errors
///
/// It is not.
pub(crate) fn check(folder: &Path) -> Result<(), Failure> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::Usage(format!(
            "--evidence {} is not empty: name a new directory",
            folder.display()
        )));
    }
    Ok(())
}

/// Writes the evidence of an attempt, numbered from 1. `text`: content of the scenario's file.
///
/// # Errors
///
/// A file cannot be written.
pub(crate) fn attempt(
    folder: &Path,
    number: usize,
    attempt: &Attempt,
    text: &str,
    (seed, edition): (u64, Option<&Edition>),
) -> Result<(), Failure> {
    let folder = folder
        .join(&attempt.scenario.id)
        .join(format!("attempt-{number}"));
    evidence::write(&folder, attempt, text, seed, edition)
        .map_err(|error| Failure::System(format!("cannot write {}", folder.display()), error))
}

/// Writes the results beside the evidence.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn results(folder: &Path, results: &Results) -> Result<(), Failure> {
    // Without kept evidence the folder does not exist: the results are evidence too.
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::System(format!("cannot create the directory {}", folder.display()), error)
    })?;
    private::write_new(&folder.join(RESULTS), &results.lines())
}
