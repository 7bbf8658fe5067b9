//! `cargo xtask bench watcher`: builds the bench of the watcher, which knows how to measure, and lets it.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum;

use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only these rows, e.g. W1,L2.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes and one pair; results are not judged.
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// Measures. Exit code 0: every must is met, or nothing is judged; 1: one is not; 3: something could not run.
pub(crate) fn watcher(arguments: &Arguments) -> ExitCode {
    // A smoke run judges nothing: what the tests built will do.
    let program = match build(!arguments.smoke) {
        Ok(program) => program,
        Err(problem) => {
            eprintln!("bench: {problem}");
            return ExitCode::from(3);
        }
    };
    let format = match arguments.format {
        Format::Human => "human",
        Format::Json => "json",
    };
    let mut command = Command::new(&program);
    command.args(["measure", "--format", format]);
    if !arguments.only.is_empty() {
        command.args(["--only", &arguments.only.join(",")]);
    }
    command.args(arguments.smoke.then_some("--smoke"));
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            ExitCode::from(code.unwrap_or(3))
        }
        Err(problem) => {
            eprintln!("bench: cannot run {}: {problem}", program.display());
            ExitCode::from(3)
        }
    }
}

fn build(release: bool) -> Result<PathBuf, String> {
    let output = Command::new("cargo")
        .args(["build", "--message-format", "json-render-diagnostics"])
        .args(release.then_some("--release"))
        .args(["-p", "bench-watcher"])
        .current_dir(clients::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|problem| format!("cannot run cargo: {problem}"))?;
    if !output.status.success() {
        return Err("the build failed".to_owned());
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| {
            let is_it = message.pointer("/target/name")? == "bench-watcher";
            let program = message.get("executable")?.as_str()?;
            is_it.then(|| PathBuf::from(program))
        })
        .ok_or_else(|| "cargo built no bench-watcher".to_owned())
}
