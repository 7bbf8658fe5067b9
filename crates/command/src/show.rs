//! `fake-apiserver show`: the text of a built-in scenario.

use clap::Args;
use fake_apiserver::scenario;

use crate::built_in::SCENARIOS;
use crate::{Failure, output, stage};

/// Print a built-in scenario.
///
/// Results of `conformance` name scenarios by id and line. Save the text in a file to change it, and run it with
/// `conformance --scenarios FILE`.
///
/// Example: fake-apiserver show gone/http-410-counts-whatever-its-body
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Id of the scenario, or the beginning of one.
    #[arg(value_name = "SCENARIO")]
    id: String,
}

/// Prints the file.
///
/// # Errors
/// There is no such scenario.
pub(crate) fn run(arguments: &Show) -> Result<(), Failure> {
    let text = chosen(&arguments.id).map_err(Failure::Usage)?.to_owned();
    stage::block_on(async |stop| output::print(text, &stop).await)
}

/// Returns the text of the scenario with this id, or of the only one whose id begins so.
///
/// # Errors
///
/// There is none, or several: their ids.
fn chosen(name: &str) -> Result<&'static str, String> {
    let name = name.strip_suffix(".yaml").unwrap_or(name);
    if let Some((_, text, _)) = SCENARIOS.iter().find(|(id, ..)| *id == name) {
        return Ok(text);
    }
    let begun = SCENARIOS.iter().filter(|(id, ..)| id.starts_with(name));
    match begun.collect::<Vec<_>>().as_slice() {
        [] => {
            let ids = SCENARIOS.iter().map(|(id, ..)| *id);
            let hint = scenario::nearest(name, ids).map(|near| format!("; did you mean {near}?"));
            Err(format!("no scenario {name}{}", hint.unwrap_or_default()))
        }
        [(_, text, _)] => Ok(text),
        several => {
            let ids: Vec<&str> = several.iter().map(|(id, ..)| *id).collect();
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
