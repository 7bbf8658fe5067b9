//! Parsers for the output of test runners: the outcome of each test by its full name. Skipped tests are left out.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Passed.
    Passed,
    /// Passed after a failed attempt.
    PassedAgain,
    /// Failed, with its message, which can be empty.
    Failed(String),
}

/// Outcomes by full name.
pub type Outcomes = BTreeMap<String, Outcome>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GinkgoSuite {
    #[serde(default)]
    spec_reports: Option<Vec<Spec>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    #[serde(default)]
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    num_attempts: u32,
    #[serde(default)]
    failure: Failure,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

/// Parses Ginkgo's JSON report (`--ginkgo.json-report`).
///
/// # Errors
///
/// The report is invalid, or the suite failed before its first spec.
pub fn ginkgo(text: &str) -> Result<Outcomes, String> {
    let suites: Vec<GinkgoSuite> =
        serde_json::from_str(text).map_err(|why| format!("no Ginkgo report: {why}"))?;
    let mut outcomes = Outcomes::new();
    for spec in suites
        .into_iter()
        .filter_map(|suite| suite.spec_reports)
        .flatten()
    {
        let failed = !["passed", "skipped", "pending"].contains(&spec.state.as_str());
        if spec.leaf_node_type != "It" {
            if failed {
                let Spec {
                    leaf_node_type,
                    failure,
                    ..
                } = spec;
                return Err(format!("{leaf_node_type}: {}", failure.message));
            }
            continue;
        }
        let mut name = spec.container_hierarchy_texts.unwrap_or_default();
        name.push(spec.leaf_node_text);
        let name = name.join(" ");
        if failed {
            outcomes.insert(
                name,
                Outcome::Failed(format!("{}: {}", spec.state, spec.failure.message)),
            );
        } else if spec.state == "passed" {
            // Of two specs with one name the worse outcome is kept.
            let passed = if spec.num_attempts > 1 {
                Outcome::PassedAgain
            } else {
                Outcome::Passed
            };
            outcomes.entry(name).or_insert(passed);
        }
    }
    Ok(outcomes)
}

/// Parses the output of `go test -v`: the subtests, without the name of the top-level test.
pub fn go_test(text: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in text.lines() {
        let line = line.trim_start();
        let ended = [("--- PASS: ", true), ("--- FAIL: ", false)]
            .into_iter()
            .find_map(|(prefix, passed)| Some((line.strip_prefix(prefix)?, passed)));
        let Some((rest, passed)) = ended else { continue };
        let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
        let Some((_, name)) = name.split_once('/') else {
            continue;
        };
        let outcome = if passed {
            Outcome::Passed
        } else {
            Outcome::Failed(String::new())
        };
        outcomes.insert(name.replace('_', " "), outcome);
    }
    outcomes
}

/// Parses the output of a Rust test binary.
///
/// # Errors
///
/// It ended before its tests.
pub fn libtest(text: &str) -> Result<Outcomes, String> {
    let mut outcomes = Outcomes::new();
    for line in text.lines() {
        let Some((name, ended)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        else {
            continue;
        };
        let outcome = match ended {
            "ok" => Outcome::Passed,
            "FAILED" => Outcome::Failed(printed(text, name)),
            _ => continue,
        };
        outcomes.insert(name.to_owned(), outcome);
    }
    if text.lines().any(|line| line.starts_with("test result: ")) {
        Ok(outcomes)
    } else {
        Err("the process ended before its tests did".to_owned())
    }
}

/// Returns the first lines of output of a failed Rust test.
fn printed(text: &str, name: &str) -> String {
    let head = format!("---- {name} stdout ----");
    let lines = text.lines().skip_while(|line| *line != head).skip(1);
    let lines: Vec<&str> = lines
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Outcomes, ginkgo, go_test, libtest};

    fn outcomes(of: &[(&str, Outcome)]) -> Outcomes {
        of.iter()
            .map(|(name, outcome)| ((*name).to_owned(), outcome.clone()))
            .collect()
    }

    #[test]
    fn a_ginkgo_report_becomes_outcomes_by_full_name() {
        let text = r#"[{"SpecReports":[
            {"LeafNodeType":"BeforeSuite","State":"passed"},
            {"ContainerHierarchyTexts":["client","Get"],"LeafNodeType":"It","LeafNodeText":"reads","State":"passed","NumAttempts":1},
            {"ContainerHierarchyTexts":["client"],"LeafNodeType":"It","LeafNodeText":"races","State":"passed","NumAttempts":2},
            {"ContainerHierarchyTexts":["client"],"LeafNodeType":"It","LeafNodeText":"waits","State":"timedout",
             "Failure":{"Message":"too long"}},
            {"ContainerHierarchyTexts":["client"],"LeafNodeType":"It","LeafNodeText":"later","State":"skipped"}
        ]}]"#;
        let expected = outcomes(&[
            ("client Get reads", Outcome::Passed),
            ("client races", Outcome::PassedAgain),
            ("client waits", Outcome::Failed("timedout: too long".to_owned())),
        ]);
        assert_eq!(ginkgo(text), Ok(expected));
    }

    #[test]
    fn a_report_of_a_suite_without_specs_is_invalid() {
        let text = r#"[{"SpecReports":[
            {"LeafNodeType":"BeforeSuite","State":"failed","Failure":{"Message":"no server"}}]}]"#;
        assert_eq!(ginkgo(text), Err("BeforeSuite: no server".to_owned()));
        assert!(ginkgo("").is_err());
    }

    #[test]
    fn go_tests_are_parsed() {
        let text = "--- FAIL: TestX (0.10s)\n    --- PASS: TestX/binds_a_pod (0.05s)\n    --- FAIL: TestX/waits (0.05s)\n";
        let expected = outcomes(&[
            ("binds a pod", Outcome::Passed),
            ("waits", Outcome::Failed(String::new())),
        ]);
        assert_eq!(go_test(text), expected);
    }

    #[test]
    fn rust_tests_are_parsed() {
        let text = "\nrunning 3 tests\ntest a::lists ... ok\ntest a::attaches ... FAILED\ntest b ... ignored, slow\n\n\
            failures:\n\n---- a::attaches stdout ----\nError: Elapsed(())\n\n\nfailures:\n    a::attaches\n\n\
            test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.00s\n";
        let expected = outcomes(&[
            ("a::lists", Outcome::Passed),
            ("a::attaches", Outcome::Failed("Error: Elapsed(())".to_owned())),
        ]);
        assert_eq!(libtest(text), Ok(expected));
    }

    #[test]
    fn output_of_a_killed_test_binary_is_invalid() {
        assert!(libtest("\nrunning 2 tests\ntest a::lists ... ok\n").is_err());
    }
}
