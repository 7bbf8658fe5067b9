//! Shared by `cargo xtask` and the chores: the runner of scenarios, and the repository's files.
//!
//! A first `cargo xtask scenarios` compiles all of it: it must not depend on what only a chore needs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub mod cargo;
pub mod chores;
pub mod clients;
pub mod scenarios;

/// Sends logs to standard error. Logs of a library under test are shown if `RUST_LOG` selects them.
pub fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::OFF.into())
        .from_env_lossy();
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .init();
}
