//! `cargo xtask schema`.

mod manual;

use std::io::Write;
use std::process::ExitCode;

use crate::clients::{USAGE, root};

/// The manual of the scenario language.
const MANUAL: &str = "docs/scenario-language.md";

/// Writes the schema files, and the manual's tables of actions.
pub(crate) fn write() -> ExitCode {
    let manual = match manual() {
        Ok((_, current)) => current,
        Err(why) => {
            let _closed_pipe = writeln!(std::io::stderr(), "{why}");
            return ExitCode::from(USAGE);
        }
    };
    let files = [
        ("schema/scenario.v1.json", fake_apiserver::scenario::json_schema()),
        (
            "schema/adapter.v1.json",
            conformance::adapter::message::json_schema(),
        ),
        ("schema/results.v1.json", report::results::json_schema()),
        (MANUAL, manual),
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

/// Returns the manual as it is, and with current tables.
fn manual() -> Result<(String, String), String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{MANUAL}: {why}");
    let found = std::fs::read_to_string(root().join(MANUAL)).map_err(|why| wrong(&why))?;
    let schema = serde_json::from_str(&fake_apiserver::scenario::json_schema()).map_err(|why| wrong(&why))?;
    let current = manual::with_action_tables(&found, &schema).map_err(|why| wrong(&why))?;
    Ok((found, current))
}
