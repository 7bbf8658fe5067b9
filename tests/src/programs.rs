//! Programs of other packages, as run by tests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

use crate::repository;

/// Returns the path of a program, building it on first use. It belongs to another package, so Cargo does not build it
/// for tests.
///
/// # Panics
/// If the build fails; Cargo has printed the error.
pub fn path(name: &str) -> PathBuf {
    static BUILT: LazyLock<Mutex<BTreeMap<String, PathBuf>>> = LazyLock::new(Mutex::default);
    // Locked during the build, so that concurrent tests do not build at the same time.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built
        .entry(name.to_owned())
        .or_insert_with(|| build(name))
        .clone()
}

/// Returns a command for a program, run in the repository.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(path(name));
    command.current_dir(repository::root()).env_remove("RUST_LOG");
    command
}

/// Returns a Cargo command without the variables that make it build differently than in a shell.
///
/// A program run by Cargo inherits the variables of its package, and the build scripts of some dependencies read them
/// (ring's does): a Cargo that inherits them recompiles such a dependency, and everything that depends on it.
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_A_PACKAGE.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    // Compilers hang under a shifted clock, for which a library is preloaded.
    cargo.env_remove("LD_PRELOAD");
    cargo
}

/// Prefixes of the variables that Cargo sets for a package.
const OF_A_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// Builds the program with the features of the whole workspace: otherwise its dependencies would be recompiled.
fn build(name: &str) -> PathBuf {
    let mut build = cargo();
    build
        .args([
            "build",
            "--quiet",
            "--message-format",
            "json",
            "--workspace",
            "--bin",
            name,
        ])
        .current_dir(repository::root())
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let built = build.output().expect("Cargo ran these tests, it runs");
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| {
            let is_it = message.pointer("/target/name")? == name;
            let program = message.get("executable")?.as_str()?;
            is_it.then(|| PathBuf::from(program))
        })
        .unwrap_or_else(|| panic!("{name} does not build"))
}
