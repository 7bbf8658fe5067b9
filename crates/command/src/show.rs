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
    /// Id of the scenario.
    #[arg(value_name = "SCENARIO")]
    id: String,
}

/// Prints the file.
///
/// # Errors
/// There is no such scenario.
pub(crate) fn run(arguments: &Show) -> Result<(), Failure> {
    let id = arguments.id.as_str();
    let Some((_, text, _)) = SCENARIOS.iter().find(|(built_in, ..)| *built_in == id) else {
        let ids = SCENARIOS.iter().map(|(id, ..)| *id);
        let hint = scenario::nearest(id, ids).map(|near| format!("; did you mean {near}?"));
        return Err(Failure::Usage(format!(
            "no scenario {id}{}",
            hint.unwrap_or_default()
        )));
    };
    stage::block_on(async |stop| output::print((*text).to_owned(), &stop).await)
}
