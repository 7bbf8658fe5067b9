//! Process that writes the verdict of an apiserver, even if the apiserver is killed: fabric8's kube-api-test always kills it,
//! envtest after a timeout. It reads lines from the apiserver, and writes the last one at the end of input, or at an empty
//! line.
//!
//! It must not know the content of a line.

use std::io::{self, BufRead, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use clap::Args;
use serde_json::Value;

use super::verdict::VerdictFile;
use crate::Failure;

/// Write the last line of standard input to a verdict file (internal).
#[derive(Debug, Args)]
pub(crate) struct EnvtestVerdict {
    /// Verdict file.
    path: PathBuf,
}

/// Name of the subcommand.
const SUBCOMMAND: &str = "envtest-verdict";

/// Reads until the apiserver has exited, and appends the last line.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn run(arguments: &EnvtestVerdict) -> Result<(), Failure> {
    keep(io::stdin().lock(), |line| {
        VerdictFile::open(&arguments.path)?.append(line)
    })
}

/// Writes the last complete line at each empty one and at the end: a killed process can leave an incomplete line.
fn keep(mut lines: impl BufRead, mut write: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let (mut last, mut line) = (None, Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if line == b"\n" {
            last.take().map_or(Ok(()), |last: String| write(&last))?;
        } else if line.ends_with(b"\n") {
            last = String::from_utf8(line).ok().or(last);
        }
        line = Vec::new();
    }
    last.map_or(Ok(()), |last| write(&last))
}

/// A running keeper, and a pipe to it.
#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    child: Child,
    pipe: ChildStdin,
}

impl Keeper {
    /// Starts a keeper in a separate process group: envtest sends signals to the whole group of an apiserver.
    ///
    /// # Errors
    ///
    /// A system error.
    pub(super) fn start(path: &Path) -> Result<Self, Failure> {
        let failed = |error| {
            Failure::System(
                "cannot start the process that writes the verdict".to_owned(),
                error,
            )
        };
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            // A copy of the program can be called kube-apiserver.
            .arg0(env!("CARGO_BIN_NAME"))
            .arg(SUBCOMMAND)
            .arg(path)
            .process_group(0)
            .stdin(Stdio::piped())
            // Suites read the output of an apiserver until it ends.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let pipe = child
            .stdin
            .take()
            .ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self {
            path: path.to_owned(),
            child,
            pipe,
        })
    }

    /// Sends the line to be written unless a later one follows. A keeper that has exited is reported by [`Self::finish`].
    pub(super) fn hold(&mut self, line: &Value) {
        let _gone = self.pipe.write_all(format!("{line}\n").as_bytes());
    }

    /// Requests that the last line is written now.
    pub(super) fn write_now(&mut self) {
        let _gone = self.pipe.write_all(b"\n");
    }

    /// Sends the last line, and waits until it is written.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn finish(self, line: &Value) -> Result<(), Failure> {
        let Self {
            path,
            mut child,
            mut pipe,
        } = self;
        let line = format!("{line}\n");
        let sent = pipe.write_all(line.as_bytes());
        drop(pipe);
        match (sent, child.wait()) {
            (Ok(()), Ok(status)) if status.success() => Ok(()),
            (Ok(()) | Err(_), _) => VerdictFile::open(&path)?.append(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(lines: &[u8]) -> Vec<String> {
        let mut kept = Vec::new();
        let done = keep(lines, |line| {
            kept.push(line.trim_end().to_owned());
            Ok(())
        });
        done.expect("nothing is refused");
        kept
    }

    #[test]
    fn the_last_whole_line_is_written() {
        assert_eq!(kept(b"1\n2\n{\"half"), ["2"]);
        assert_eq!(kept(b"1\n2\n3\n"), ["3"]);
        assert!(kept(b"").is_empty());
        assert_eq!(kept(b"1\n2\n\n"), ["2"], "asked for, and no other after it");
        assert_eq!(kept(b"1\n\n\n2\n3\n"), ["1", "3"]);
    }
}
