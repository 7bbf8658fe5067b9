//! The file that `FAKE_APISERVER_VERDICT` names. A suite starts many apiservers, also several at once: each appends one line
//! of JSON when it ends, and none replaces another's.
//!
//! It must not know how a verdict is reached.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use fake_apiserver::server::RuleView;
use judge::wire::WireVerdict;
use serde_json::{Value, json};

use crate::Failure;

/// Names the file. `%p` stands for the process id.
pub(super) const VARIABLE: &str = "FAKE_APISERVER_VERDICT";

/// The file, open from the start, so that a wrong name is reported before there is something to lose.
#[derive(Debug)]
pub(super) struct VerdictFile {
    path: PathBuf,
    file: File,
}

impl VerdictFile {
    /// Opens the file that the environment names; `None`: it names none.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn from_environment() -> Result<Option<Self>, Failure> {
        let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
        named
            .map(|name| Self::open(&path(&name, std::process::id())))
            .transpose()
    }

    fn open(path: &Path) -> Result<Self, Failure> {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let file = opened.map_err(|error| {
            Failure::System(format!("{VARIABLE}: cannot write {}", path.display()), error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Appends a line, under a lock: lines of several processes do not mix.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn append(&mut self, line: &Value) -> Result<(), Failure> {
        let line = format!("{line}\n");
        let written = self.file.lock().and_then(|()| {
            let written = self.file.write_all(line.as_bytes());
            self.file.unlock().and(written)
        });
        written.map_err(|error| Failure::System(format!("cannot write {}", self.path.display()), error))
    }
}

fn path(name: &str, pid: u32) -> PathBuf {
    PathBuf::from(name.replace("%p", &pid.to_string()))
}

/// Faults that did not occur.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Rules that were not met as often as they ask for.
    pub(super) rules: Vec<RuleView>,
    /// Index of the step of the scenario that was not reached, and what it waits for.
    pub(super) step: Option<(usize, String)>,
}

/// The line of an apiserver that ended: its verdict, as `ctl verdict` prints it, with the process, the URL and the faults that
/// did not occur.
pub(super) fn ended(server: &str, verdict: &WireVerdict, left: &Left) -> Value {
    let mut line = json!({ "pid": std::process::id(), "server": server });
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

/// The line of an apiserver that did not start or broke: envtest hides its standard error by default.
pub(super) fn failed(failure: &Failure) -> Value {
    json!({ "pid": std::process::id(), "outcome": "error", "error": failure.to_string() })
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
                one.append(&json!({ "round": round })).unwrap();
            }
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "{\"round\":0}\n{\"round\":0}\n{\"round\":1}\n{\"round\":1}\n"
        );
        assert_eq!(path("a-%p.json", 7), Path::new("a-7.json"));
        assert!(VerdictFile::open(&folder).is_err(), "a directory is no file");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
