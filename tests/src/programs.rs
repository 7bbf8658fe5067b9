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

/// Builds it with the features the whole workspace selects: alone it would have its dependencies compiled again.
fn build(name: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
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
        // Tests may run under a shifted clock, for which a library is preloaded; compilers stand still under it.
        .env_remove("LD_PRELOAD")
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
