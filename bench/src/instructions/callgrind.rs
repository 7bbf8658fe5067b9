//! Programs run by callgrind, a tool of valgrind that counts the instructions that a program executes.
//!
//! Source: valgrind's manual, "Callgrind" (`--callgrind-out-file`, the monitor command `dump`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::child::{Child, pinned};
use crate::http::PATIENCE;
use crate::swarm::now;

/// A server whose instructions are counted.
pub(super) struct Counted {
    pub(super) server: Child,
    out: PathBuf,
    dumps: u32,
}

impl Counted {
    /// Starts `program` under callgrind. `out`: file for the counts; its dumps follow it.
    pub(super) fn start(program: &Path, arguments: &[&str], out: &Path) -> io::Result<Self> {
        clear(out)?;
        let mut command = callgrind(program, out);
        command.args(arguments);
        Ok(Self {
            server: Child::spawned(command, program)?,
            out: out.to_owned(),
            dumps: 0,
        })
    }

    /// Waits until no thread of the server runs.
    ///
    /// A server that finds the next request before it sleeps saves going to sleep, some 1,500 instructions. Whether it does depends
    /// on how busy the machine is; with this wait it never does.
    pub(super) fn rest(&self) -> io::Result<()> {
        let end = now() + PATIENCE;
        while self.server.runs()? {
            if now() > end {
                return Err(io::Error::other("the server did not come to rest"));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns the instructions since the last call, or since the start.
    pub(super) fn take(&mut self) -> io::Result<u64> {
        let pid = format!("--pid={}", self.server.id());
        // Variables are part of the name of the pipe between the two.
        let dumped = in_few_variables(&mut Command::new("vgdb"))
            .args([&pid, "dump"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| missing("vgdb", &error))?;
        if !dumped.status.success() {
            let why = String::from_utf8_lossy(&dumped.stderr).into_owned();
            return Err(io::Error::other(format!("vgdb dump failed: {why}")));
        }
        self.dumps += 1;
        let mut file = self.out.clone().into_os_string();
        file.push(format!(".{}", self.dumps));
        totals(Path::new(&file))
    }
}

/// Runs `program` to its end and returns its instructions.
pub(super) fn whole(program: &Path, arguments: &[&str], out: &Path) -> io::Result<u64> {
    clear(out)?;
    let status = callgrind(program, out)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| missing("valgrind", &error))?;
    if !status.success() {
        return Err(io::Error::other(format!(
            "{} {} under valgrind: {status}",
            program.display(),
            arguments.join(" ")
        )));
    }
    totals(out)
}

/// Returns the first line of `program --version`.
pub(super) fn version(program: &str) -> io::Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|error| missing(program, &error))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn callgrind(program: &Path, out: &Path) -> Command {
    let mut command = pinned(Path::new("valgrind"));
    in_few_variables(&mut command);
    command.arg("--tool=callgrind");
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(program);
    command
}

/// Leaves a command the variables that it needs: reading one costs more instructions the more there are, and cargo, a shell and
/// a CI service set different ones.
fn in_few_variables(command: &mut Command) -> &mut Command {
    let kept = ["PATH", "HOME"].into_iter();
    let kept = kept.filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.env_clear().envs(kept)
}

/// Removes the counts of an earlier run, which could be taken for those of this one.
fn clear(out: &Path) -> io::Result<()> {
    let folder = out.parent().unwrap_or(Path::new("."));
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_dump = entry
            .file_name()
            .to_string_lossy()
            .starts_with(&format!("{name}."));
        if is_dump || entry.path() == out {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Reads the total of a file of callgrind.
fn totals(file: &Path) -> io::Result<u64> {
    let text = std::fs::read_to_string(file)?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals:"));
    total
        .and_then(|total| total.trim().parse().ok())
        .ok_or_else(|| io::Error::other(format!("{} has no totals", file.display())))
}

fn missing(program: &str, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot run {program} ({error}): install the Debian packages valgrind, or rustc"),
    )
}
