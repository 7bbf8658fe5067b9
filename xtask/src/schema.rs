//! `cargo xtask schema`.

use std::io::Write;
use std::process::ExitCode;

use crate::clients::{USAGE, root};

/// Writes the schema file.
pub(crate) fn write() -> ExitCode {
    let path = root().join("schema").join("scenario.v1.json");
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match made.and_then(|()| std::fs::write(&path, fake_apiserver::scenario::json_schema())) {
        Ok(()) => {
            let _closed_pipe = writeln!(std::io::stdout(), "wrote {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _closed_pipe = writeln!(std::io::stderr(), "cannot write {}: {error}", path.display());
            ExitCode::from(USAGE)
        }
    }
}
