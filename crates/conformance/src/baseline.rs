//! Baseline of a client: its `known-failures.yaml`, each entry with reason and issue.
//!
//! An entry whose scenario passes, or fails with another outcome, is stale, and a stale entry is an error; otherwise a
//! regression of a fixed client would go unnoticed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fake_apiserver::scenario::catalogue;
use judge::verdict::Outcome;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::adapter::outcome as adapter;

/// Outcome of a known failure. An in-process client has `mismatch`; an adapter has `fail` or `warn`, by the level of
/// the broken requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// `fail` or `warn`.
    Mismatch,
    /// A requirement at MUST is broken.
    Fail,
    /// Only requirements at SHOULD or MAY are broken.
    Warn,
    /// A step waited for a request or event that never came.
    #[serde(alias = "hang")]
    Stuck,
    /// The client panicked or its process died.
    Crash,
}

impl Failure {
    /// Returns the verdict outcome it stands for.
    pub fn judgement(self) -> Outcome {
        match self {
            Self::Mismatch | Self::Fail | Self::Warn => Outcome::Mismatch,
            Self::Stuck => Outcome::Stuck,
            Self::Crash => Outcome::Crash,
        }
    }

    /// Whether an adapter's outcome is the known one.
    pub fn is(self, outcome: adapter::Outcome) -> bool {
        match self {
            Self::Mismatch => matches!(outcome, adapter::Outcome::Fail | adapter::Outcome::Warn),
            Self::Fail => outcome == adapter::Outcome::Fail,
            Self::Warn => outcome == adapter::Outcome::Warn,
            Self::Stuck => outcome == adapter::Outcome::Hang,
            Self::Crash => outcome == adapter::Outcome::Crash,
        }
    }

    /// Returns the word used in reports and in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mismatch => "mismatch",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Stuck => "stuck",
            Self::Crash => "crash",
        }
    }
}

/// One known failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Scenario id.
    pub scenario: String,
    /// Outcome of its run.
    pub outcome: Failure,
    /// The requirements that it breaks, if listed: a run that breaks others is not this failure.
    pub breaks: Option<BTreeSet<String>>,
    /// Reason, in one sentence.
    pub reason: String,
    /// A URL, `owner/repo#number`, or `none public`.
    pub issue: String,
    /// Name of the place in the client's source that causes it, if given. What it names is up to the file's owner.
    pub source: Option<String>,
    /// Line in the file, from 1.
    pub line: u64,
}

impl Known {
    /// Whether this is how a run failed: its outcome, and the requirements that it broke, of those that its scenario covers.
    pub fn is(&self, outcome: adapter::Outcome, broken: &BTreeSet<String>) -> bool {
        self.outcome.is(outcome) && self.breaks.as_ref().is_none_or(|breaks| breaks == broken)
    }
}

/// The known failures of one client.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    /// Entries in the order of the file.
    pub entries: Vec<Known>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    scenario: Spanned<String>,
    outcome: Spanned<Failure>,
    breaks: Option<Vec<Spanned<String>>>,
    reason: Spanned<String>,
    issue: Spanned<String>,
    source: Option<Spanned<String>>,
}

/// Mistakes in a known-failures file: all of them, one per line.
#[derive(Debug, thiserror::Error)]
#[error("{}", faults.join("\n"))]
pub struct BaselineError {
    /// Messages as `path:line:col: what`.
    pub faults: Vec<String>,
}

impl Baseline {
    /// Reads the file. A missing file is an empty baseline.
    ///
    /// # Errors
    /// When it cannot be read or is not a list of entries, or an entry is empty, malformed or listed twice.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(BaselineError {
                faults: vec![format!("{}: {error}", path.display())],
            }),
        }
    }

    /// Parses the text of such a file; `path` is used in messages only.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, BaselineError> {
        let fault =
            |line: u64, column: u64, what: &str| format!("{}:{line}:{column}: {what}", path.display());
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Ok(Self::default());
        }
        let raw: Vec<Raw> = serde_saphyr::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let what = error.to_string();
            BaselineError {
                faults: vec![fault(line, column, what.lines().next().unwrap_or_default())],
            }
        })?;
        let mut faults = Vec::new();
        let mut entries: Vec<Known> = Vec::new();
        for entry in raw {
            let at = |span: &Spanned<String>| (span.referenced.line(), span.referenced.column());
            let required = [
                ("scenario", &entry.scenario),
                ("reason", &entry.reason),
                ("issue", &entry.issue),
            ];
            let given = entry.source.iter().map(|source| ("source", source));
            for (name, value) in required.into_iter().chain(given) {
                if value.value.trim().is_empty() {
                    let (line, column) = at(value);
                    faults.push(fault(line, column, &format!("{name} is empty")));
                }
            }
            let issue = entry.issue.value.trim();
            if !(issue.is_empty() || issue == "none public" || issue.contains("://") || issue.contains('#')) {
                let (line, column) = at(&entry.issue);
                faults.push(fault(
                    line,
                    column,
                    "issue is neither a URL, nor owner/repo#number, nor `none public`",
                ));
            }
            let (line, column) = at(&entry.scenario);
            if let Some(first) = entries
                .iter()
                .find(|known| known.scenario == entry.scenario.value)
            {
                faults.push(fault(
                    line,
                    column,
                    &format!("{} is listed already in line {}", first.scenario, first.line),
                ));
            }
            let mut breaks = BTreeSet::new();
            for id in entry.breaks.iter().flatten() {
                let (line, column) = at(id);
                if catalogue::requirement(&id.value).is_none() {
                    faults.push(fault(
                        line,
                        column,
                        &format!("there is no requirement {}", id.value),
                    ));
                } else if !breaks.insert(id.value.clone()) {
                    faults.push(fault(line, column, &format!("{} is listed twice", id.value)));
                }
            }
            entries.push(Known {
                breaks: entry.breaks.is_some().then_some(breaks),
                scenario: entry.scenario.value,
                outcome: entry.outcome.value,
                reason: entry.reason.value,
                issue: entry.issue.value,
                source: entry.source.map(|source| source.value),
                line,
            });
        }
        if faults.is_empty() {
            Ok(Self { entries })
        } else {
            Err(BaselineError { faults })
        }
    }

    /// Returns the entry of a scenario.
    pub fn of(&self, scenario: &str) -> Option<&Known> {
        self.entries.iter().find(|known| known.scenario == scenario)
    }

    /// Returns entries whose scenario does not exist, as `path:line: what`.
    pub fn orphans(&self, path: &Path, exists: impl Fn(&str) -> bool) -> Vec<String> {
        self.entries
            .iter()
            .filter(|known| !exists(&known.scenario))
            .map(|known| {
                format!(
                    "{}:{}: there is no scenario {}",
                    path.display(),
                    known.line,
                    known.scenario
                )
            })
            .collect()
    }
}

/// Returns the path of a client's known failures, below the repository's root.
pub fn path_of(root: &Path, client: &str) -> PathBuf {
    root.join("adapters").join(client).join("known-failures.yaml")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn an_entry_reads_as_written() {
        let text = "- scenario: gone/status-410\n  outcome: stuck\n  reason: it watches the dead version for ever\n  issue: none public\n";
        let baseline = Baseline::parse(text, Path::new("k.yaml")).unwrap();
        let known = baseline.of("gone/status-410").unwrap();
        assert_eq!((known.outcome, known.line), (Failure::Stuck, 1));
        assert_eq!(
            baseline.orphans(Path::new("k.yaml"), |_| false),
            ["k.yaml:1: there is no scenario gone/status-410"]
        );
        assert!(
            Baseline::parse("# nothing yet\n", Path::new("k.yaml"))
                .unwrap()
                .entries
                .is_empty()
        );
    }

    #[rstest]
    #[case("mismatch", adapter::Outcome::Warn, true)]
    #[case("mismatch", adapter::Outcome::Hang, false)]
    #[case("fail", adapter::Outcome::Warn, false)]
    #[case("warn", adapter::Outcome::Warn, true)]
    #[case("hang", adapter::Outcome::Hang, true)]
    #[case("stuck", adapter::Outcome::Hang, true)]
    #[case("crash", adapter::Outcome::AdapterError, false)]
    fn the_words_of_adapters_are_known_too(
        #[case] word: &str,
        #[case] outcome: adapter::Outcome,
        #[case] known: bool,
    ) {
        let text = format!("- {{scenario: a/b, outcome: {word}, reason: r, issue: none public}}\n");
        let baseline = Baseline::parse(&text, Path::new("k.yaml")).unwrap();
        assert_eq!(baseline.entries[0].outcome.is(outcome), known);
    }

    #[rstest]
    #[case::unknown_key(
        "- {scenario: a/b, outcome: stuck, reason: r, issue: none public, why: x}\n",
        "k.yaml:1:"
    )]
    #[case::passing(
        "- {scenario: a/b, outcome: pass, reason: r, issue: none public}\n",
        "unknown variant `pass`"
    )]
    #[case::no_issue(
        "- {scenario: a/b, outcome: stuck, reason: r, issue: later}\n",
        "k.yaml:1:53: issue is neither"
    )]
    #[case::no_reason(
        "- {scenario: a/b, outcome: stuck, reason: '', issue: none public}\n",
        "reason is empty"
    )]
    #[case::no_source(
        "- {scenario: a/b, outcome: stuck, reason: r, issue: none public, source: ''}\n",
        "source is empty"
    )]
    #[case::twice(
        "- {scenario: a/b, outcome: stuck, reason: r, issue: none public}\n- {scenario: a/b, outcome: crash, reason: r, issue: none public}\n",
        "k.yaml:2:14: a/b is listed already in line 1"
    )]
    fn errors_of_a_file_have_a_position(#[case] text: &str, #[case] fault: &str) {
        let error = Baseline::parse(text, Path::new("k.yaml"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(fault), "{error}");
    }
}
