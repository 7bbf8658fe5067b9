//! Results of a run, line by line as `conformance --format json` prints them, and their JSON Schema. It must not know
//! how tests run or are drawn.

use std::collections::BTreeMap;
use std::fmt;

use conformance::adapter::attempt::Attempt;
use conformance::adapter::message::{Capability, ClientInfo, Recovers};
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::catalogue::Provoker;
use fake_apiserver::scenario::edition::{self, Edition};
use judge::verdict::{Contradiction, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A line of the output: a test, or the footer, which is the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "Line of `fake-apiserver conformance --format json`")]
pub enum Line {
    /// The last line. Output without it is incomplete.
    Footer {
        /// The run.
        footer: Footer,
    },
    /// One test.
    Test(TestResult),
}

/// One test with all of its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// Id of the scenario: `gone/status-410-on-watch`.
    pub id: String,
    /// The scenario's claim, one sentence.
    pub title: String,
    /// File of the scenario.
    #[serde(default)]
    pub path: String,
    /// SHA-256 of the scenario's file, hexadecimal; empty where it is not known.
    #[serde(default)]
    pub digest: String,
    /// Requirement ids that the scenario tests.
    pub covers: Vec<String>,
    /// Who is known to send what the scenario sends, if it is stricter than the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provoked_by: Option<Provoker>,
    /// Outcome of the attempt that is reported: the first that did not pass, else the last.
    pub outcome: Outcome,
    /// Outcomes of all attempts compared with the baseline.
    pub standing: Standing,
    /// Reason of the outcome; empty if it passed.
    pub message: String,
    /// Entry of the file of known failures.
    pub known: Option<KnownFailure>,
    /// Every attempt, in order; at least one.
    pub attempts: Vec<AttemptResult>,
    /// Command that runs this test alone.
    pub rerun: String,
}

/// Entry of a file of known failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnownFailure {
    /// Expected outcome.
    pub outcome: String,
    /// Why the client fails.
    pub reason: String,
    /// URL, `owner/repo#number`, or `none public`.
    pub issue: String,
    /// Line of the entry; 0 where it is not known.
    #[serde(default)]
    pub line: u64,
}

/// One attempt of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptResult {
    /// How it came out.
    pub outcome: Outcome,
    /// Reason of the outcome; empty if it passed.
    pub message: String,
    /// Contradictions; `null` if it was not judged.
    pub contradictions: Option<Vec<Found>>,
    /// Output of the adapter that is not a protocol message.
    pub stray_output: Option<String>,
    /// Last lines of the adapter's standard error.
    pub stderr: Vec<String>,
    /// Real time in milliseconds.
    pub took_ms: u64,
}

/// A contradiction, as in reports and evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// `INV-07`, `expect.requests[2]`, `run`.
    pub check: String,
    /// Requirement ids that it is evidence for.
    pub requirements: Vec<String>,
    /// What happened, in one sentence.
    pub sentence: String,
    /// `line:column` in the scenario's file, if the expectation is in the file.
    pub place: Option<String>,
    /// `seq` of the records that prove it.
    pub evidence: Vec<u64>,
    /// Expected value.
    pub expected: String,
    /// Actual value.
    pub actual: String,
}

/// Summary of the run: what was tested, and the counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Footer {
    /// Whether the run is complete; false: it was interrupted.
    pub complete: bool,
    /// Version of fake-apiserver; empty where it is not known.
    #[serde(default)]
    pub version: String,
    /// Seed for all randomness.
    #[serde(default)]
    pub seed: u64,
    /// Edition of the requirements; absent: all of this version counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition: Option<String>,
    /// SHA-256 of the edition's file, hexadecimal: two runs with the same digest were scored by the same list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition_digest: Option<String>,
    /// The library under test.
    pub client: ClientInfo,
    /// What restarts a failed list or watch.
    pub recovers: Recovers,
    /// Capabilities of the adapter.
    pub capabilities: Vec<Capability>,
    /// Number of tests.
    pub tests: usize,
    /// Number of tests by outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Requirements by level: `must`, `should`.
    pub requirements: BTreeMap<String, Kept>,
    /// Entries of known failures whose scenario does not exist.
    pub stale_entries: Vec<String>,
    /// Exit code of the run.
    pub exit_code: u8,
}

impl Footer {
    /// Returns the edition that scored the run; `None` if everything counted or this version does not have the edition.
    pub fn scored_by(&self) -> Option<&'static Edition> {
        edition::scored_by(self.edition.as_deref(), self.edition_digest.as_deref())
    }

    /// Returns the name of the edition and the start of its digest, for display.
    pub fn edition_label(&self) -> Option<String> {
        let name = self.edition.as_deref()?;
        Some(edition::label(name, self.edition_digest.as_deref()))
    }
}

/// Requirements of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Covered by a judged test, and broken in none.
    pub kept: usize,
    /// Covered by a judged test.
    pub judged: usize,
}

/// All lines of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The tests, in order of their ids.
    pub tests: Vec<TestResult>,
    /// The last line; `None`: the output was cut off.
    pub footer: Option<Footer>,
}

/// A line that is not part of a report.
#[derive(Debug)]
pub struct BadLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Parse error.
    pub error: serde_json::Error,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: not a line of `conformance --format json`: {}",
            self.line, self.error
        )
    }
}

impl std::error::Error for BadLine {}

impl Results {
    /// Parses the output of `conformance --format json`.
    ///
    /// # Errors
    /// The first line that is not part of the output.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut results = Self {
            tests: Vec::new(),
            footer: None,
        };
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |error| BadLine {
                line: number + 1,
                error,
            };
            // Not by `Line`: errors of an untagged enum do not name the wrong key.
            let mut value: Value = serde_json::from_str(line).map_err(wrong)?;
            match value.get_mut("footer") {
                Some(footer) => {
                    results.footer = Some(serde_json::from_value(footer.take()).map_err(wrong)?);
                }
                None => results.tests.push(serde_json::from_value(value).map_err(wrong)?),
            }
        }
        results.tests.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(results)
    }

    /// Formats the lines as [`Results::parse`] reads them.
    pub fn lines(&self) -> String {
        let tests = self.tests.iter().map(|test| line(&Line::Test(test.clone())));
        let footer = self.footer.clone().map(|footer| line(&Line::Footer { footer }));
        tests.chain(footer).collect()
    }
}

impl TestResult {
    /// Returns the reported attempt: the first that did not pass, else the last.
    pub fn reported_attempt(&self) -> Option<&AttemptResult> {
        let mut attempts = self.attempts.iter();
        let first = attempts.find(|attempt| attempt.outcome != Outcome::Pass);
        first.or(self.attempts.last())
    }

    /// Whether the reported attempt breaks a requirement: one of its contradictions names it.
    pub fn breaks(&self, requirement: &str) -> bool {
        let mut named = self.found().iter().flat_map(|found| &found.requirements);
        named.any(|id| id == requirement)
    }

    /// Returns the contradictions of the reported attempt.
    pub fn found(&self) -> &[Found] {
        self.reported_attempt()
            .and_then(|reported_attempt| reported_attempt.contradictions.as_deref())
            .unwrap_or_default()
    }
}

impl From<&Attempt> for AttemptResult {
    fn from(attempt: &Attempt) -> Self {
        let found = |verdict: &Verdict| verdict.contradictions.iter().map(Found::from).collect();
        Self {
            outcome: attempt.outcome,
            message: attempt.why.clone(),
            contradictions: attempt.verdict.as_ref().map(found),
            stray_output: attempt.stray.clone(),
            stderr: attempt.errors.clone(),
            took_ms: attempt.took.as_millis() as u64,
        }
    }
}

impl From<&Contradiction> for Found {
    fn from(found: &Contradiction) -> Self {
        Self {
            check: found.check.to_string(),
            requirements: found.requirements.clone(),
            sentence: found.sentence.clone(),
            place: found
                .place
                .map(|place| format!("{}:{}", place.line, place.column)),
            evidence: found.evidence.clone(),
            expected: found.expected.clone(),
            actual: found.actual.clone(),
        }
    }
}

impl Found {
    /// Returns line and column in the scenario's file.
    pub fn line_and_column(&self) -> Option<(u32, u32)> {
        let (line, column) = self.place.as_deref()?.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    }
}

/// Formats one line of the output, with its newline.
pub fn line(line: &Line) -> String {
    let text = serde_json::to_string(line);
    // Only a map with non-string keys could fail, and there is none.
    text.map(|text| text + "\n").unwrap_or_default()
}

/// Returns the SHA-256 of a scenario's file, hexadecimal. Runs with the same digest ran the same test.
pub fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the JSON Schema of a line, as in `schema/results.v1.json`.
pub fn json_schema() -> String {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.inline_subschemas = false;
    let schema = settings.into_generator().into_root_schema_for::<Line>();
    format!("{:#}\n", schema.to_value())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A result with one attempt.
    pub(crate) fn result(id: &str, outcome: Outcome, standing: Standing, found: Vec<Found>) -> TestResult {
        let message = found
            .first()
            .map(|found| found.sentence.clone())
            .unwrap_or_default();
        TestResult {
            id: id.to_owned(),
            title: format!("Claim of {id}"),
            path: format!("scenarios/{id}.yaml"),
            digest: digest(id),
            covers: vec!["LIST-01".to_owned()],
            provoked_by: None,
            outcome,
            standing,
            message: message.clone(),
            known: None,
            attempts: vec![AttemptResult {
                outcome,
                message,
                contradictions: outcome.is_judged().then_some(found),
                stray_output: None,
                stderr: Vec::new(),
                took_ms: 10,
            }],
            rerun: format!("fake-apiserver conformance {id} --seed 0 -- ./adapter"),
        }
    }

    /// A contradiction of a requirement at MUST.
    pub(crate) fn found(check: &str, sentence: &str) -> Found {
        Found {
            check: check.to_owned(),
            requirements: vec!["LIST-01".to_owned()],
            sentence: sentence.to_owned(),
            place: Some("28:7".to_owned()),
            evidence: vec![3],
            expected: "a relist".to_owned(),
            actual: "nothing".to_owned(),
        }
    }

    /// A footer that fits the tests.
    pub(crate) fn footer(client: &str, version: &str) -> Footer {
        let footer = json!({
            "complete": true, "version": "0.1.0", "seed": 0,
            "client": {"name": client, "lang": "rust", "version": version},
            "recovers": "library", "capabilities": ["ordered"], "tests": 2, "outcomes": {"pass": 1, "fail": 1},
            "requirements": {"must": {"kept": 1, "judged": 2}, "should": {"kept": 0, "judged": 0}},
            "staleEntries": [], "exitCode": 1,
        });
        serde_json::from_value(footer).unwrap()
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let results = Results {
            tests: vec![
                result("a/kept", Outcome::Pass, Standing::Passed, Vec::new()),
                result(
                    "b/broken",
                    Outcome::Fail,
                    Standing::Failed,
                    vec![found("INV-03", "no")],
                ),
            ],
            footer: Some(footer("client", "1")),
        };
        let lines = results.lines();
        assert_eq!(lines.lines().count(), 3);
        assert_eq!(Results::parse(&lines).unwrap(), results);
        assert_eq!(results.tests[1].found()[0].line_and_column(), Some((28, 7)));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = Results::parse("\n{\"id\": 3}\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        assert!(Results::parse("<html>").is_err());
    }

    #[test]
    fn the_words_of_standings_are_those_of_their_type() {
        for standing in [
            Standing::Passed,
            Standing::Warned,
            Standing::Known,
            Standing::NotJudged,
            Standing::NotScored,
            Standing::Failed,
            Standing::Flaky,
            Standing::Stale,
            Standing::AdapterError,
            Standing::HarnessError,
        ] {
            assert_eq!(serde_json::to_value(standing).unwrap(), json!(standing.word()));
        }
    }

    #[test]
    fn the_schema_is_that_of_the_repository() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/results.v1.json");
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            json_schema(),
            "schema/results.v1.json is stale: run `cargo xtask schema` and commit it"
        );
    }
}
