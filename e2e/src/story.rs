//! What people type at kubectl, in chapters: `oracle/kubectl/<chapter>/story.sh` with its manifests, what it prints in a
//! real cluster in `recorded.txt`, and in `differences.yaml` what the fake does otherwise, with reasons.
//!
//! A command is a line for the shell. It knows files and kubectl, and no server: a kubeconfig says which one it is.

mod judge;
mod normal;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::kubectl::{Kubectl, Outcome};
use crate::toolchain::repository;

/// One chapter: commands that build on each other, on a server of their own.
#[derive(Debug, Clone)]
pub struct Chapter {
    folder: PathBuf,
    /// The line of `story.sh` that says what it is about.
    pub title: String,
    /// What is typed, in order.
    pub commands: Vec<String>,
    /// What the fake does otherwise, and why.
    pub differences: Vec<Difference>,
}

/// One entry of `differences.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Why it is so, for who reads `docs/fidelity.md`.
    pub reason: String,
    /// The commands it shows in, as they are typed.
    pub commands: Vec<String>,
    /// The lines that differ: `-` a real server's, `+` the fake's.
    pub lines: String,
}

impl Chapter {
    /// Every chapter, by name.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn all() -> Result<Vec<Self>, String> {
        let folder = repository().join("oracle/kubectl");
        let entries = std::fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let mut folders: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        folders.iter().map(|folder| Self::read(folder)).collect()
    }

    /// The chapter in a folder.
    ///
    /// # Errors
    /// What cannot be read, and commands that stand in `differences.yaml` only.
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

    /// The name of its folder.
    pub fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Runs every command, one after the other, and writes down what was printed, without what no two runs share.
    ///
    /// # Errors
    /// A command that does not end.
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

    /// Keeps what a real server made kubectl print.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn record(&self, transcript: &str) -> Result<(), String> {
        let file = self.recording();
        std::fs::write(&file, transcript).map_err(|why| format!("{}: {why}", file.display()))
    }

    /// Holds what was played against the recording.
    ///
    /// # Errors
    /// What differs and is not listed, and what is listed and does not differ, for people to read.
    pub fn judge(&self, played: &str) -> Result<(), String> {
        judge::judge(self, &read(&self.recording())?, played)
    }

    fn recording(&self) -> PathBuf {
        self.folder.join("recorded.txt")
    }
}

/// What `docs/fidelity.md` says of all chapters.
///
/// # Errors
/// What cannot be read.
pub fn page() -> Result<String, String> {
    let chapters = Chapter::all()?;
    let mut page = String::from(
        "\n## kubectl\n\n\
         The commands of `oracle/kubectl` were typed at a real kube-apiserver 1.36, and what kubectl printed was kept.\n\
         `cargo test -p e2e` types them at `fake-apiserver serve` and compares line by line; times, uids, addresses and\n\
         the widths of columns are left out.\n\n\
         | chapter | commands | printed otherwise | what it is about |\n|---|---|---|---|\n",
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
    let _infallible = writeln!(page, "| | {commands} | {otherwise} | |\n\nPrinted otherwise:\n");
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
