//! Trimmed evidence of failed tests, committed as `adapters/evidence/NAME.jsonl`: a line per scenario, with the
//! contradictions and as much of the trace as a timeline needs.
//!
//! Real time differs between runs, so a run replaces a line only if the library, the scenario's file or what it shows
//! changed. It must not know how tests are run or drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use conformance::adapter::outcome::Outcome;
use conformance::adapter::tested::Tested;
use report::results::{Found, digest};
use report::timeline::{self, Line};
use serde::{Deserialize, Serialize};

/// Where the files lie.
const FOLDER: &str = "adapters/evidence";

/// Bytes of the timeline of one test, so that all clients together stay below 5 MB.
const BYTES_MAX: usize = 6_000;

/// Records of evidence that are kept for one contradiction, from its beginning and its end.
const PROOFS_MAX: usize = 6;

/// Contradictions of one test, and those that name further requirements.
const FOUND_MAX: usize = 8;

/// Characters of a text that a client chose.
const TEXT_MAX: usize = 600;

/// When and where a run was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Day, UTC: `2026-11-27`.
    pub(crate) day: String,
    /// Operating system and architecture.
    pub(crate) platform: String,
    /// Version of fake-apiserver.
    pub(crate) program: String,
    /// Version of Kubernetes that it emulates.
    pub(crate) kubernetes: String,
}

/// Evidence of one failed test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trimmed {
    /// Id of the scenario.
    pub(crate) id: String,
    /// SHA-256 of the scenario's file.
    pub(crate) digest: String,
    /// Version of the library.
    pub(crate) version: String,
    /// When and where.
    pub(crate) measured: Measured,
    pub(crate) outcome: Outcome,
    /// Reason of the outcome, in one sentence.
    pub(crate) message: String,
    pub(crate) contradictions: Vec<Found>,
    /// Real time in milliseconds.
    pub(crate) took_ms: u64,
    /// Number of records in the whole trace.
    pub(crate) of: u64,
    /// Rows of the timeline.
    pub(crate) trace: Vec<Line>,
}

/// The evidence of one client, by scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Kept {
    /// In the order of the ids.
    pub(crate) tests: BTreeMap<String, Trimmed>,
}

impl Trimmed {
    /// Trims the reported attempt of a test; `None`: it accuses nobody.
    pub(crate) fn of(tested: &Tested, text: &str, measured: &Measured) -> Option<Self> {
        let attempt = tested.reported();
        let version = &attempt.hello.as_ref()?.client.version;
        let verdict = attempt.verdict.as_ref()?;
        let mut named = BTreeSet::new();
        let found = verdict.contradictions.iter().enumerate().filter(|(nth, found)| {
            // Each requirement keeps a contradiction that names it.
            let is_first = found.requirements.iter().any(|id| named.insert(id.clone()));
            *nth < FOUND_MAX || is_first
        });
        let found: Vec<Found> = found.map(|(_, found)| short(found)).collect();
        let proofs = found.iter().flat_map(|one| one.evidence.clone()).collect();
        attempt.outcome.accuses_client().then(|| Self {
            id: tested.scenario.id.clone(),
            digest: digest(text),
            version: version.clone(),
            measured: measured.clone(),
            outcome: attempt.outcome,
            message: cut(&attempt.why),
            took_ms: attempt.took.as_millis() as u64,
            of: attempt.records.len() as u64,
            trace: timeline::trimmed(&attempt.records, &proofs, BYTES_MAX),
            contradictions: found,
        })
    }

    /// Returns the requirements that a contradiction names.
    pub(crate) fn broken(&self) -> BTreeSet<&str> {
        let named = self.contradictions.iter().flat_map(|found| &found.requirements);
        named.map(String::as_str).collect()
    }

    /// Whether another run shows the same: then the older line stays.
    fn shows_the_same(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.version.clone(), one.digest.clone(), one.outcome);
        of(self) == of(other) && self.broken() == other.broken()
    }
}

impl Kept {
    /// Reads the evidence of a client; none if there is no file.
    ///
    /// # Errors
    /// The file has mistakes.
    pub(crate) fn read(root: &Path, client: &str) -> Result<Self, String> {
        let file = file(root, client);
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(Self::default());
        };
        let wrong = |error| format!("{}: {error}: run the client again", file.display());
        let lines: Result<Vec<Trimmed>, _> = text.lines().map(serde_json::from_str).collect();
        let lines = lines.map_err(wrong)?;
        Ok(Self {
            tests: lines.into_iter().map(|line| (line.id.clone(), line)).collect(),
        })
    }

    /// Takes over what a run shows. `failed`: whether the record has a failure of that scenario; evidence of any other is
    /// dropped.
    pub(crate) fn renew(&mut self, fresh: Vec<Trimmed>, failed: impl Fn(&str) -> bool) {
        for line in fresh {
            match self.tests.get(&line.id) {
                Some(old) if old.shows_the_same(&line) => {}
                Some(_) | None => {
                    self.tests.insert(line.id.clone(), line);
                }
            }
        }
        self.tests.retain(|id, _| failed(id));
    }

    /// Writes the evidence of a client. `machine`: paths of this machine, which are left out of texts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, root: &Path, client: &str, machine: &[PathBuf]) -> Result<(), String> {
        let file = file(root, client);
        let wrong = |error: std::io::Error| format!("{}: {error}", file.display());
        if self.tests.is_empty() {
            return match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(wrong(error)),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let mut text = String::new();
        for line in self.tests.values() {
            text.push_str(&serde_json::to_string(line).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        for path in machine {
            text = text.replace(&path.display().to_string(), "…");
        }
        std::fs::create_dir_all(root.join(FOLDER)).map_err(wrong)?;
        std::fs::write(&file, text).map_err(wrong)
    }
}

fn short(found: &judge::verdict::Contradiction) -> Found {
    let mut short = Found::from(found);
    for text in [&mut short.sentence, &mut short.expected, &mut short.actual] {
        *text = cut(text);
    }
    let proofs = &found.evidence;
    if proofs.len() > 2 * PROOFS_MAX {
        short.evidence = [&proofs[..PROOFS_MAX], &proofs[proofs.len() - PROOFS_MAX..]].concat();
    }
    short
}

fn cut(text: &str) -> String {
    let mut kept: String = text.chars().take(TEXT_MAX).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    kept
}

fn file(root: &Path, client: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{client}.jsonl"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Evidence that a client breaks LIST-01.
    pub(crate) fn sample(id: &str, day: &str) -> Trimmed {
        Trimmed {
            id: id.to_owned(),
            digest: "d".to_owned(),
            version: "1".to_owned(),
            measured: Measured {
                day: day.to_owned(),
                platform: "linux x86_64".to_owned(),
                program: "0.1.0".to_owned(),
                kubernetes: "1.37".to_owned(),
            },
            outcome: Outcome::Fail,
            message: String::new(),
            contradictions: vec![Found {
                requirements: vec!["LIST-01".to_owned()],
                ..Found::default()
            }],
            took_ms: 1,
            of: 1,
            trace: Vec::new(),
        }
    }

    fn kept(lines: &[Trimmed]) -> Kept {
        Kept {
            tests: lines.iter().map(|line| (line.id.clone(), line.clone())).collect(),
        }
    }

    #[test]
    fn a_run_that_shows_the_same_leaves_the_older_line() {
        let mut evidence = kept(&[sample("a/b", "2026-01-01")]);
        evidence.renew(vec![sample("a/b", "2026-02-02")], |_| true);
        assert_eq!(evidence.tests["a/b"].measured.day, "2026-01-01");
        let others: [fn(&mut Trimmed); 4] = [
            |line| line.digest.push('x'),
            |line| line.version.push('x'),
            |line| line.outcome = Outcome::Hang,
            |line| line.contradictions.clear(),
        ];
        for change in others {
            let mut evidence = kept(&[sample("a/b", "2026-01-01")]);
            let mut fresh = sample("a/b", "2026-02-02");
            change(&mut fresh);
            evidence.renew(vec![fresh.clone()], |_| true);
            assert_eq!(evidence.tests["a/b"], fresh);
        }
    }

    #[test]
    fn evidence_of_what_no_longer_fails_is_dropped() {
        let mut evidence = kept(&[sample("a/b", "2026-01-01"), sample("a/c", "2026-01-01")]);
        evidence.renew(vec![sample("a/d", "2026-01-01")], |id| id != "a/b");
        assert_eq!(evidence.tests.keys().collect::<Vec<_>>(), ["a/c", "a/d"]);
    }

    #[test]
    fn a_file_is_read_as_it_was_written_without_paths_of_the_machine() {
        let folder = std::env::temp_dir().join(format!("evidence-{}", std::process::id()));
        let mut line = sample("a/b", "2026-01-01");
        line.message = format!("no such file: {}/x", folder.display());
        kept(&[line])
            .write(&folder, "x", std::slice::from_ref(&folder))
            .unwrap();
        let read = Kept::read(&folder, "x").unwrap();
        assert_eq!(read.tests["a/b"].message, "no such file: …/x");
        Kept::default().write(&folder, "x", &[]).unwrap();
        assert_eq!(Kept::read(&folder, "x").unwrap(), Kept::default());
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// All files together, so that a clone stays small.
    #[test]
    fn the_committed_evidence_is_small_and_has_no_path_of_a_machine() {
        let folder = crate::clients::root().join(FOLDER);
        let mut bytes = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for folder in ["home", "root", "tmp", "work", "Users"] {
                assert!(!text.contains(&format!("/{folder}/")), "/{folder}/");
            }
            bytes += text.len();
        }
        assert!(bytes > 0 && bytes <= 5_000_000, "{bytes} bytes");
    }
}
