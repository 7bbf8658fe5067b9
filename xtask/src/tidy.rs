//! The rules of the house that the compiler does not know: the import order of crates and modules, that a core stays free
//! of the edge's crates, that every source file opens with its reason, that nothing committed names one machine.

mod modules;
mod phrases;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A crate, whether it is looked at without its default features, and what it must not depend on, however indirectly.
/// What stands below it in [`modules::ORDER`] is forbidden as well.
const FORBIDDEN: [(&str, bool, &[&str]); 13] = [
    ("apimachinery", false, EDGE),
    ("trace", false, EDGE),
    (
        "watchcache",
        false,
        &["tokio", "hyper", "hyper-util", "http", "kube-client", "trace"],
    ),
    ("builtin-kinds", false, EDGE),
    ("scenario", false, EDGE),
    (
        "judge",
        false,
        &["tokio", "hyper", "hyper-util", "kube-client", "fake-apiserver"],
    ),
    ("fake-apiserver", true, EDGE),
    ("fake-apiserver", false, &["kube-client", "kube-runtime"]),
    ("fake-apiserver-testing", false, &["kube-runtime"]),
    ("fake-apiserver-cli", false, &["kube-client", "k8s-openapi"]),
    (
        "watcher",
        true,
        &["tokio", "hyper", "hyper-util", "kube-client", "fake-apiserver"],
    ),
    ("conformance", false, &["watcher", "kube-runtime"]),
    ("sweep", false, &["watcher", "kube-runtime"]),
];

/// What no core may depend on.
const EDGE: &[&str] = &["tokio", "hyper", "hyper-util", "kube-client"];

/// Text that names one machine and not the project.
const MACHINE: [&str; 3] = ["/root/", "/home/", "/Users/"];

/// Runs every check and prints what is wrong. Exit code 0: nothing; 1: something; 2: a check could not run.
pub(crate) fn run() -> ExitCode {
    match checks() {
        Err(problem) => {
            eprintln!("tidy: {problem}");
            ExitCode::from(2)
        }
        Ok(found) if found.is_empty() => ExitCode::SUCCESS,
        Ok(found) => {
            for finding in &found {
                eprintln!("tidy: {finding}");
            }
            ExitCode::FAILURE
        }
    }
}

fn checks() -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (nth, (name, folder)) in modules::ORDER.into_iter().enumerate() {
        let dependencies = dependencies(name, false)?;
        for (below, _) in &modules::ORDER[nth + 1..] {
            if dependencies.contains(*below) {
                found.push(format!(
                    "{name} must not depend on {below}, which stands below it"
                ));
            }
        }
        found.extend(modules::wrong(name, folder)?);
    }
    for (name, bare, forbidden) in FORBIDDEN {
        let dependencies = dependencies(name, bare)?;
        let features = if bare { " without its default features" } else { "" };
        for other in forbidden.iter().filter(|other| dependencies.contains(**other)) {
            found.push(format!("{name}{features} must not depend on {other}"));
        }
    }
    found.extend(features_apart()?);
    for file in tracked_files()? {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        if file.ends_with(".rs") && !text.starts_with("//!") {
            found.push(format!(
                "{file}:1: a source file opens with `//!`: why it exists and what it must not know"
            ));
        }
        found.extend(phrases::found(&file, &text));
        if file == "xtask/src/tidy.rs" {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(path) = MACHINE.iter().find(|path| line.contains(**path)) {
                found.push(format!(
                    "{file}:{}: names a path of one machine ({path})",
                    number + 1
                ));
            }
        }
    }
    Ok(found)
}

/// The dependencies that `cargo xtask` compiles with other features than `cargo test --workspace` does: twice, then, and all
/// that depends on them.
fn features_apart() -> Result<Vec<String>, String> {
    let of = |edges: &str, packages: &[&str]| -> Result<BTreeSet<String>, String> {
        let arguments = [
            "tree",
            "--quiet",
            "--prefix",
            "none",
            "--format",
            "{p} with {f}",
            "--edges",
            edges,
        ];
        let tree = output("cargo", &[&arguments, packages].concat())?;
        Ok(tree
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned())
            .collect())
    };
    let all = of("normal,build,dev", &["--workspace"])?;
    let ours = of("normal,build", &["--package", "xtask"])?;
    Ok(ours
        .difference(&all)
        .map(|apart| {
            format!("xtask/Cargo.toml: {apart}: the workspace and its tests select other features; select them there as well")
        })
        .collect())
}

fn dependencies(name: &str, bare: bool) -> Result<BTreeSet<String>, String> {
    let mut arguments = vec![
        "tree",
        "--quiet",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--package",
        name,
    ];
    if bare {
        arguments.push("--no-default-features");
    }
    let tree = output("cargo", &arguments)?;
    let names: BTreeSet<String> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    // A misspelt crate would depend on nothing and pass.
    if names.contains(name) {
        Ok(names)
    } else {
        Err(format!("`cargo tree` does not know {name}"))
    }
}

fn tracked_files() -> Result<Vec<String>, String> {
    let files = output("git", &["ls-files"])?;
    Ok(files
        .lines()
        .filter(|file| Path::new(file).is_file())
        .map(str::to_owned)
        .collect())
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let run = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|problem| format!("cannot run {program}: {problem}"))?;
    if !run.status.success() {
        return Err(format!(
            "{program} {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&run.stderr)
        ));
    }
    String::from_utf8(run.stdout).map_err(|_| format!("{program} does not speak UTF-8"))
}
