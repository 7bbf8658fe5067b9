//! `fake-apiserver show`: the text of a built-in scenario, or of a requirement.

use std::fmt::Write as _;

use clap::Args;
use fake_apiserver::scenario;
use fake_apiserver::scenario::catalogue::{self, Requirement};

use crate::built_in::{self, SCENARIOS};
use crate::{Failure, output, stage};

/// Print a built-in scenario, or a requirement.
///
/// Results name scenarios by id and line, and requirements by id. Save the text of a scenario in a file to change it, and play it with
/// `run FILE` or `conformance --scenarios FILE`.
///
/// Example: fake-apiserver show gone/http-410-counts-whatever-its-body
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Id of the scenario, or its beginning; or of a requirement, e.g. GONE-01.
    #[arg(value_name = "SCENARIO|REQUIREMENT")]
    id: String,
}

/// Prints the file, or the requirement.
///
/// # Errors
/// There is no such scenario or requirement.
pub(crate) fn run(arguments: &Show) -> Result<(), Failure> {
    let text = match catalogue::requirement(&arguments.id) {
        Some(requirement) => described(requirement),
        None => chosen(&arguments.id).map_err(Failure::Usage)?.to_owned(),
    };
    stage::block_on(async |stop| output::print(text, &stop).await)
}

/// Returns a requirement as a person reads it.
fn described(requirement: &Requirement) -> String {
    let Requirement {
        id,
        level,
        text,
        sources,
        consequence,
        ..
    } = requirement;
    let mut lines = format!("{id} ({})\n{text}\n", level.word());
    // Writing to a String cannot fail.
    let _ = writeln!(lines, "consequence: {}", consequence.word());
    for source in sources {
        let _ = writeln!(lines, "source: {source}");
    }
    if sources.is_empty() {
        lines.push_str("source: none; it is this suite's own judgement\n");
    }
    lines
}

/// Returns the text of the scenario with this id, or of the only one whose id begins so.
///
/// # Errors
///
/// There is none, or several: their ids.
fn chosen(name: &str) -> Result<&'static str, String> {
    let name = name.strip_suffix(".yaml").unwrap_or(name);
    let begun: Vec<(&str, &str)> = built_in::beginning(name).collect();
    if let Some((_, text)) = begun.iter().find(|(id, _)| *id == name) {
        return Ok(text);
    }
    match begun.as_slice() {
        [] => {
            let ids = SCENARIOS.iter().map(|(id, ..)| *id);
            let hint = scenario::nearest(name, ids).map(|near| format!("; did you mean {near}?"));
            Err(format!("no scenario {name}{}", hint.unwrap_or_default()))
        }
        [(_, text)] => Ok(text),
        several => {
            let ids: Vec<&str> = several.iter().map(|(id, _)| *id).collect();
            Err(format!(
                "{} scenarios begin with {name}, name one of them:\n  {}",
                ids.len(),
                ids.join("\n  ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_requirement_has_its_level_and_its_sources() {
        let text = described(catalogue::requirement("GONE-01").expect("it exists"));
        assert!(
            text.starts_with("GONE-01 (MUST)\n") && text.contains("\nsource: "),
            "{text}"
        );
    }

    #[rstest]
    #[case::an_id("watch/clean-eof-resumes-from-the-last-event", "")]
    #[case::a_file("watch/clean-eof-resumes-from-the-last-event.yaml", "")]
    #[case::a_beginning("watch/clean-eof", "")]
    #[case::of_several("watch/clean-e", "\n  watch/clean-eof-resumes-from-the-last-event")]
    #[case::mistyped(
        "watch/clean-eof-resume-from-the-last-event",
        "did you mean watch/clean-eof-resumes"
    )]
    fn a_name_stands_for_one_scenario(#[case] name: &str, #[case] error: &str) {
        match chosen(name) {
            Ok(text) => assert!(error.is_empty() && text.contains("scenario: v1"), "{text}"),
            Err(why) => assert!(!error.is_empty() && why.contains(error), "{why}"),
        }
    }
}
