//! Markdown table of a client's failures, for a README.

use std::fmt::Write;

use crate::suite::Judged;

/// Returns one row per failing scenario: claim, what happens instead, and the known reason or issue.
pub fn failures(results: &[Judged]) -> String {
    let mut text = String::new();
    let failed: Vec<&Judged> = results.iter().filter(|judged| !judged.verdict.passed()).collect();
    let Some(first) = results.first() else { return text };
    let _infallible = writeln!(
        text,
        "`{}` {} fails {} of {} scenarios.\n",
        first.client,
        first.version,
        failed.len(),
        results.len()
    );
    if failed.is_empty() {
        return text;
    }
    text.push_str("| scenario | what it claims | what happens instead | known |\n|---|---|---|---|\n");
    for judged in failed {
        let (why, issue) = match &judged.known {
            Some(known) => (known.reason.as_str(), known.issue.as_str()),
            None => (judged.verdict.message(), "new"),
        };
        let covers: Vec<&str> = judged
            .scenario
            .covers
            .iter()
            .map(|covered| covered.id.as_str())
            .collect();
        let _infallible = writeln!(
            text,
            "| `{}` {} | {} | {} | {} |",
            judged.scenario.id,
            covers.join(" "),
            cell(&judged.scenario.title),
            cell(why),
            cell(issue)
        );
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
