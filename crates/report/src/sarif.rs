//! Results as SARIF 2.1.0, for code scanning: a rule for each check, a result for each contradiction.
//!
//! The format: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>. A place is a line of the scenario's file: the client's own
//! source is not known.

use std::collections::BTreeMap;

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::catalogue;
use serde_json::{Value, json};

use crate::results::{Found, Results, TestResult};

/// Results of one file; code scanning takes no more of one run.
const RESULTS_MAX: usize = 5000;

/// The log of one run.
pub fn sarif(results: &Results) -> Value {
    let mut rules: BTreeMap<String, Value> = BTreeMap::new();
    let mut found = Vec::new();
    for test in &results.tests {
        if !is_reported(test) {
            continue;
        }
        let own = test.found();
        for one in own {
            found.push((rule(&one.check), test, Some(one)));
        }
        if own.is_empty() {
            found.push((test.outcome.word().to_owned(), test, None));
        }
    }
    found.truncate(RESULTS_MAX);
    for (id, ..) in &found {
        rules.entry(id.clone()).or_insert_with(|| described(id));
    }
    let numbers: BTreeMap<&String, usize> = rules.keys().enumerate().map(|(n, id)| (id, n)).collect();
    let reported: Vec<Value> = found
        .iter()
        .map(|(id, test, one)| result(id, numbers[id], test, *one))
        .collect();
    let footer = results.footer.as_ref();
    let properties = footer.map_or(
        Value::Null,
        |footer| json!({ "client": footer.client, "edition": footer.edition }),
    );
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "fake-apiserver conformance",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.into_values().collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": footer.is_some_and(|footer| footer.complete && !matches!(footer.exit_code, 3 | 70))}],
            "properties": {"run": properties},
            "results": reported,
        }],
    })
}

/// Passed and unplayed tests are no results of code scanning.
fn is_reported(test: &TestResult) -> bool {
    match test.standing {
        Standing::Warned | Standing::Known | Standing::Failed | Standing::Flaky => {
            test.outcome != Outcome::Pass
        }
        Standing::Passed
        | Standing::NotJudged
        | Standing::NotScored
        | Standing::Stale
        | Standing::AdapterError
        | Standing::HarnessError => false,
    }
}

/// The rule of a check: `expect.requests[2]` and `expect.requests[0]` are of one rule.
fn rule(check: &str) -> String {
    check.split('[').next().unwrap_or(check).to_owned()
}

fn described(id: &str) -> Value {
    let invariant = catalogue::invariants().iter().find(|one| one.id == id);
    let text = invariant.map_or_else(
        || match id {
            "run" => "The run comes to its end".to_owned(),
            "dump" => "The cache of the client holds the objects of its events".to_owned(),
            id if id.starts_with("expect.") => "The client does what the scenario expects".to_owned(),
            id => format!("The test does not end with the outcome {id}"),
        },
        |one| one.text.clone(),
    );
    json!({"id": id, "shortDescription": {"text": text}})
}

fn result(id: &str, index: usize, test: &TestResult, found: Option<&Found>) -> Value {
    let message = match found {
        Some(found) => &found.sentence,
        None => &test.message,
    };
    let (line, column) = found.and_then(Found::line_and_column).unwrap_or((1, 1));
    let is_advice = test.outcome == Outcome::Warn;
    let check = found.map_or(id, |found| &found.check);
    let mut result = json!({
        "ruleId": id,
        "ruleIndex": index,
        "level": if is_advice { "warning" } else { "error" },
        "message": {"text": format!("{}: {message}\nScenario {}. Run again: {}", test.title, test.id, test.rerun)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&test.path)},
            "region": {"startLine": line.max(1), "startColumn": column.max(1)},
        }}],
        // Stable from run to run: sentences have times.
        "partialFingerprints": {"scenarioAndCheck/v1": format!("{}#{check}", test.id)},
        "properties": {"requirements": found.map(|found| &found.requirements), "outcome": test.outcome},
    });
    if test.standing == Standing::Known
        && let Some(known) = &test.known
    {
        result["suppressions"] = json!([{
            "kind": "external",
            "justification": format!("{} ({})", known.reason, known.issue),
        }]);
    }
    result
}

/// A path as a relative URI.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(byte as char)
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::KnownFailure;
    use crate::results::tests::{footer, found, result};

    fn log() -> Value {
        let mut known = result(
            "c/known fact",
            Outcome::Warn,
            Standing::Known,
            vec![found("INV-07", "w")],
        );
        known.known = Some(KnownFailure {
            outcome: "warn".to_owned(),
            reason: "it is so".to_owned(),
            issue: "none public".to_owned(),
        });
        sarif(&Results {
            tests: vec![
                result("a/kept", Outcome::Pass, Standing::Passed, Vec::new()),
                result(
                    "b/broken",
                    Outcome::Fail,
                    Standing::Failed,
                    vec![found("expect.requests[2]", "no relist"), found("INV-03", "twice")],
                ),
                known,
                result("d/dead", Outcome::Crash, Standing::Failed, Vec::new()),
                result("e/unplayed", Outcome::NotPlayed, Standing::NotJudged, Vec::new()),
            ],
            footer: Some(footer("client", "1")),
        })
    }

    #[test]
    fn a_result_for_each_contradiction_and_a_rule_for_each_check() {
        let log = log();
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        let ids: Vec<&str> = results.iter().filter_map(|one| one["ruleId"].as_str()).collect();
        assert_eq!(ids, ["expect.requests", "INV-03", "INV-07", "crash"]);
        for one in results {
            let rule = &run["tool"]["driver"]["rules"][one["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], one["ruleId"]);
        }
        assert_eq!(results[0]["level"], "error");
        assert_eq!(results[2]["level"], "warning");
        assert_eq!(results[2]["suppressions"][0]["kind"], "external");
        let place = &results[2]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "scenarios/c/known%20fact.yaml");
        assert_eq!(place["region"], json!({"startLine": 28, "startColumn": 7}));
        assert_eq!(
            results[3]["locations"][0]["physicalLocation"]["region"]["startLine"],
            1
        );
    }

    /// What sarif-schema-2.1.0.json requires of the objects that are used, and the values that it allows: it forbids other keys
    /// nowhere, but in `region` and `suppression` the values have types.
    #[test]
    fn the_shape_is_that_of_the_published_schema() {
        let log = log();
        assert_eq!(log["version"], "2.1.0");
        let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        for run in log["runs"].as_array().unwrap() {
            let driver = &run["tool"]["driver"];
            assert!(text(&driver["name"]) && text(&driver["informationUri"]));
            let mut ids = std::collections::BTreeSet::new();
            for rule in driver["rules"].as_array().unwrap() {
                assert!(text(&rule["id"]) && text(&rule["shortDescription"]["text"]));
                assert!(ids.insert(rule["id"].to_string()), "rules are unique");
            }
            assert!(matches!(
                run["columnKind"].as_str(),
                Some("utf16CodeUnits" | "unicodeCodePoints")
            ));
            for invocation in run["invocations"].as_array().unwrap() {
                assert!(invocation["executionSuccessful"].is_boolean());
            }
            for one in run["results"].as_array().unwrap() {
                assert!(text(&one["message"]["text"]));
                assert!(matches!(
                    one["level"].as_str(),
                    Some("none" | "note" | "warning" | "error")
                ));
                let prints = one["partialFingerprints"].as_object().unwrap();
                assert!(prints.values().all(Value::is_string));
                for place in one["locations"].as_array().unwrap() {
                    let region = &place["physicalLocation"]["region"];
                    assert!(
                        region["startLine"].as_u64() >= Some(1) && region["startColumn"].as_u64() >= Some(1)
                    );
                }
                for one in one["suppressions"].as_array().into_iter().flatten() {
                    assert!(matches!(one["kind"].as_str(), Some("inSource" | "external")));
                }
            }
        }
    }
}
