//! Cargo, as called by the chores, and the programs it built.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use crate::clients;

/// A program or test binary that Cargo built.
pub(crate) struct Executable {
    /// Name of the package.
    pub(crate) package: String,
    /// Name of the target: `fake-apiserver`, `recordings`.
    pub(crate) target: String,
    /// Whether it is a test binary.
    pub(crate) is_test: bool,
    /// Path of the binary.
    pub(crate) path: PathBuf,
    /// Folder of the package.
    pub(crate) folder: PathBuf,
}

/// Profile of a build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// As for tests: nothing that they compiled is compiled again.
    Debug,
    /// Optimized, with the features that the packages select, as users build it.
    Release,
    /// The same and linked by LTO, as it is distributed.
    Packaged,
}

/// The profile of distributed programs.
pub(crate) const PACKAGED: &str = "packaged";

impl Build {
    /// Returns the profile of a benchmark. A smoke run judges nothing, so that it uses the build of the tests.
    pub(crate) fn of_benchmark(smoke: bool) -> Self {
        if smoke { Self::Debug } else { Self::Packaged }
    }
}

/// Builds programs of this workspace, given as package and name, and returns their paths in that order.
///
/// # Errors
/// Cargo cannot run or fails.
pub(crate) fn programs<const N: usize>(
    build: Build,
    wanted: [(&str, &str); N],
) -> Result<[PathBuf; N], String> {
    let mut cargo = cargo();
    cargo.arg("build").current_dir(clients::root());
    match build {
        Build::Debug => cargo.arg("--workspace"),
        Build::Release | Build::Packaged => cargo
            .args([
                "--profile",
                if build == Build::Packaged {
                    PACKAGED
                } else {
                    "release"
                },
            ])
            .args(wanted.iter().flat_map(|(package, _)| ["--package", package])),
    };
    cargo.args(wanted.iter().flat_map(|(_, name)| ["--bin", name]));
    let built = executables(cargo)?;
    let mut found = wanted.map(|_| PathBuf::new());
    for (path, (_, name)) in found.iter_mut().zip(wanted) {
        let executable = built.iter().find(|built| built.target == name && !built.is_test);
        *path = executable
            .map(|built| built.path.clone())
            .ok_or_else(|| format!("cargo built no {name}"))?;
    }
    Ok(found)
}

/// Runs a built program to its end; returns its exit code, or 3 if it has none or cannot run.
pub(crate) fn run(program: &Path, command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            ExitCode::from(code.unwrap_or(3))
        }
        Err(problem) => {
            eprintln!("bench: cannot run {}: {problem}", program.display());
            ExitCode::from(3)
        }
    }
}

/// Returns a Cargo command that reads no input and prints errors here.
pub(crate) fn cargo() -> Command {
    let mut cargo = xtask::cargo::cargo();
    cargo.stdin(Stdio::null()).stderr(Stdio::inherit());
    cargo
}

/// Runs a Cargo command that builds, and returns all executables it built.
///
/// # Errors
/// Cargo cannot run or fails; it has printed the error.
pub(crate) fn executables(mut cargo: Command) -> Result<Vec<Executable>, String> {
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let output = cargo.output().map_err(|why| format!("cannot run cargo: {why}"))?;
    if !output.status.success() {
        return Err(format!("the build failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| executable(&message)).collect())
}

/// Returns the executable that a message of Cargo announces.
fn executable(message: &Value) -> Option<Executable> {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let folder = Path::new(text("/manifest_path")?).parent()?;
    Some(Executable {
        // `path+file:///…/tests#0.1.0`, or `…/command#fake-apiserver-cli@0.1.0` if the folder has another name.
        package: package(text("/package_id")?)?.to_owned(),
        target: text("/target/name")?.to_owned(),
        is_test: message.pointer("/profile/test")?.as_bool()?,
        path: PathBuf::from(text("/executable")?),
        folder: folder.to_owned(),
    })
}

/// Returns the name of a package from its id: the part before the version, or the last folder.
fn package(id: &str) -> Option<&str> {
    let (source, named) = id.split_once('#')?;
    match named.split_once('@') {
        Some((name, _)) => Some(name),
        None => source.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_names_whatever_their_folder() {
        assert_eq!(package("path+file:///w/tests#0.1.0"), Some("tests"));
        assert_eq!(
            package("path+file:///w/command#fake-apiserver-cli@0.1.0"),
            Some("fake-apiserver-cli")
        );
        assert_eq!(package("nothing"), None);
    }
}
