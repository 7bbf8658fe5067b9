//! `cargo xtask defects`: generates the page of kube-runtime's defects, and checks the list against both clients.

use std::io::Write as _;
use std::process::ExitCode;

use tests::defects;

use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write docs/kube-runtime-defects.md instead of printing it.
    #[arg(long)]
    write_docs: bool,
}

/// Exit code 0: the list is correct; 1: it is not; 2: the page cannot be written.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let seen = defects::see();
    let wrong = defects::wrong(&seen);
    for line in &wrong {
        let _closed_pipe = writeln!(std::io::stderr(), "{line}");
    }
    let page = defects::page(&seen);
    if !arguments.write_docs {
        let _closed_pipe = std::io::stdout().write_all(page.as_bytes());
    } else if let Err(error) = std::fs::write(clients::root().join(defects::PAGE), page) {
        let _closed_pipe = writeln!(std::io::stderr(), "cannot write {}: {error}", defects::PAGE);
        return ExitCode::from(clients::USAGE);
    }
    if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
