//! The reports of a run that are written to files, and annotations for GitHub Actions.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ::report::results::Results;
use ::report::{annotations, badge, html, sarif, summary};
use clap::Args;

use super::Conformance;
use crate::report::{self, RESULTS};
use crate::{Failure, output};

/// Reports beside the one on standard output.
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
    /// Writes what was asked for.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(
        &self,
        arguments: &Conformance,
        results: Results,
        junit: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.junit {
            report::write(path, &junit()?)?;
        }
        if let Some(path) = &self.sarif {
            report::write(path, &format!("{:#}\n", sarif::sarif(&results)))?;
        }
        if let (Some(path), Some(footer)) = (&self.badge, &results.footer) {
            report::write(path, &format!("{:#}\n", badge::badge(footer)))?;
        }
        if let Some(path) = &self.summary {
            report::write(path, &summary::summary(&results))?;
        }
        if self.github {
            output::log_raw(&annotations::annotations(&results));
            if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
                append(Path::new(&path), &summary::summary(&results))?;
            }
        }
        if let Some(folder) = &arguments.evidence {
            // Nothing was kept if every test passed: the results are evidence too.
            std::fs::create_dir_all(folder).map_err(|error| {
                Failure::System(format!("cannot create the directory {}", folder.display()), error)
            })?;
            report::write(&folder.join(RESULTS), &results.lines())?;
            if let Some(path) = &self.html {
                report::write(path, &html::page(&[report::read(folder)?]))?;
            }
        }
        Ok(())
    }
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::System(format!("cannot write {}", path.display()), error))
}
