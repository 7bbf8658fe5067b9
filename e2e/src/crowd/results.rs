//! `e2e/crowd/results.yaml`: the counts of the last full run of each program. It must not know what the programs are accused of.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FOLDER, parsed};

/// Name of the file in the folder.
pub const FILE: &str = "results.yaml";

/// First lines of the file.
const HEADER: &str = "\
# Scenarios by outcome in the last full run of each program, and its lists and watches in two minutes of `serve`. Written by
# `cargo xtask crowd --write`.
";

/// Numbers of scenarios of a run, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Judged without accusation.
    pub passed: usize,
    /// Accused.
    pub accused: usize,
    /// Played without a verdict.
    pub not_judged: usize,
    /// Not played.
    pub not_played: usize,
    /// Lists and watches in `serve`.
    pub reads: u64,
}

/// Counts of the last full run of each program.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Results(BTreeMap<String, Counts>);

impl Results {
    /// Reads the counts; none if there is no file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has mistakes.
    pub fn read(root: &Path) -> Result<Self, String> {
        let file = root.join(FOLDER).join(FILE);
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        parsed(&format!("{FOLDER}/{FILE}"), &text)
    }

    /// Replaces the counts of a program.
    pub fn set(&mut self, program: &str, counts: Counts) {
        self.0.insert(program.to_owned(), counts);
    }

    /// Returns the names of its programs.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Removes the counts of programs that no longer exist.
    pub fn retain(&mut self, programs: &[&str]) {
        self.0.retain(|program, _| programs.contains(&program.as_str()));
    }

    /// Writes the counts.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), String> {
        let file = root.join(FOLDER).join(FILE);
        std::fs::write(&file, self.to_text()).map_err(|error| format!("{}: {error}", file.display()))
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        if self.0.is_empty() {
            text.push_str("{}\n");
        }
        for (program, counts) in &self.0 {
            let Counts {
                passed,
                accused,
                not_judged,
                not_played,
                reads,
            } = counts;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{program}: {{passed: {passed}, accused: {accused}, not_judged: {not_judged}, not_played: {not_played}, \
                 reads: {reads}}}"
            );
        }
        text
    }
}
