//! kubectl commands as users type them, in chapters: `fidelity/oracle/kubectl/<chapter>/story.sh` with its manifests, their output in
//! a real cluster in `recorded.txt`, and the differences of the fake in `differences.yaml`, with reasons.
//!
//! A command is a line for the shell. It must not know servers: a kubeconfig selects one.

mod judge;
mod normal;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::kubectl::{Kubectl, Outcome};
use crate::toolchain::repository;

/// One chapter: commands that build on each other, on a new server.
#[derive(Debug, Clone)]
pub struct Chapter {
    folder: PathBuf,
    /// Title line of `story.sh`.
    pub title: String,
    /// Commands, in order.
    pub commands: Vec<String>,
    /// Differences of the fake, with reasons.
    pub differences: Vec<Difference>,
}

/// One entry of `differences.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Reason, for the readers of `docs/fidelity.md`.
    pub reason: String,
    /// Commands with the difference.
    pub commands: Vec<String>,
    /// Lines that differ: `-` from a real server, `+` from the fake.
    pub lines: String,
}

impl Chapter {
    /// Returns all chapters, by name.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn all() -> Result<Vec<Self>, String> {
        let folder = repository().join("fidelity/oracle/kubectl");
        let entries = std::fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let mut folders: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        folders.iter().map(|folder| Self::read(folder)).collect()
    }

    /// Reads the chapter in a folder.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or `differences.yaml` has a command that the chapter does not.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let story = read(&folder.join("story.sh"))?;
        let (title, _) = story.split_once('\n').unwrap_or((&story, ""));
        let commands: Vec<String> = story
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        let file = folder.join("differences.yaml");
        let differences: Vec<Difference> = if file.exists() {
            serde_saphyr::from_str(&read(&file)?).map_err(|why| format!("{}: {why}", file.display()))?
        } else {
            Vec::new()
        };
        let mut named = differences.iter().flat_map(|difference| &difference.commands);
        match named.find(|command| !commands.contains(command)) {
            Some(unknown) => Err(format!("{}: story.sh has no `{unknown}`", file.display())),
            None => Ok(Self {
                folder: folder.to_owned(),
                title: title.trim_start_matches("# ").to_owned(),
                commands,
                differences,
            }),
        }
    }

    /// Returns the name of its folder.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Runs all commands, in order, and returns their normalised output.
    ///
    /// # Errors
    ///
    /// A command does not end.
    pub fn play(&self, kubectl: &Kubectl) -> Result<String, String> {
        let mut transcript = String::new();
        for command in &self.commands {
            let Outcome { success, out, err } = kubectl
                .shell(&self.folder, command)
                .ok_or_else(|| format!("`{command}` does not end"))?;
            let _infallible = writeln!(transcript, "$ {command}");
            transcript.push_str(&normal::text(&out));
            for line in normal::text(&err).lines() {
                let _infallible = writeln!(transcript, "{}", format!("! {line}").trim_end());
            }
            if !success {
                transcript.push_str("! (failed)\n");
            }
            transcript.push('\n');
        }
        Ok(transcript)
    }

    /// Writes the output of a run against a real server.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn record(&self, transcript: &str) -> Result<(), String> {
        let file = self.recording();
        std::fs::write(&file, transcript).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// Compares the output of a run with the recording.
    ///
    /// # Errors
    ///
    /// Differences that are not listed, and listed ones that do not occur, as text.
    pub fn judge(&self, played: &str) -> Result<(), String> {
        judge::judge(self, &read(&self.recording())?, played)
    }

    fn recording(&self) -> PathBuf {
        self.folder.join("recorded.txt")
    }
}

/// Returns the section of `docs/fidelity.md` about all chapters.
///
/// # Errors
///
/// A file cannot be read.
pub fn page() -> Result<String, String> {
    let chapters = Chapter::all()?;
    let mut page = String::from(
        "\n## kubectl\n\n\
         The commands of `fidelity/oracle/kubectl` were run against a real kube-apiserver 1.37, and their output was recorded.\n\
         `cargo test -p e2e` runs them against `fake-apiserver serve` and compares line by line, without times,\n\
         uids, addresses and column widths.\n\n\
         | chapter | commands | with differences | topic |\n|---|---|---|---|\n",
    );
    let (mut commands, mut otherwise) = (0, 0);
    for chapter in &chapters {
        let different = |command: &&String| {
            let mut known = chapter.differences.iter();
            known.any(|difference| difference.commands.contains(command))
        };
        let different = chapter.commands.iter().filter(different).count();
        commands += chapter.commands.len();
        otherwise += different;
        let _infallible = writeln!(
            page,
            "| {} | {} | {different} | {} |",
            chapter.name(),
            chapter.commands.len(),
            chapter.title
        );
    }
    let _infallible = writeln!(page, "| | {commands} | {otherwise} | |\n\nDifferences:\n");
    let mut reasons = std::collections::BTreeMap::<&str, Vec<&str>>::new();
    for difference in chapters.iter().flat_map(|chapter| &chapter.differences) {
        let commands = difference.commands.iter().map(String::as_str);
        reasons
            .entry(difference.reason.trim())
            .or_default()
            .extend(commands);
    }
    for (reason, commands) in reasons {
        let _infallible = writeln!(page, "- {reason} `{}`", commands.join("`, `"));
    }
    Ok(page)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))
}
