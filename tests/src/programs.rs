//! Programs of other packages, as run by tests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;
pub use xtask::cargo::{as_in_a_shell, cargo};

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
