//! Rules that the compiler cannot check: the import order of crates and modules, cores without the edge's crates, a
//! header in every source file, no source file outside a target, one crate that writes files, no path of one machine in a commit, one
//! version of a client library, and wording.

mod modules;
mod phrases;
mod unnamed;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::versions;

/// A crate, whether it is checked without its default features, and its forbidden dependencies, direct or not. Crates
/// after it in [`modules::ORDER`] are forbidden as well.
const FORBIDDEN: [(&str, bool, &[&str]); 17] = [
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
    (
        "recording",
        false,
        &["tokio", "hyper", "hyper-util", "kube-client", "fake-apiserver"],
    ),
    ("fake-apiserver", true, EDGE),
    ("fake-apiserver", false, &["kube-client", "kube-runtime"]),
    ("fake-apiserver-testing", false, &["kube-runtime"]),
    // Without `proxy` the command has no client library.
    ("fake-apiserver-cli", true, &["kube-client", "k8s-openapi"]),
    ("fake-apiserver-cli", false, &["kube-runtime"]),
    ("upstream", false, &["kube-runtime"]),
    (
        "watcher",
        true,
        &["tokio", "hyper", "hyper-util", "kube-client", "fake-apiserver"],
    ),
    ("conformance", false, &["watcher", "kube-runtime"]),
    ("sweep", false, &["watcher", "kube-runtime"]),
    // A first `cargo xtask scenarios` compiles all of it.
    (
        "xtask",
        false,
        &["kube-runtime", "tests", "e2e", "sweep", "fidelity", "report"],
    ),
];

/// Forbidden in every core.
const EDGE: &[&str] = &["tokio", "hyper", "hyper-util", "kube-client"];

/// Path prefixes of one machine.
const MACHINE: [&str; 3] = ["/root/", "/home/", "/Users/"];

/// Runs every check and prints the findings. Exit code 0: none; 1: some; 2: a check cannot run.
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
                    "{name} must not depend on {below}, which is after it in the import order"
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
    let tracked = tracked_files()?;
    for file in unnamed_files(&tracked)? {
        found.push(format!(
            "{}: no module names this file, so it is never compiled",
            file.display()
        ));
    }
    found.extend(versions_of_libraries(&tracked)?);
    for file in tracked {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        if file.ends_with(".rs") && !text.starts_with("//!") {
            found.push(format!(
                "{file}:1: a source file opens with `//!`: why it exists and what it must not know"
            ));
        }
        found.extend(phrases::found(&file, &text));
        found.extend(writes::found(&modules::ORDER, &file, &text));
        found.extend(included_from_outside(&file, &text));
        if file == file!() {
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

/// Returns the manifests whose versions of client libraries are not those of `adapters/versions.yaml`.
fn versions_of_libraries(tracked: &[String]) -> Result<Vec<String>, String> {
    let list = std::fs::read_to_string(versions::FILE).map_err(|why| format!("{}: {why}", versions::FILE))?;
    let paths = tracked.iter().map(String::as_str);
    Ok(versions::Versions::parse(&list)?.wrong(paths, |path| std::fs::read_to_string(path).ok()))
}

/// Returns the texts that a source file includes from outside of its package, where they are missing once it is published. A
/// symbolic link in the package is packaged as what it leads to.
fn included_from_outside(file: &str, text: &str) -> Vec<String> {
    let folder =
        { modules::ORDER.iter() }.find_map(|(_, folder)| file.strip_prefix(&format!("{folder}/src/")));
    let Some(path) = folder.filter(|path| !path.contains("tests")) else {
        return Vec::new();
    };
    let above = path.matches('/').count() + 1;
    let lines = text.lines().enumerate();
    let before = std::iter::once("").chain(text.lines());
    let outside = lines.zip(before).filter(|((_, line), before)| {
        let up = "../".repeat(above + 1);
        line.contains(&format!("include_str!(\"{up}")) && !before.contains("cfg(")
    });
    outside
        .map(|((number, _), _)| {
            format!(
                "{file}:{}: includes a file from outside of its package, which cannot be published",
                number + 1
            )
        })
        .collect()
}

/// Returns source files of the workspace's packages that belong to no target.
fn unnamed_files(tracked: &[String]) -> Result<Vec<PathBuf>, String> {
    let text = output(
        "cargo",
        &["metadata", "--quiet", "--no-deps", "--format-version", "1"],
    )?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|problem| format!("cargo metadata: {problem}"))?;
    let workspace = metadata["workspace_root"].as_str().unwrap_or_default();
    let in_workspace = |path: &Value| {
        let path = Path::new(path.as_str().unwrap_or_default());
        path.strip_prefix(workspace).unwrap_or(path).to_owned()
    };
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    let manifests: BTreeSet<PathBuf> = packages()
        .map(|package| in_workspace(&package["manifest_path"]))
        .collect();
    let targets = packages().flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let roots: Vec<PathBuf> = targets.map(|target| in_workspace(&target["src_path"])).collect();
    let mut files = BTreeMap::new();
    for file in tracked.iter().filter(|file| file.ends_with(".rs")) {
        // A file belongs to the nearest manifest's package; other workspaces are skipped.
        let mut folders = Path::new(file).ancestors().skip(1);
        let manifest = folders.find_map(|folder| {
            let manifest = folder.join("Cargo.toml");
            manifest.is_file().then_some(manifest)
        });
        if manifest.is_some_and(|manifest| manifests.contains(&manifest)) {
            let text = std::fs::read_to_string(file).map_err(|problem| format!("{file}: {problem}"))?;
            files.insert(PathBuf::from(file), text);
        }
    }
    unnamed::found(&roots, &files)
}

/// Returns dependencies that `cargo xtask` compiles with other features than `cargo test --workspace`: they, and all
/// that depends on them, would be compiled twice.
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
    let mut apart = Vec::new();
    for (package, manifest) in [
        ("xtask", "xtask/Cargo.toml"),
        ("chores", "xtask/chores/Cargo.toml"),
    ] {
        let ours = of("normal,build", &["--package", package])?;
        // The feature for kube-runtime is not part of the main job.
        let is_ours = |dependency: &&String| !dependency.starts_with("watcher ");
        apart.extend(ours.difference(&all).filter(is_ours).map(|apart| {
            format!("{manifest}: {apart}: the workspace and its tests select other features; select them there as well")
        }));
    }
    Ok(apart)
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
        Err(format!("{name} is not in the output of `cargo tree`"))
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
    String::from_utf8(run.stdout).map_err(|_| format!("the output of {program} is not UTF-8"))
}
