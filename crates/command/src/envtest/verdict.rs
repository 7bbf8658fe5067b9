//! The file in `FAKE_APISERVER_VERDICT`. A suite starts many apiservers, also in parallel: each appends one line of JSON when
//! it exits.
//!
//! It must not know how a verdict is computed.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fake_apiserver::server::RuleView;
use judge::wire::WireVerdict;
use serde_json::{Value, json};

use crate::Failure;

/// Environment variable with the path of the file. `%p` is replaced by the process id.
pub(super) const VARIABLE: &str = "FAKE_APISERVER_VERDICT";

/// Placeholder of the process id in the path.
const PID: &str = "%p";

/// Returns the file, after checking that it can be written; `None` if the variable is not set.
///
/// # Errors
///
/// It cannot be written.
pub(super) fn file_of_environment() -> Result<Option<PathBuf>, Failure> {
    let Some(name) = named() else {
        return Ok(None);
    };
    let path = PathBuf::from(name.replace(PID, &std::process::id().to_string()));
    VerdictFile::open(&path)?;
    Ok(Some(path))
}

/// Checks that the file can be written, before an apiserver is started.
///
/// # Errors
///
/// It cannot be written.
pub(super) fn check_environment() -> Result<(), Failure> {
    // A file per process is created by that process.
    let name = named().filter(|name| !name.contains(PID));
    name.map_or(Ok(()), |name| VerdictFile::open(Path::new(&name)).map(drop))
}

fn named() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// The open file.
#[derive(Debug)]
pub(super) struct VerdictFile {
    path: PathBuf,
    file: File,
}

impl VerdictFile {
    /// Opens or creates the file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let opened = private_files::append(path);
        let file = opened.map_err(|error| {
            Failure::System(format!("{VARIABLE}: cannot write {}", path.display()), error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Appends a line under a lock, so that lines of several processes do not mix.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn append(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.file.lock().and_then(|()| {
            let written = self.file.write_all(line.as_bytes());
            self.file.unlock().and(written)
        });
        written.map_err(|error| Failure::System(format!("cannot write {}", self.path.display()), error))
    }
}

/// Faults that did not occur.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Rules that matched less often than they ask for.
    pub(super) rules: Vec<RuleView>,
    /// Index of the step of the scenario that was not reached, and its condition.
    pub(super) step: Option<(usize, String)>,
}

/// Returns the line of an apiserver: its verdict, as `ctl verdict` prints it, with the process, the URL and the faults that
/// did not occur. `stopped` is false for the line that is written if the apiserver is killed.
pub(super) fn line(server: &str, verdict: &WireVerdict, left: &Left, stopped: bool) -> Value {
    let mut line = json!({ "pid": std::process::id(), "server": server, "stopped": stopped });
    if let (Value::Object(line), Value::Object(verdict)) = (&mut line, json!(verdict)) {
        line.extend(verdict);
        line.insert("rulesLeft".to_owned(), json!(left.rules));
        if let Some((step, waits_for)) = &left.step {
            let step = json!({ "step": step, "waitsFor": waits_for });
            line.insert("stepLeft".to_owned(), step);
        }
    }
    line
}

/// Returns the line of an apiserver that did not start or failed: envtest hides its standard error by default.
pub(super) fn failed(failure: &Failure) -> Value {
    json!({ "pid": std::process::id(), "stopped": true, "outcome": "error", "error": failure.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_write_a_line_each() {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-verdict-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("verdict.jsonl");
        let mut two = [
            VerdictFile::open(&file).unwrap(),
            VerdictFile::open(&file).unwrap(),
        ];
        for round in 0..2 {
            for one in &mut two {
                one.append(&format!("{round}\n")).unwrap();
            }
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, "0\n0\n1\n1\n");
        assert!(VerdictFile::open(&folder).is_err(), "a directory is no file");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
