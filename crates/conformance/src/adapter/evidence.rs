//! Files of an attempt (records, received events, standard error, outcome), and judging them again. It must not start
//! processes.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fake_apiserver::record::Record;
use fake_apiserver::report::ReportedObject;
use fake_apiserver::scenario::edition::{self, Edition};
use fake_apiserver::scenario::{self, LoadErrors, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::assess::{Assessment, assess};
use super::attempt::Attempt;
use super::fit;
use super::message::Hello;
use super::outcome::Outcome;

/// File with the outcome of the attempt, in its directory.
const ATTEMPT: &str = "attempt.json";

/// Maximum size of a file of evidence, in bytes: more than what a run keeps of a client that never stops.
pub const FILE_BYTES_MAX: u64 = 128 << 20;

/// Outcome of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Version of the program that wrote it.
    pub version: String,
    /// The scenario's id.
    pub id: String,
    /// Outcome.
    pub outcome: Outcome,
    /// Reason, in one sentence.
    pub message: String,
    /// Contradictions; `null`: not judged.
    pub contradictions: Value,
    /// Seed for all randomness.
    pub seed: u64,
    /// Edition that it was judged by; absent: all requirements counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition: Option<String>,
    /// SHA-256 of the edition's file; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition_digest: Option<String>,
    /// True if the time limit ended it.
    pub cut: bool,
    /// The adapter's `hello`.
    pub hello: Option<Hello>,
    /// Content of the library's cache at the end.
    pub dump: Option<Vec<ReportedObject>>,
    /// Summary of output that is not a message.
    pub stray_output: Option<String>,
    /// Duration in milliseconds, real time.
    pub took_ms: u64,
}

impl Summary {
    /// Returns the outcome of an attempt. `edition`: the one that it was judged by.
    pub fn of(attempt: &Attempt, seed: u64, edition: Option<&Edition>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            id: attempt.scenario.id.clone(),
            outcome: attempt.outcome,
            message: attempt.why.clone(),
            contradictions: contradictions(attempt.verdict.as_ref()),
            seed,
            edition: edition.map(|edition| edition.name.clone()),
            edition_digest: edition.map(|edition| edition.digest.clone()),
            cut: attempt.cut,
            hello: attempt.hello.clone(),
            dump: attempt.dump.clone(),
            stray_output: attempt.stray.clone(),
            took_ms: attempt.took.as_millis() as u64,
        }
    }
}

/// Writes the evidence of an attempt to `folder`, which is created. `text`: content of the scenario's file.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    folder: &Path,
    attempt: &Attempt,
    text: &str,
    seed: u64,
    edition: Option<&Edition>,
) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let summary = Summary::of(attempt, seed, edition);
    private_files::write_new(&folder.join("scenario.yaml"), text.as_bytes())?;
    let mut records = io::BufWriter::new(private_files::create(&folder.join("records.ndjson"))?);
    for record in &attempt.records {
        serde_json::to_writer(&mut records, record)?;
        records.write_all(b"\n")?;
    }
    records.flush()?;
    private_files::write_new(&folder.join("events.ndjson"), &attempt.received)?;
    let errors = attempt.errors.join("\n") + "\n";
    private_files::write_new(&folder.join("stderr.log"), errors.as_bytes())?;
    // Written last: a directory without it is incomplete.
    let summary = serde_json::to_string_pretty(&summary)? + "\n";
    private_files::write_new(&folder.join(ATTEMPT), summary.as_bytes())
}

fn contradictions(verdict: Option<&judge::verdict::Verdict>) -> Value {
    verdict.map_or(Value::Null, |verdict| json!(verdict.contradictions))
}

/// Returns all directories of evidence in `folder` and below, sorted.
///
/// # Errors
/// A directory cannot be read.
pub fn find(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        if folder.join(ATTEMPT).is_file() {
            found.push(folder);
            continue;
        }
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            // A link could lead out of the evidence, or form a cycle.
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Evidence that was judged again.
#[derive(Debug)]
pub struct Rechecked {
    /// Recorded outcome.
    pub recorded: Summary,
    /// Outcome by the checks of this version; `None`: not judged, because nothing ran or the adapter was at fault.
    pub current: Option<Assessment>,
}

impl Rechecked {
    /// Returns true if the verdict is unchanged.
    pub fn is_same(&self) -> bool {
        self.current.as_ref().is_none_or(|current| {
            current.outcome == self.recorded.outcome
                && contradictions(current.verdict.as_ref()) == self.recorded.contradictions
        })
    }
}

/// Evidence of one attempt.
#[derive(Debug)]
pub struct Evidence {
    /// Outcome.
    pub summary: Summary,
    /// Content of the scenario's file.
    pub text: String,
    /// The trace.
    pub records: Vec<Record>,
    /// The last lines of standard error.
    pub errors: String,
}

impl Evidence {
    /// Parses the scenario.
    ///
    /// # Errors
    /// All errors of the file, if this version does not accept it.
    pub fn scenario(&self) -> Result<Scenario, LoadErrors> {
        let path = Path::new("scenarios").join(format!("{}.yaml", self.summary.id));
        scenario::parse(&self.summary.id, &path, &self.text)
    }
}

/// Reads the evidence in `folder`.
///
/// # Errors
/// A description of the file that cannot be read.
pub fn read(folder: &Path) -> Result<Evidence, String> {
    let file = |name: &str| {
        let path = folder.join(name);
        private_files::read(&path, FILE_BYTES_MAX)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let wrong = |name: &str, error: serde_json::Error| format!("{}: {error}", folder.join(name).display());
    let records: Result<Vec<Record>, _> = file("records.ndjson")?
        .lines()
        .map(serde_json::from_str)
        .collect();
    Ok(Evidence {
        summary: serde_json::from_str(&file(ATTEMPT)?).map_err(|error| wrong(ATTEMPT, error))?,
        text: file("scenario.yaml")?,
        records: records.map_err(|error| wrong("records.ndjson", error))?,
        errors: file("stderr.log")?,
    })
}

/// Judges the evidence in `folder` with the checks of this version.
///
/// # Errors
/// A description of what is wrong with the evidence.
pub fn recheck(folder: &Path) -> Result<Rechecked, String> {
    let evidence = read(folder)?;
    let current = judged(&evidence)
        .map_err(|errors| format!("{}: {errors}", folder.join("scenario.yaml").display()))?;
    Ok(Rechecked {
        recorded: evidence.summary,
        current,
    })
}

/// Judges evidence with the checks of this version; `None`: nothing ran, or the adapter was at fault.
///
/// # Errors
/// The scenario's file is not valid in this version.
pub fn judged(evidence: &Evidence) -> Result<Option<Assessment>, LoadErrors> {
    let recorded = &evidence.summary;
    let (Some(hello), true) = (&recorded.hello, recorded.outcome.is_judged() || recorded.cut) else {
        return Ok(None);
    };
    let scenario = fit::adapt(&std::sync::Arc::new(evidence.scenario()?), hello);
    Ok(Some(assess(
        &scenario,
        &evidence.records,
        recorded.dump.as_deref(),
        recorded.cut,
        // Editions of other versions are unknown here: all requirements count then, and the verdict may differ.
        edition::scored_by(recorded.edition.as_deref(), recorded.edition_digest.as_deref()),
    )))
}
