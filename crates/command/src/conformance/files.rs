//! The reports of a run that are written to files, and annotations for GitHub Actions.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use ::report::anchor::Anchors;
use ::report::results::Results;
use ::report::{annotations, badge, html, sarif, summary};
use clap::Args;

use super::Conformance;
use crate::{Failure, kept, output, private, report};

/// Reports in addition to the one on standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(super) struct Files {
    /// Also write the results to this file as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Also write a self-contained HTML report to this file; needs --evidence.
    ///
    /// It has a timeline for every attempt whose evidence is kept: with --keep always, of tests that passed too.
    #[arg(long, value_name = "FILE", requires = "evidence")]
    html: Option<PathBuf>,
    /// Also write the results to this file as SARIF 2.1.0, for code scanning.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// File of your repository for results in SARIF and annotations.
    ///
    /// Default: the adapter's file, if the command names it. Results that --known-failures lists point at their entries. Paths are relative to GITHUB_WORKSPACE, or to the working
    /// directory.
    #[arg(long, value_name = "FILE")]
    source: Option<PathBuf>,
    /// Also write a badge to this file, as an endpoint of shields.io reads it.
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// Also write a summary to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Annotate the run of GitHub Actions that this is part of.
    ///
    /// Prints workflow commands to standard error, and appends the summary to the file that GITHUB_STEP_SUMMARY names.
    #[arg(long)]
    github: bool,
}

impl Files {
    /// Checks, before the run, that the requested reports can be written.
    ///
    /// # Errors
    ///
    /// A file exists already, or its directory does not.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let files = [&self.junit, &self.html, &self.sarif, &self.badge, &self.summary];
        files
            .into_iter()
            .flatten()
            .try_for_each(|path| private::check_new(path))
    }

    /// Writes the requested reports.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub(super) fn write(
        &self,
        arguments: &Conformance,
        results: Results,
        junit: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        let anchors = self.anchors(arguments);
        if let Some(path) = &self.junit {
            private::write_new(path, &junit()?)?;
        }
        if let Some(path) = &self.sarif {
            private::write_new(path, &format!("{:#}\n", sarif::sarif(&results, &anchors)))?;
        }
        if let (Some(path), Some(footer)) = (&self.badge, &results.footer) {
            private::write_new(path, &format!("{:#}\n", badge::badge(footer)))?;
        }
        if let Some(path) = &self.summary {
            private::write_new(path, &summary::summary(&results))?;
        }
        if self.github {
            output::log_raw(&annotations::annotations(&results, &anchors));
            if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
                append(Path::new(&path), &summary::summary(&results))?;
            }
        }
        if let Some(folder) = &arguments.evidence {
            kept::results(folder, &results)?;
            if let Some(path) = &self.html {
                private::write_new(path, &html::page(&[report::read(folder)?]))?;
            }
        }
        Ok(())
    }
}

impl Files {
    /// Returns the paths of files of the client's repository, relative to its root.
    fn anchors(&self, arguments: &Conformance) -> Anchors {
        let named = || {
            let words = arguments.command.iter().map(Path::new);
            // An installed program is not a file of the repository, nor is a build output in it.
            let mut own = words.filter(|word| word.is_relative() && is_text(word));
            own.next().map(Path::to_owned)
        };
        Anchors {
            source: self.source.clone().or_else(named).as_deref().and_then(from_root),
            known_failures: arguments.known_failures.as_deref().and_then(from_root),
        }
    }
}

/// Returns whether the file begins with text.
fn is_text(file: &Path) -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(256).read_to_end(&mut start));
    read.is_ok() && !start.contains(&0) && file.is_file()
}

/// Returns the path of a file relative to the root of the repository; `None` if it is outside.
fn from_root(file: &Path) -> Option<String> {
    let workspace = std::env::var_os("GITHUB_WORKSPACE").filter(|path| !path.is_empty());
    let root = match workspace {
        Some(path) => PathBuf::from(path),
        None => std::env::current_dir().ok()?,
    };
    let file = file.canonicalize().ok()?;
    let path = file.strip_prefix(root.canonicalize().ok()?).ok()?;
    Some(path.display().to_string())
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    private_files::append(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::System(format!("cannot write {}", path.display()), error))
}
