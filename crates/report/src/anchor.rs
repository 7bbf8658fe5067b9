//! Location of a result: a file of the client's repository, because viewers show a result only beside a file they have,
//! and the scenario is not in that repository. It must not read files.

use crate::results::{Found, TestResult};

/// URL of this repository's files.
pub(crate) const SCENARIOS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Files of the client's repository, as paths from its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anchors {
    /// File that results point at, e.g. the adapter.
    pub source: Option<String>,
    /// File of known failures; a result listed in it points at its entry.
    pub known_failures: Option<String>,
}

impl Anchors {
    /// Returns file and line of a result; `None` if no file is set.
    pub(crate) fn of(&self, test: &TestResult) -> Option<(&str, u64)> {
        let entry = test.known.as_ref().map_or(0, |known| known.line);
        match (&self.known_failures, &self.source) {
            (Some(file), _) if entry > 0 => Some((file, entry)),
            (_, Some(file)) | (Some(file), None) => Some((file, 1)),
            (None, None) => None,
        }
    }
}

/// Returns where to read the scenario of a result, and the command that runs it again.
pub(crate) fn scenario(test: &TestResult, found: Option<&Found>) -> String {
    let line = found.and_then(Found::line_and_column);
    let line = line.map_or(String::new(), |(line, _)| format!("#L{line}"));
    let id = &test.id;
    format!(
        "Scenario: {SCENARIOS}{}{line}, or `fake-apiserver show {id}`\nRun again: {}",
        uri(&test.path),
        test.rerun
    )
}

/// Returns a path as a relative URI.
pub(crate) fn uri(path: &str) -> String {
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
    use conformance::adapter::outcome::Outcome;
    use conformance::adapter::standing::Standing;
    use rstest::rstest;

    use super::*;
    use crate::results::KnownFailure;
    use crate::results::tests::{found, result};

    #[rstest]
    #[case::nothing(None, None, 7, None)]
    #[case::source(Some("adapter.py"), None, 7, Some(("adapter.py", 1)))]
    #[case::entry(Some("adapter.py"), Some("known.yaml"), 7, Some(("known.yaml", 7)))]
    #[case::no_entry(Some("adapter.py"), Some("known.yaml"), 0, Some(("adapter.py", 1)))]
    #[case::only_the_list(None, Some("known.yaml"), 0, Some(("known.yaml", 1)))]
    fn a_result_points_at(
        #[case] source: Option<&str>,
        #[case] known_failures: Option<&str>,
        #[case] line: u64,
        #[case] place: Option<(&str, u64)>,
    ) {
        let anchors = Anchors {
            source: source.map(str::to_owned),
            known_failures: known_failures.map(str::to_owned),
        };
        let mut test = result("a/b", Outcome::Fail, Standing::Failed, Vec::new());
        test.known = (line > 0).then(|| KnownFailure {
            outcome: "fail".to_owned(),
            reason: "r".to_owned(),
            issue: "none public".to_owned(),
            line,
        });
        assert_eq!(anchors.of(&test), place);
    }

    #[test]
    fn the_scenario_can_be_read() {
        let one = found("INV-03", "no");
        let test = result("a/b c", Outcome::Fail, Standing::Failed, Vec::new());
        let text = scenario(&test, Some(&one));
        assert!(
            text.contains("/blob/main/scenarios/a/b%20c.yaml#L28, or `fake-apiserver show a/b c`\n"),
            "{text}"
        );
    }
}
