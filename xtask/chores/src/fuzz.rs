//! `cargo xtask fuzz`: runs every target of `tests/fuzz/` on mutated requests of real clients, with the installed compiler;
//! libFuzzer, which finds more, needs a nightly one (`cargo +nightly fuzz run TARGET`).

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Targets to fuzz [default: all of tests/fuzz/fuzz_targets].
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Number of mutations per target.
    ///
    /// The sequence is the same in every run.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    tries: u64,
}

/// Exit code 0: no panic; 1: a panic, and its input is printed; 2: no such target; 3: the targets cannot be built or
/// run.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let root = clients::root();
    let known = match targets(&root.join("tests/fuzz/fuzz_targets")) {
        Ok(known) => known,
        Err(problem) => {
            eprintln!("fuzz: {problem}");
            return ExitCode::from(3);
        }
    };
    if let Some(unknown) = arguments.targets.iter().find(|name| !known.contains(name)) {
        eprintln!(
            "fuzz: there is no target {unknown}; there are {}",
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    let chosen = if arguments.targets.is_empty() {
        &known
    } else {
        &arguments.targets
    };
    if let Err(problem) = finished(cargo(&root).args(["build", "--quiet", "--bins"])) {
        eprintln!("fuzz: the targets cannot be built: {problem}");
        return ExitCode::from(3);
    }
    let mut code = ExitCode::SUCCESS;
    for name in chosen {
        let tries = arguments.tries.to_string();
        if let Err(problem) = finished(cargo(&root).args(["run", "--quiet", "--bin", name, "--", &tries])) {
            eprintln!("fuzz: {name}: {problem}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Returns the targets: every file is one.
fn targets(folder: &Path) -> Result<Vec<String>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Returns a Cargo command in the fuzz workspace. Dependencies shared with this one are compiled once.
fn cargo(root: &Path) -> Command {
    let mut command = xtask::cargo::cargo();
    command.current_dir(root.join("tests/fuzz")).stdin(Stdio::null());
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        // Relative to the fuzz workspace, in which the command runs.
        command.env("CARGO_TARGET_DIR", Path::new("../../target"));
    }
    command
}

fn finished(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ended with {status}")),
        Err(problem) => Err(format!("cannot run cargo: {problem}")),
    }
}
