//! `fake-apiserver scenario from`: a scenario of a recording or an audit log. It must not know how one is made.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{self, Style};
use recording::{Cannot, Options, Recording, draft, violations};

use crate::words::{quoted, span};
use crate::{Failure, output, private, stage};

/// Largest recording, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Make scenarios of what was recorded.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    From(From),
}

/// Make a scenario of a recording, or of an audit log.
///
/// Reads what `--record` wrote, the trace of `ctl trace --format json`, records.ndjson of --evidence, or an audit log of
/// kube-apiserver (audit.k8s.io/v1, JSON lines). The scenario has the server's side: the objects of the first list, the writes
/// that followed, and statuses, errors, cut lines and ends as the client got them. What did not lead to a violation is left out.
/// Comments list what the recording does not have.
///
/// Example: fake-apiserver scenario from incident.ndjson --around INV-04 -o resumes-after-410.yaml
#[derive(Debug, Args)]
struct From {
    /// Recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Violation to end at, e.g. INV-04, or INV-04#2 [default: the first].
    ///
    /// Without a violation in the recording the scenario has all of the first collection that is watched.
    #[arg(long, value_name = "INVARIANT[#N]")]
    around: Option<String>,
    /// Id of a scenario in a recording of `run` [default: one that failed].
    #[arg(long, value_name = "ID")]
    of: Option<String>,
    /// Longest wait between two actions of the server; longer ones are shortened.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = span)]
    longest_wait: Duration,
    /// Write the scenario to this new file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Makes a scenario.
///
/// # Errors
///
/// The file is no recording, or has not what is wanted; the scenario cannot be written.
pub(crate) fn run(arguments: &ScenarioArguments) -> Result<(), Failure> {
    let Verb::From(from) = &arguments.verb;
    let shown = from.file.display().to_string();
    if let Some(output) = &from.output {
        private::check_new(output)?;
    }
    let recording = chosen(from, read(&from.file)?)?;
    let options = Options {
        source: from
            .file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        around: from.around.clone(),
        longest_wait: from.longest_wait,
    };
    let cut = recording
        .cut
        .map(|bytes| format!("; its last line is not complete, and left out ({bytes} bytes)"));
    let cut = cut.unwrap_or_default();
    let draft = draft(&recording, &options).map_err(|cannot| match cannot {
        Cannot::NoReads { .. } => Failure::NothingToDo(format!("{shown} {cannot}{cut}")),
        Cannot::NoViolation { .. } => Failure::Usage(format!("{shown}: {cannot}{cut}")),
    })?;
    let path = from.output.as_deref().unwrap_or(Path::new("scenario.yaml"));
    if let Err(errors) = scenario::parse("recorded/scenario", path, &draft.text) {
        let rendered = errors.render(Style::Plain);
        return Err(Failure::Usage(format!(
            "{shown} has what a scenario cannot have, such as a request with an invalid selector; choose another violation \
             (--around), or remove its records: {rendered}"
        )));
    }
    match &from.output {
        Some(path) => {
            private::write_new(path, &draft.text)?;
            for line in &draft.unknown {
                output::log(&printable(&format!("not in the recording: {line}")));
            }
            let path = quoted(&path.display().to_string());
            output::log(&format!(
                "wrote {path}; play it: fake-apiserver run {path} -- COMMAND"
            ));
            Ok(())
        }
        None => stage::block_on(async |stop| output::print(draft.text, &stop).await),
    }
}

/// Reads the recordings in a file.
fn read(path: &Path) -> Result<Vec<Recording>, Failure> {
    let shown = path.display();
    let bytes = private_files::read(path, FILE_BYTES_MAX).map_err(|error| {
        let kind = error.kind();
        if kind == io::ErrorKind::NotFound {
            Failure::Usage(format!("{shown} does not exist"))
        } else if kind == io::ErrorKind::FileTooLarge {
            Failure::Usage(format!(
                "{shown} {error}: record the newest part only (--record-last), or cut it at a line"
            ))
        } else {
            Failure::Usage(format!("{shown}: {error}"))
        }
    })?;
    let text = String::from_utf8_lossy(&bytes);
    recording::read(&text).map_err(|error| {
        let at = error.line.map(|line| format!(":{line}")).unwrap_or_default();
        Failure::Usage(format!("{shown}{at}: {}", error.message))
    })
}

/// Chooses the recording of a scenario: the one that is named, the first with a violation, or the first.
fn chosen(from: &From, mut recordings: Vec<Recording>) -> Result<Recording, Failure> {
    let id = |recording: &Recording| {
        recording
            .header
            .as_ref()
            .and_then(|header| header.scenario.clone())
    };
    let at = match &from.of {
        Some(wanted) => {
            let found = recordings
                .iter()
                .position(|recording| id(recording).as_ref() == Some(wanted));
            found.ok_or_else(|| {
                let ids: Vec<String> = recordings.iter().filter_map(id).collect();
                let has = match ids.is_empty() {
                    true => "of no scenario".to_owned(),
                    false => ids.join(", "),
                };
                Failure::Usage(format!(
                    "{} has no recording of {wanted}; it is {has}",
                    from.file.display()
                ))
            })?
        }
        None if recordings.len() > 1 => {
            let wrong = recordings
                .iter()
                .position(|recording| !violations(recording).is_empty());
            wrong.unwrap_or_default()
        }
        None => 0,
    };
    Ok(recordings.swap_remove(at))
}
