//! `cargo xtask bench watcher`: builds and runs the watcher's benchmark.

use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::cargo::{self, Build};

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

/// Measures. Exit code 0: every limit is met, or the run is not judged; 1: one is exceeded; 3: a program cannot run.
pub(crate) fn watcher(arguments: &Arguments) -> ExitCode {
    let how = Build::of_benchmark(arguments.smoke);
    let program = match cargo::programs(how, [("bench-watcher", "bench-watcher")]) {
        Ok([program]) => program,
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
    cargo::run(&program, &mut command)
}
