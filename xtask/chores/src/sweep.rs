//! `cargo xtask sweep`: builds the package `sweep-command` optimized, and runs the same command in it.

use std::process::{Command, ExitCode};

use sweep_command::Arguments;

use crate::cargo;
use crate::clients::{self, USAGE};

/// Runs the command, in an optimized build where it plays many seeds. Exit codes are those of the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if !cfg!(debug_assertions) || !arguments.needs_optimization() {
        return sweep_command::run(arguments);
    }
    match optimized() {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            eprintln!("sweep: {problem}");
            ExitCode::from(USAGE)
        }
    }
}

fn optimized() -> Result<u8, String> {
    let mut build = cargo::cargo();
    build
        .args([
            "build",
            "--profile",
            "sweep",
            "--package",
            "sweep-command",
            "--bin",
            "sweep",
        ])
        .current_dir(clients::root());
    let built = cargo::executables(build)?;
    let program = built
        .iter()
        .find(|built| built.target == "sweep" && !built.is_test)
        .ok_or("cargo built no sweep")?;
    // The words before its options are `chores sweep`.
    let status = Command::new(&program.path)
        .args(std::env::args_os().skip(2))
        .status()
        .map_err(|why| format!("cannot run {}: {why}", program.path.display()))?;
    // Killed by a signal: the exit code of a shell for SIGINT.
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(130))
}
