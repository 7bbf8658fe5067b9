//! Workflow commands of GitHub Actions: an annotation per unexpected result.
//!
//! The syntax: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.

use conformance::adapter::standing::Standing;

use crate::anchor::{self, Anchors};
use crate::results::{Results, TestResult};

/// Annotations per run. GitHub shows ten of a kind per step.
const ANNOTATIONS_MAX: usize = 10;

/// Returns one line per unexpected result, and one for those beyond the tenth. Without a file of the client's
/// repository they annotate the run.
pub fn annotations(results: &Results, anchors: &Anchors) -> String {
    let bad: Vec<(&str, &TestResult)> = results
        .tests
        .iter()
        .filter_map(|test| Some((level(test.standing)?, test)))
        .collect();
    let mut text = String::new();
    let shown = if bad.len() > ANNOTATIONS_MAX {
        ANNOTATIONS_MAX - 1
    } else {
        bad.len()
    };
    for (level, test) in &bad[..shown] {
        let place = anchors.of(test).map_or(String::new(), |(file, line)| {
            format!("file={},line={line},", property(file))
        });
        let title = format!("{} {}", test.outcome.word(), test.id);
        let message = match test.message.as_str() {
            "" => test.standing.word(),
            message => message,
        };
        text.push_str(&format!(
            "::{level} {place}title={}::{}\n",
            property(&title),
            data(&format!(
                "{message}\n{}",
                anchor::scenario(test, test.found().first())
            ))
        ));
    }
    if bad.len() > shown {
        text.push_str(&format!(
            "::error title=Watch conformance::{} more results are not as expected; the summary lists them\n",
            bad.len() - shown
        ));
    }
    text
}

fn level(standing: Standing) -> Option<&'static str> {
    match standing {
        Standing::Failed
        | Standing::Flaky
        | Standing::Stale
        | Standing::AdapterError
        | Standing::HarnessError => Some("error"),
        Standing::Warned => Some("warning"),
        Standing::Passed | Standing::Known | Standing::NotJudged | Standing::NotScored => None,
    }
}

/// Escapes a message: a newline would end the command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property, in which comma and colon are separators too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use conformance::adapter::outcome::Outcome;

    use super::*;
    use crate::results::tests::{found, result};

    fn run(tests: Vec<TestResult>) -> String {
        let anchors = Anchors {
            source: Some("a,b/adapter.py".to_owned()),
            known_failures: None,
        };
        annotations(&Results { tests, footer: None }, &anchors)
    }

    #[test]
    fn each_bad_result_is_one_line_at_its_place() {
        let hostile = "50% done\n::error::forged\r";
        let text = run(vec![
            result("a/kept", Outcome::Pass, Standing::Passed, Vec::new()),
            result(
                "a/known",
                Outcome::Fail,
                Standing::Known,
                vec![found("INV-03", "known")],
            ),
            result(
                "b/broken,x:y",
                Outcome::Fail,
                Standing::Failed,
                vec![found("INV-03", hostile)],
            ),
            result(
                "c/warned",
                Outcome::Warn,
                Standing::Warned,
                vec![found("INV-03", "w")],
            ),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].starts_with(
                "::error file=a%2Cb/adapter.py,line=1,title=fail b/broken%2Cx%3Ay::50%25 done%0A::error::forged%0D%0AScenario: https"
            ),
            "{text}"
        );
        assert!(lines[1].starts_with("::warning file=a%2Cb/adapter.py,line=1,title=warn c/warned::"));
        assert!(lines[1].contains("`fake-apiserver show c/warned`"), "{text}");
    }

    #[test]
    fn without_a_file_an_annotation_is_of_the_run() {
        let test = result("a/b", Outcome::Crash, Standing::Failed, Vec::new());
        let results = Results {
            tests: vec![test],
            footer: None,
        };
        let text = annotations(&results, &Anchors::default());
        assert!(text.starts_with("::error title=crash a/b::"), "{text}");
    }

    #[test]
    fn no_more_than_are_shown() {
        let test = |number: usize| {
            result(
                &format!("a/{number:02}"),
                Outcome::Hang,
                Standing::Failed,
                Vec::new(),
            )
        };
        assert_eq!(run((0..10).map(test).collect()).lines().count(), 10);
        let text = run((0..30).map(test).collect());
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("21 more results"), "{text}");
    }
}
