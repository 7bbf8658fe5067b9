//! Results as SARIF 2.1.0, for code scanning: a rule per check, a result per contradiction.
//!
//! The format: <https://docs.oasis-open.org/sarif/sarif/v2.1.0/>. A result is located in a file of the client's
//! repository, because viewers show no other, and has the scenario's line as related location.

use std::collections::BTreeMap;

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::catalogue;
use serde_json::{Value, json};

use crate::anchor::{self, Anchors, uri};
use crate::results::{Found, Results, TestResult};

/// Results per file: the limit of code scanning.
const RESULTS_MAX: usize = 5000;

/// Base of the paths of scenarios.
const BASE: &str = "FAKE_APISERVER";

/// Returns the log of one run.
pub fn sarif(results: &Results, anchors: &Anchors) -> Value {
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
        .map(|(id, test, one)| result(id, numbers[id], test, *one, anchors))
        .collect();
    let footer = results.footer.as_ref();
    let properties = footer.map_or(
        Value::Null,
        |footer| json!({ "client": footer.client, "edition": footer.edition, "editionDigest": footer.edition_digest }),
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
            "originalUriBaseIds": {BASE: {"uri": anchor::SCENARIOS}},
            "invocations": [{"executionSuccessful": footer.is_some_and(|footer| footer.complete && !matches!(footer.exit_code, 3 | 70))}],
            "properties": {"run": properties},
            "results": reported,
        }],
    })
}

/// Whether the test becomes a result: passed tests and tests that did not run do not.
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

/// Returns the rule of a check: `expect.requests[2]` and `expect.requests[0]` share one.
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

fn result(id: &str, index: usize, test: &TestResult, found: Option<&Found>, anchors: &Anchors) -> Value {
    let message = match found {
        Some(found) => &found.sentence,
        None => &test.message,
    };
    let (line, column) = found.and_then(Found::line_and_column).unwrap_or((1, 1));
    let is_advice = test.outcome == Outcome::Warn;
    let check = found.map_or(id, |found| &found.check);
    let of_scenario = json!({
        "artifactLocation": {"uri": uri(&test.path), "uriBaseId": BASE},
        "region": {"startLine": line.max(1), "startColumn": column.max(1)},
    });
    let place = match anchors.of(test) {
        Some((file, line)) => json!({
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": line.max(1), "startColumn": 1},
        }),
        // Code scanning rejects a result without a location.
        None => of_scenario.clone(),
    };
    let read = anchor::scenario(test, found);
    let mut result = json!({
        "ruleId": id,
        "ruleIndex": index,
        "level": if is_advice { "warning" } else { "error" },
        "message": {"text": format!("{}: {message}\n{read}", test.title)},
        "locations": [{"physicalLocation": place}],
        "relatedLocations": [{
            "id": 1,
            "message": {"text": "what the scenario expects"},
            "physicalLocation": of_scenario,
        }],
        // Without the sentence, which has times, the fingerprint is stable between runs.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::KnownFailure;
    use crate::results::tests::{footer, found, result};

    fn log() -> Value {
        log_at(&Anchors {
            source: Some("conformance/adapter 1.py".to_owned()),
            known_failures: Some("known-failures.yaml".to_owned()),
        })
    }

    fn log_at(anchors: &Anchors) -> Value {
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
            line: 12,
        });
        let results = Results {
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
        };
        sarif(&results, anchors)
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
    }

    /// Viewers show a result beside a line of a file in the repository they display.
    #[test]
    fn a_result_is_located_in_the_clients_repository() {
        let place = |log: &Value, number: usize, kind: &str| {
            let place = &log["runs"][0]["results"][number][kind][0]["physicalLocation"];
            let (file, region) = (&place["artifactLocation"], &place["region"]);
            (
                file["uri"].as_str().unwrap().to_owned(),
                file["uriBaseId"].as_str().map(str::to_owned),
                (region["startLine"].clone(), region["startColumn"].clone()),
            )
        };
        let log = log();
        let own = |file: &str, line: u32| (file.to_owned(), None, (line.into(), 1.into()));
        assert_eq!(place(&log, 0, "locations"), own("conformance/adapter%201.py", 1));
        assert_eq!(place(&log, 2, "locations"), own("known-failures.yaml", 12));
        let base = Some("FAKE_APISERVER".to_owned());
        let scenario = (
            "scenarios/c/known%20fact.yaml".to_owned(),
            base,
            (28.into(), 7.into()),
        );
        assert_eq!(place(&log, 2, "relatedLocations"), scenario);
        assert!(
            log["runs"][0]["originalUriBaseIds"]["FAKE_APISERVER"]["uri"]
                .as_str()
                .unwrap()
                .ends_with('/')
        );
        let text = log["runs"][0]["results"][0]["message"]["text"].as_str().unwrap();
        assert!(text.contains("fake-apiserver show b/broken"), "{text}");

        let log = log_at(&Anchors::default());
        assert_eq!(place(&log, 2, "locations"), scenario);
    }

    /// Required keys of sarif-schema-2.1.0.json for the objects used, and its allowed values. It forbids other keys
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
