//! The programs of other packages, as tests run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use crate::repository;

/// The programs by name. They belong to other packages, so Cargo builds them for no test; where it put them, it says.
static PROGRAMS: LazyLock<BTreeMap<&str, PathBuf>> = LazyLock::new(|| {
    [("fake-apiserver", "fake-apiserver-cli"), ("xtask", "xtask")]
        .map(|(name, package)| (name, built(package)))
        .into()
});

/// Where a program is, built.
pub fn path(name: &str) -> &'static PathBuf {
    &PROGRAMS[name]
}

/// A program, to be run in the repository.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(path(name));
    command.current_dir(repository::root()).env_remove("RUST_LOG");
    command
}

fn built(package: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build
        .args([
            "build",
            "--quiet",
            "--message-format",
            "json",
            "--package",
            package,
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
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .unwrap_or_else(|| panic!("{package} does not build"))
}
