//! The scenarios of a program: `fake-apiserver run` and its lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use e2e::crowd::record::{Accusation, Played};
use serde::Deserialize;
use serde_json::Value;

use super::{Entrant, Settings};

/// Maximum lines of a log in an error.
const LINES_SHOWN: usize = 5;

/// Results by scenario, and all accusations.
type Results = (BTreeMap<String, Played>, Vec<Accusation>);

/// A line of `--format json` about a scenario.
#[derive(Deserialize)]
struct Line {
    id: String,
    outcome: String,
    verdict: String,
    message: String,
    contradictions: Vec<Contradiction>,
}

/// A contradiction, as in a line or a verdict.
#[derive(Debug, Deserialize)]
pub(super) struct Contradiction {
    check: String,
    requirements: Vec<String>,
    sentence: String,
}

/// Plays the selected scenarios with a program. `played` is called after each. The output is kept in `folder`.
///
/// # Errors
///
/// `fake-apiserver` cannot run them, or the program cannot be started.
pub(super) fn play(
    root: &Path,
    settings: &Settings<'_>,
    entrant: &Entrant<'_>,
    folder: &Path,
    played: impl Fn(),
) -> Result<Results, String> {
    let create = |name: &str| {
        let path = folder.join(name);
        File::create(&path).map_err(|why| format!("{}: {why}", path.display()))
    };
    let mut lines = create("scenarios.jsonl")?;
    let log = folder.join("scenarios.log");
    let mut child = Command::new(&settings.fake_apiserver)
        .args(["run", "--format", "json"])
        .args(["--jobs", &settings.jobs.to_string()])
        .args(["--seed", &settings.seed.to_string()])
        .args(settings.timeout.iter().flat_map(|limit| ["--timeout", limit]))
        .args(&entrant.program.options)
        .args(&settings.selection.paths)
        .arg("--")
        .args(&entrant.command)
        .current_dir(root)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(create("scenarios.log")?)
        .spawn()
        .map_err(|why| format!("cannot run {}: {why}", settings.fake_apiserver.display()))?;
    let mut results = Results::default();
    let mut read = Ok(false);
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // Read to the end in any case, so that it is not blocked.
            let _best_effort = writeln!(lines, "{line}");
            if read.is_ok() {
                read = taken(&line, &mut results);
            }
            played();
        }
    }
    let status = child.wait().map_err(|why| why.to_string())?;
    match read {
        Err(why) => Err(why),
        // Only the last line is a footer.
        Ok(true) => Ok(results),
        Ok(false) => Err(format!(
            "fake-apiserver run ended with {status}: {}",
            last_lines(&log)
        )),
    }
}

/// Takes a line in. Returns whether it is the footer.
fn taken(line: &str, results: &mut Results) -> Result<bool, String> {
    let unreadable = |why: serde_json::Error| format!("fake-apiserver run printed {line:?}: {why}");
    let value: Value = serde_json::from_str(line).map_err(unreadable)?;
    if value.get("footer").is_some() {
        return Ok(true);
    }
    if let Some(file) = value.get("file") {
        return Err(format!("{file} has mistakes: {}", value["message"]));
    }
    let line: Line = serde_json::from_value(value).map_err(unreadable)?;
    let played = match (line.verdict.as_str(), line.outcome.as_str()) {
        (_, "harness_error") => return Err(format!("{}: {}", line.id, line.message)),
        ("passed", _) => Played::Passed,
        // The record has what a program gets wrong, whether it fails a run or not.
        ("failed" | "warned" | "not_scored", _) => Played::Failed,
        ("not_judged" | "not_started", _) => {
            let why = line.message.trim_start_matches("not judged: ");
            Played::NotJudged(why.to_owned())
        }
        ("skipped", _) => Played::NotPlayed(line.message),
        (verdict, _) => return Err(format!("{}: unknown verdict {verdict}", line.id)),
    };
    results.1.extend(accusations(&line.id, line.contradictions));
    results.0.insert(line.id, played);
    Ok(false)
}

/// Returns contradictions as accusations, one per check and requirements.
pub(super) fn accusations(
    scenario: &str,
    contradictions: impl IntoIterator<Item = Contradiction>,
) -> Vec<Accusation> {
    let mut accusations: Vec<Accusation> = Vec::new();
    for Contradiction {
        check,
        requirements,
        sentence,
    } in contradictions
    {
        let is_same =
            |accusation: &Accusation| accusation.check == check && accusation.requirements == requirements;
        if !accusations.iter().any(is_same) {
            accusations.push(Accusation {
                scenario: scenario.to_owned(),
                check,
                requirements,
                sentence,
            });
        }
    }
    accusations
}

/// Returns the last lines of a file.
pub(super) fn last_lines(file: &Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verdict: &str, outcome: &str, contradictions: &str) -> String {
        format!(
            r#"{{"id": "a/b", "client": "x", "outcome": "{outcome}", "verdict": "{verdict}", "message": "not judged: late",
                "contradictions": {contradictions}, "tookMs": 1}}"#
        )
    }

    #[test]
    fn a_line_is_a_result() {
        let twice = r#"[
            {"check": "INV-02", "requirements": ["R-1"], "sentence": "first", "place": null},
            {"check": "INV-02", "requirements": ["R-1"], "sentence": "second", "place": null}
        ]"#;
        for (verdict, outcome, contradictions, wanted, accused) in [
            ("passed", "pass", "[]", Played::Passed, 0),
            ("failed", "mismatch", twice, Played::Failed, 1),
            ("failed", "crash", "[]", Played::Failed, 0),
            ("warned", "mismatch", twice, Played::Failed, 1),
            ("not_scored", "mismatch", twice, Played::Failed, 1),
            (
                "not_judged",
                "not_judged",
                "[]",
                Played::NotJudged("late".to_owned()),
                0,
            ),
            (
                "skipped",
                "skipped",
                "[]",
                Played::NotPlayed("not judged: late".to_owned()),
                0,
            ),
        ] {
            let mut results = Results::default();
            assert_eq!(
                taken(&line(verdict, outcome, contradictions), &mut results),
                Ok(false)
            );
            assert_eq!(results.0["a/b"], wanted);
            assert_eq!(results.1.len(), accused, "{verdict}");
        }
    }

    #[test]
    fn what_proves_nothing_is_an_error() {
        let mut results = Results::default();
        assert_eq!(taken(r#"{"footer": {"passed": 1}}"#, &mut results), Ok(true));
        let broken = taken(&line("failed", "harness_error", "[]"), &mut results).unwrap_err();
        assert_eq!(broken, "a/b: not judged: late");
        let invalid = taken(r#"{"file": "x.yaml", "message": "m"}"#, &mut results).unwrap_err();
        assert_eq!(invalid, r#""x.yaml" has mistakes: "m""#);
        assert!(taken("no json", &mut results).is_err());
    }
}
