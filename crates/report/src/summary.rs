//! Summary of a run in Markdown, for `GITHUB_STEP_SUMMARY` of GitHub Actions.

use std::fmt::Write as _;

use conformance::adapter::standing::Standing;

use crate::results::{Results, TestResult};

/// Rows of the table; a summary may have 1 MiB.
const ROWS_MAX: usize = 200;

/// Characters of a reason.
const REASON_MAX: usize = 400;

/// Returns the summary.
pub fn summary(results: &Results) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    if let Some(footer) = &results.footer {
        let client = &footer.client;
        let _ = writeln!(
            text,
            "### Watch conformance of {} {}\n",
            escaped(&client.name),
            escaped(&client.version)
        );
        if !footer.complete {
            text.push_str("The run was interrupted.\n\n");
        }
        let outcomes = footer.outcomes.iter().filter(|(_, number)| **number > 0);
        let counts: Vec<String> = outcomes
            .map(|(word, number)| format!("{number} {word}"))
            .collect();
        let kept = |level: &str| footer.requirements.get(level).copied().unwrap_or_default();
        let (must, should) = (kept("must"), kept("should"));
        let _ = writeln!(
            text,
            "{} tests: {}. Requirements{} kept: MUST {}/{}, SHOULD {}/{}.\n",
            footer.tests,
            counts.join(", "),
            footer.edition_label().map_or(String::new(), |edition| format!(
                " of edition {}",
                escaped(&edition)
            )),
            must.kept,
            must.judged,
            should.kept,
            should.judged
        );
        for entry in &footer.stale_entries {
            let _ = writeln!(text, "* {}: remove the entry", escaped(entry));
        }
    }
    let listed: Vec<&TestResult> = results
        .tests
        .iter()
        .filter(|test| match test.standing {
            Standing::Passed | Standing::NotJudged => false,
            Standing::NotScored => test.outcome.accuses_client(),
            Standing::Warned
            | Standing::Known
            | Standing::Failed
            | Standing::Flaky
            | Standing::Stale
            | Standing::AdapterError
            | Standing::HarnessError => true,
        })
        .collect();
    if listed.is_empty() {
        return text;
    }
    text.push_str("| test | outcome | claim, and what contradicts it |\n|---|---|---|\n");
    for test in listed.iter().take(ROWS_MAX) {
        let why = match &test.known {
            Some(known) => format!("known: {} ({})", escaped(&known.reason), escaped(&known.issue)),
            None => escaped(&test.message),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {}<br>{why} |",
            escaped(&test.id),
            match test.standing {
                Standing::Known => format!("{}, known", test.outcome.word()),
                Standing::NotScored => format!("{}, not scored", test.outcome.word()),
                Standing::Flaky | Standing::Stale => test.standing.word().to_owned(),
                Standing::Passed
                | Standing::Warned
                | Standing::NotJudged
                | Standing::Failed
                | Standing::AdapterError
                | Standing::HarnessError => test.outcome.word().to_owned(),
            },
            escaped(&test.title)
        );
    }
    if listed.len() > ROWS_MAX {
        let _ = writeln!(text, "\n{} more rows left out.", listed.len() - ROWS_MAX);
    }
    text
}

/// Escapes a text for one cell: nothing in it is Markdown or HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars().take(REASON_MAX) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\n' | '\r' | '\t' => escaped.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c if c.is_control() => {}
            // A mention would notify a user.
            '@' => escaped.push_str("&#64;"),
            c => escaped.push(c),
        }
    }
    if text.chars().nth(REASON_MAX).is_some() {
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use conformance::adapter::outcome::Outcome;

    use super::*;
    use crate::results::tests::{footer, found, result};

    #[test]
    fn a_row_for_each_result_that_is_not_kept() {
        let results = Results {
            tests: vec![
                result("a/kept", Outcome::Pass, Standing::Passed, Vec::new()),
                result(
                    "b/broken",
                    Outcome::Fail,
                    Standing::Failed,
                    vec![found("INV-03", "| <b>@all\n`x`")],
                ),
            ],
            footer: Some(footer("client_x", "1")),
        };
        assert_eq!(
            summary(&results),
            "### Watch conformance of client\\_x 1\n\n\
             2 tests: 1 fail, 1 pass. Requirements kept: MUST 1/2, SHOULD 0/0.\n\n\
             | test | outcome | claim, and what contradicts it |\n|---|---|---|\n\
             | b/broken | fail | Claim of b/broken<br>\\| &lt;b&gt;&#64;all \\`x\\` |\n"
        );
    }

    #[test]
    fn a_summary_is_bounded() {
        let test = |number| {
            result(
                &format!("a/{number}"),
                Outcome::Fail,
                Standing::Failed,
                vec![found("INV-03", &"x".repeat(5000))],
            )
        };
        let results = Results {
            tests: (0..2000).map(test).collect(),
            footer: Some(footer("c", "1")),
        };
        let text = summary(&results);
        assert!(text.len() < 1 << 20 && text.contains("1800 more rows left out."));
    }
}
