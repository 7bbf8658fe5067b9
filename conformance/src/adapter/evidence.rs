//! What an attempt leaves on disk, and the verdict on it later: records, events as received, standard error, and what it came
//! to. It must not start anything.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fake_apiserver::record::Record;
use fake_apiserver::report::ReportedObject;
use fake_apiserver::scenario::edition::{self, Edition};
use fake_apiserver::scenario::{self, LoadErrors, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fit;
use super::message::Hello;
use super::outcome::Outcome;
use super::play::Attempt;
use super::weigh::{Weighed, weigh};

/// The file in a directory of evidence that says what the attempt came to.
const ATTEMPT: &str = "attempt.json";

/// What an attempt came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Version of the program that wrote it.
    pub version: String,
    /// The scenario's id.
    pub id: String,
    /// How it came out.
    pub outcome: Outcome,
    /// Why.
    pub message: String,
    /// What contradicts the scenario; `null`: it was not judged.
    pub contradictions: Value,
    /// Seed for all randomness.
    pub seed: u64,
    /// The edition by which it was judged; absent: everything counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition: Option<String>,
    /// SHA-256 of the edition's file; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition_digest: Option<String>,
    /// The time limit ended it.
    pub cut: bool,
    /// The adapter's introduction.
    pub hello: Option<Hello>,
    /// The content of the library's cache at the end.
    pub dump: Option<Vec<ReportedObject>>,
    /// What the adapter printed that is no message.
    pub stray_output: Option<String>,
    /// Milliseconds of real time.
    pub took_ms: u64,
}

/// Writes the evidence of an attempt to `folder`, which is created. `text`: the scenario's file.
///
/// # Errors
/// The system refuses a file.
pub fn write(
    folder: &Path,
    attempt: &Attempt,
    text: &str,
    seed: u64,
    edition: Option<&Edition>,
) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let summary = Summary {
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
    };
    std::fs::write(folder.join("scenario.yaml"), text)?;
    let mut records = io::BufWriter::new(std::fs::File::create(folder.join("records.ndjson"))?);
    for record in &attempt.records {
        serde_json::to_writer(&mut records, record)?;
        records.write_all(b"\n")?;
    }
    records.flush()?;
    std::fs::write(folder.join("events.ndjson"), &attempt.received)?;
    std::fs::write(folder.join("stderr.log"), attempt.errors.join("\n") + "\n")?;
    // Last: a directory without it is not complete.
    std::fs::write(
        folder.join(ATTEMPT),
        serde_json::to_string_pretty(&summary)? + "\n",
    )
}

fn contradictions(verdict: Option<&judge::verdict::Verdict>) -> Value {
    verdict.map_or(Value::Null, |verdict| json!(verdict.contradictions))
}

/// Every directory of evidence in `folder` and below, in order.
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
            // A link could lead out of the evidence, or round and round.
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Old evidence, judged again.
#[derive(Debug)]
pub struct Rechecked {
    /// What it came to.
    pub then: Summary,
    /// What it comes to; `None`: it was not judged, because nothing was played or the adapter was at fault.
    pub now: Option<Weighed>,
}

impl Rechecked {
    /// Is the verdict the same?
    pub fn is_same(&self) -> bool {
        self.now.as_ref().is_none_or(|now| {
            now.outcome == self.then.outcome
                && contradictions(now.verdict.as_ref()) == self.then.contradictions
        })
    }
}

/// The evidence of one attempt, read back.
#[derive(Debug)]
pub struct Evidence {
    /// What it came to.
    pub summary: Summary,
    /// The scenario's file.
    pub text: String,
    /// The trace.
    pub records: Vec<Record>,
    /// The last lines of standard error.
    pub errors: String,
}

impl Evidence {
    /// The scenario, if its file is one for this version.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn scenario(&self) -> Result<Scenario, LoadErrors> {
        let path = Path::new("scenarios").join(format!("{}.yaml", self.summary.id));
        scenario::parse(&self.summary.id, &path, &self.text)
    }
}

/// Reads the evidence in `folder`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read(folder: &Path) -> Result<Evidence, String> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path)
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
/// What is wrong with the evidence, in words.
pub fn recheck(folder: &Path) -> Result<Rechecked, String> {
    let evidence = read(folder)?;
    let now = judged(&evidence)
        .map_err(|errors| format!("{}: {errors}", folder.join("scenario.yaml").display()))?;
    Ok(Rechecked {
        then: evidence.summary,
        now,
    })
}

/// Judges evidence with the checks of this version; `None`: nothing was played, or the adapter was at fault.
///
/// # Errors
/// The scenario's file is none for this version.
pub fn judged(evidence: &Evidence) -> Result<Option<Weighed>, LoadErrors> {
    let then = &evidence.summary;
    let (Some(hello), true) = (&then.hello, then.outcome.is_judged() || then.cut) else {
        return Ok(None);
    };
    let scenario = fit::staged(&std::sync::Arc::new(evidence.scenario()?), hello);
    Ok(Some(weigh(
        &scenario,
        &evidence.records,
        then.dump.as_deref(),
        then.cut,
        // One of another version is not known here: everything counts then, and a difference shows.
        edition::scored_by(then.edition.as_deref(), then.edition_digest.as_deref()),
    )))
}
