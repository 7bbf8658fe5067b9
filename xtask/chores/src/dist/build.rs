//! Builds the program for a platform: static for Linux, by cargo-zigbuild, whose C compiler is the same for every processor and
//! on every machine. Programs of macOS are built on macOS, and packaged by `--binary`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::Platform;
use super::read::output;
use crate::cargo::PACKAGED;

/// The line that installs what a build needs. Versions are pinned, because the C compiler is part of the result.
pub(super) const TOOLS: &str = "pip install ziglang==0.17.1 cargo-zigbuild==0.24.1";

/// Builds the program and returns its path.
///
/// # Errors
/// A tool is missing (the error has the line that installs it), or the build fails; Cargo has printed why.
pub(super) fn program(platform: &Platform, root: &Path) -> Result<PathBuf, String> {
    if platform.go.0 != "linux" {
        let target = platform.target;
        return Err(format!(
            "{target} is built on macOS: cargo build --locked --profile {PACKAGED} --target {target} --package fake-apiserver-cli; \
             then name the file by --binary"
        ));
    }
    let missing = |what: &str, line: &str| format!("{what} is missing: {line}");
    output(Command::new("cargo-zigbuild").arg("--version"))
        .map_err(|why| missing("cargo-zigbuild", &format!("{TOOLS} ({why})")))?;
    // It finds the compiler as `zig`, or as a module of a Python on PATH.
    let compilers: [&[&str]; 2] = [&["zig", "version"], &["python3", "-m", "ziglang", "version"]];
    let compiles = |words: &[&str]| output(Command::new(words[0]).args(&words[1..])).is_ok();
    if !compilers.into_iter().any(compiles) {
        return Err(missing("zig, the C compiler", TOOLS));
    }
    let folder = |path: &str| {
        output(Command::new("rustc").args(["--print", path])).map(|text| PathBuf::from(text.trim()))
    };
    let standard = folder("sysroot")?.join("lib/rustlib").join(platform.target);
    if !standard.exists() {
        let line = format!("rustup target add {}", platform.target);
        return Err(missing(
            &format!("the standard library for {}", platform.target),
            &line,
        ));
    }
    let target = target_folder(root);
    let mut cargo = crate::cargo::cargo();
    cargo.args([
        "zigbuild",
        "--locked",
        "--profile",
        PACKAGED,
        "--target",
        platform.target,
    ]);
    cargo
        .args(["--package", "fake-apiserver-cli", "--bin", "fake-apiserver"])
        .current_dir(root);
    cargo
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_INCREMENTAL", "0");
    // The text of a panic has the path of its source.
    let renamed = renamed(root, &target);
    let flags = { renamed.iter() }.map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let flags: Vec<String> = flags.collect();
    cargo
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    let status = cargo.status().map_err(|why| format!("cannot run cargo: {why}"))?;
    if !status.success() {
        return Err(format!("the build for {} failed: {status}", platform.target));
    }
    let program = target.join(platform.target).join(PACKAGED).join("fake-apiserver");
    let bytes = std::fs::read(&program).map_err(|why| format!("{}: {why}", program.display()))?;
    for (folder, _) in &renamed {
        if memchr::memmem::find(&bytes, folder.as_bytes()).is_some() {
            return Err(format!(
                "{} has the path {folder}: another machine would build other bytes",
                program.display()
            ));
        }
    }
    Ok(program)
}

/// Returns the folders of this machine whose names would be in the program, and their substitutes. Of several that match, the last
/// counts: the target folder may be in the repository.
fn renamed(root: &Path, target: &Path) -> Vec<(String, &'static str)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.map(|home| (home.display().to_string(), "/cargo"));
    let source = (root.display().to_string(), "/source");
    let target = (target.display().to_string(), "/target");
    [Some(source), home, Some(target)].into_iter().flatten().collect()
}

/// Returns the folder that Cargo builds into.
pub(super) fn target_folder(root: &Path) -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.map_or_else(|| root.join("target"), |named| root.join(named))
}
