//! The programs of other packages, as tests run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

use crate::repository;

/// Where a program is, built the first time it is asked for. It belongs to another package, so Cargo builds it for no test.
///
/// # Panics
/// If Cargo does not build it; Cargo has said why.
pub fn path(name: &str) -> PathBuf {
    static BUILT: LazyLock<Mutex<BTreeMap<String, PathBuf>>> = LazyLock::new(Mutex::default);
    // The lock is held over the build: tests that run at once do not build at once.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built
        .entry(name.to_owned())
        .or_insert_with(|| build(name))
        .clone()
}

/// A program, to be run in the repository.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(path(name));
    command.current_dir(repository::root()).env_remove("RUST_LOG");
    command
}

/// Cargo, without what makes it build otherwise here than in a shell.
///
/// A program that Cargo runs inherits variables of its package, and the build scripts of some dependencies look at those
/// (ring's does): a Cargo that inherits them compiles such a dependency, and all that depends on it, again.
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_A_PACKAGE.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    // Compilers stand still under a shifted clock, for which a library is preloaded.
    cargo.env_remove("LD_PRELOAD");
    cargo
}

/// Beginnings of the variables that Cargo sets for a package.
const OF_A_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// Builds it with the features the whole workspace selects: alone it would have its dependencies compiled again.
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
