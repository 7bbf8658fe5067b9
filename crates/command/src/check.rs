//! `fake-apiserver check`: validates scenario files without running them.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{LoadErrors, Style, Warning, find, warnings};
use serde_json::{Value, json};

use crate::{Failure, output, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   no mistakes
  1   warnings, with --strict
  2   a file has mistakes or cannot be read
  70  system error";

/// Validate scenario files without running them.
///
/// Reports every mistake with its line. Also warns about expectations that cannot be met, as far as the file alone
/// shows: a `delete` expected where nothing is deleted, a page that no list has.
///
/// Example: fake-apiserver check scenarios/gone my-scenario.yaml
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES
)]
pub(crate) struct Check {
    /// Scenario files or folders.
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Exit with code 1 if there are warnings.
    #[arg(long)]
    strict: bool,
}

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text: every mistake with its line and a hint.
    Human,
    /// One JSON object per file, and a footer with counts.
    Json,
}

/// Counts over all files.
#[derive(Debug, Default)]
struct Counts {
    files: usize,
    mistaken: usize,
    mistakes: usize,
    warnings: usize,
}

/// Checks files and folders.
///
/// # Errors
/// A file has mistakes, or there are warnings and `--strict`.
pub(crate) fn run(check: &Check) -> Result<(), Failure> {
    let (files, unread) = find(&check.files);
    let mut counts = Counts::default();
    let mut text = String::new();
    for errors in &unread {
        counts.mistaken(errors);
        text.push_str(&mistaken(errors, check.format));
    }
    for file in files {
        match file.load() {
            Err(errors) => {
                counts.mistaken(&errors);
                text.push_str(&mistaken(&errors, check.format));
            }
            Ok(scenario) => {
                let warnings = warnings(&scenario);
                counts.files += 1;
                counts.warnings += warnings.len();
                let path = printable(&file.path.display().to_string()).into_owned();
                text.push_str(&sound(&path, &scenario.id, &warnings, check.format));
            }
        }
    }
    text.push_str(&counts.text(check.format));
    stage::block_on(async |stop| output::print(text, &stop).await)?;
    match counts {
        Counts { mistaken: 1.., .. } => Err(Failure::Silent(2)),
        Counts { warnings: 1.., .. } if check.strict => Err(Failure::Silent(1)),
        Counts { .. } => Ok(()),
    }
}

impl Counts {
    fn mistaken(&mut self, errors: &LoadErrors) {
        self.files += 1;
        self.mistaken += 1;
        self.mistakes += errors.count();
    }

    fn text(&self, format: Format) -> String {
        let Self {
            files,
            mistaken,
            mistakes,
            warnings,
        } = self;
        match format {
            Format::Human => {
                let s = |count: &usize| if *count == 1 { "" } else { "s" };
                format!(
                    "{files} file{} checked: {mistakes} mistake{} in {mistaken}, {warnings} warning{}\n",
                    s(files),
                    s(mistakes),
                    s(warnings)
                )
            }
            Format::Json => {
                let footer = json!({"footer": {
                    "files": files, "mistaken": mistaken, "mistakes": mistakes, "warnings": warnings,
                }});
                format!("{footer}\n")
            }
        }
    }
}

fn mistaken(errors: &LoadErrors, format: Format) -> String {
    match format {
        Format::Human => format!("{}\n", errors.render(Style::for_stdout())),
        Format::Json => {
            let line = json!({
                "file": errors.path(),
                "mistakes": errors.count(),
                "errors": listed(errors),
                "warnings": [],
            });
            format!("{line}\n")
        }
    }
}

/// Returns the mistakes of a file as JSON.
pub(crate) fn listed(errors: &LoadErrors) -> Vec<Value> {
    let errors = errors.errors().iter();
    let errors = errors.map(|error| {
        json!({
            "code": error.code.word(),
            "message": error.message,
            "line": error.at.line,
            "column": error.at.column,
            "hint": error.hint,
        })
    });
    errors.collect()
}

fn sound(path: &str, id: &str, warnings: &[Warning], format: Format) -> String {
    match format {
        Format::Human => {
            let mut text = String::new();
            for warning in warnings {
                let Warning { at, message, hint } = warning;
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "{path}:{}:{}: warning: {} ({hint})",
                    at.line,
                    at.column,
                    printable(message)
                );
            }
            text
        }
        Format::Json => {
            let warnings: Vec<Value> = warnings
                .iter()
                .map(|Warning { at, message, hint }| {
                    json!({"message": message, "line": at.line, "column": at.column, "hint": hint})
                })
                .collect();
            let line = json!({"file": path, "id": id, "mistakes": 0, "errors": [], "warnings": warnings});
            format!("{line}\n")
        }
    }
}
