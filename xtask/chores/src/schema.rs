//! `cargo xtask schema`.

use std::io::Write;
use std::process::ExitCode;

use crate::clients::{USAGE, root};

/// Writes the schema files.
pub(crate) fn write() -> ExitCode {
    let schemas = [
        ("scenario.v1.json", fake_apiserver::scenario::json_schema()),
        ("adapter.v1.json", conformance::adapter::message::json_schema()),
        ("results.v1.json", report::results::json_schema()),
    ];
    for (name, text) in schemas {
        let path = root().join("schema").join(name);
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
