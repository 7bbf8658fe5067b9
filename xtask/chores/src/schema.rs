//! `cargo xtask schema`.

use std::io::Write;
use std::process::ExitCode;

use crate::clients::{USAGE, root};

/// The manual of the scenario language.
const MANUAL: &str = "docs/scenario-language.md";

/// Writes the schema files, and the manual's tables of actions.
pub(crate) fn write() -> ExitCode {
    let manual = std::fs::read_to_string(root().join(MANUAL)).unwrap_or_default();
    let files = [
        ("schema/scenario.v1.json", fake_apiserver::scenario::json_schema()),
        (
            "schema/adapter.v1.json",
            conformance::adapter::message::json_schema(),
        ),
        ("schema/results.v1.json", report::results::json_schema()),
        (MANUAL, fake_apiserver::scenario::with_action_tables(&manual)),
    ];
    for (name, text) in files {
        let path = root().join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        match made.and_then(|()| std::fs::write(&path, text)) {
            Ok(()) => {
                let _closed_pipe = writeln!(std::io::stdout(), "wrote {}", path.display());
            }
            Err(error) => {
                let _closed_pipe = writeln!(std::io::stderr(), "cannot write {}: {error}", path.display());
                return ExitCode::from(USAGE);
            }
        }
    }
    ExitCode::SUCCESS
}
