//! `cargo xtask control-clients`.

use std::io::Write;
use std::process::ExitCode;

use e2e::control_clients::{DOCUMENT, generate};

use crate::clients::{USAGE, root};

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a file would change.
    #[arg(long)]
    check: bool,
}

/// Writes the clients. 0: done; 1: a file would change; 2: not done.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match write(arguments.check) {
        Ok(stale) => ExitCode::from(u8::from(stale)),
        Err(why) => {
            let _closed_pipe = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(USAGE)
        }
    }
}

fn write(check: bool) -> Result<bool, String> {
    let document = root().join(DOCUMENT);
    let text = std::fs::read_to_string(&document).map_err(|why| format!("{}: {why}", document.display()))?;
    let mut stale = false;
    for (file, text) in generate(&text)? {
        let path = root().join(file);
        if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
            continue;
        }
        stale = true;
        let done = if check {
            "is stale: run `cargo xtask control-clients`"
        } else {
            std::fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))?;
            "written"
        };
        let _closed_pipe = writeln!(std::io::stdout(), "{file} {done}");
    }
    Ok(check && stale)
}
