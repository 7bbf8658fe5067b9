//! `fake-apiserver recheck`: judges the evidence of earlier conformance runs with the checks of this version.

use std::path::PathBuf;

use clap::Args;
use conformance::adapter::evidence::{Rechecked, find, recheck};
use fake_apiserver::record::line::printable;

use crate::{Failure, output, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   every verdict is the same
  1   a verdict differs
  2   evidence cannot be read
  4   there is no evidence
  70  system error";

/// Judge the evidence of earlier conformance runs again.
///
/// Reads what `conformance --evidence DIR` wrote, and starts nothing. The same version gives the same verdicts; a later one may
/// have more checks.
///
/// Example: fake-apiserver recheck evidence/
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Recheck {
    /// Directory of evidence, or of one attempt.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Judges all evidence in a directory.
///
/// # Errors
/// A verdict differs, or the evidence cannot be read.
pub(crate) fn run(arguments: &Recheck) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let found = find(folder).map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))?;
    if found.is_empty() {
        return Err(Failure::NothingToDo(format!(
            "there is no evidence in {}",
            folder.display()
        )));
    }
    let (mut text, mut differs) = (String::new(), 0);
    for attempt in &found {
        let rechecked = recheck(attempt).map_err(Failure::Usage)?;
        let shown = attempt
            .strip_prefix(folder)
            .unwrap_or(attempt)
            .display()
            .to_string();
        differs += usize::from(!rechecked.is_same());
        text.push_str(&line(&shown, &rechecked));
    }
    text.push_str(&format!(
        "\n{} attempts, {differs} with another verdict\n",
        found.len()
    ));
    stage::block_on(async |stop| output::print(text, &stop).await)?;
    if differs == 0 {
        Ok(())
    } else {
        Err(Failure::Silent(1))
    }
}

fn line(shown: &str, rechecked: &Rechecked) -> String {
    let recorded = rechecked.recorded.outcome.word();
    match &rechecked.current {
        None => format!("– {shown}   {recorded}, nothing to judge\n"),
        Some(_) if rechecked.is_same() => format!("✔ {shown}   {recorded}\n"),
        Some(current) => format!(
            "✘ {shown}   was {recorded} (version {}): {}\n  now {}: {}\n",
            printable(&rechecked.recorded.version),
            printable(&rechecked.recorded.message),
            current.outcome.word(),
            printable(&current.why)
        ),
    }
}
