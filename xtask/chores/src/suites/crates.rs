//! A suite of published crates: their ignored tests, which need a cluster. Sources are copied from Cargo's registry at
//! the versions of the pinned manifest, and built in a separate workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::suites::Suite;
use e2e::suites::report::{self, Outcomes};
use serde::Deserialize;

use super::running::listened;
use super::target::Target;
use crate::cargo;

/// Time limit of a test binary. On a server without containers those of kube-rs take 35 s.
const TIME_LIMIT: Duration = Duration::from_mins(5);

/// Marker file, written last: the pinned versions that are completely unpacked.
const COMPLETE: &str = "complete";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// Builds the unit tests of `crates` in `folder`. Returns the test binaries in that order.
///
/// # Errors
/// Cargo cannot download or build them.
pub(super) fn build(suite: &Suite, crates: &[&str], folder: &Path) -> Result<Vec<PathBuf>, String> {
    let workspace = folder.join("workspace");
    unpack(suite, crates, &workspace)?;
    let mut cargo = cargo();
    cargo
        .args(["test", "--lib", "--workspace", "--no-run"])
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(folder.join("target"));
    let mut programs: BTreeMap<String, PathBuf> = cargo::executables(cargo)?
        .into_iter()
        .map(|built| (built.target, built.path))
        .collect();
    let mut program = |name: &&str| {
        let program = programs.remove(&name.replace('-', "_"));
        program.ok_or_else(|| format!("cargo built no tests of {name}"))
    };
    crates.iter().map(&mut program).collect()
}

/// Runs the ignored tests of `crates`, built as `programs`. Test names begin with the crate.
///
/// # Errors
/// One does not start, or exits before its tests end.
pub(super) fn run(
    suite: &Suite,
    crates: &[&str],
    programs: &[PathBuf],
    target: &Target,
    folder: &Path,
) -> Result<Outcomes, String> {
    let mut all = Outcomes::new();
    for (name, program) in crates.iter().zip(programs) {
        let mut tests = Command::new(program);
        tests
            .arg("--ignored")
            .env("KUBECONFIG", &target.kubeconfig)
            .current_dir(folder);
        let log = folder.join(format!("{name}.log"));
        let text = listened(suite, tests, &log, Some(TIME_LIMIT))?;
        let outcomes =
            report::libtest(&text).map_err(|why| format!("tests of {name}: {why}; see {}", log.display()))?;
        all.extend(
            outcomes
                .into_iter()
                .map(|(test, outcome)| (format!("{name} {test}"), outcome)),
        );
    }
    Ok(all)
}

/// Copies the crates into `workspace`, unless that was done for these versions: Cargo rebuilds files that are copied
/// again.
fn unpack(suite: &Suite, crates: &[&str], workspace: &Path) -> Result<(), String> {
    let pinned = suite.folder();
    let (lock, manifest, added) = (
        read(&pinned.join("Cargo.lock"))?,
        read(&pinned.join("workspace.toml"))?,
        read(&pinned.join("dev-dependencies.toml"))?,
    );
    let wanted = format!("{lock}{manifest}{added}");
    let complete = workspace.join(COMPLETE);
    if std::fs::read_to_string(&complete).is_ok_and(|unpacked| unpacked == wanted) {
        return Ok(());
    }
    let _was_not_there = std::fs::remove_dir_all(workspace);
    let mut cargo = cargo();
    cargo
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(pinned.join("Cargo.toml"));
    let metadata: Metadata =
        serde_json::from_str(&output(cargo)?).map_err(|why| format!("cargo metadata: {why}"))?;
    for name in crates {
        let package = metadata.packages.iter().find(|package| package.name == *name);
        let from = package.and_then(|package| package.manifest_path.parent());
        let from = from.ok_or_else(|| format!("{} does not pin {name}", pinned.display()))?;
        let to = workspace.join(name);
        copy(&from.join("src"), &to.join("src"))?;
        // Included by doc attributes.
        copy(&from.join("README.md"), &to.join("README.md"))?;
        let own = read(&from.join("Cargo.toml"))?;
        write(&to.join("Cargo.toml"), &format!("{own}{added}"))?;
    }
    write(&workspace.join("Cargo.toml"), &manifest)?;
    write(&workspace.join("Cargo.lock"), &lock)?;
    write(&complete, &wanted)
}

/// Returns a Cargo command that builds these crates in the given folder.
fn cargo() -> Command {
    let mut cargo = cargo::cargo();
    cargo.env_remove("CARGO_TARGET_DIR");
    cargo
}

/// Runs a command to its end and returns its standard output.
fn output(mut command: Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|why| format!("{name}: {why}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{name}: {}", output.status))
    }
}

/// Copies a file or a folder. Cargo's registry is read-only in places; the copy is not.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{}: {why}", from.display());
    if !from.is_dir() {
        let bytes = std::fs::read(from).map_err(failed)?;
        return std::fs::write(to, bytes).map_err(|why| format!("{}: {why}", to.display()));
    }
    std::fs::create_dir_all(to).map_err(|why| format!("{}: {why}", to.display()))?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|why| format!("{}: {why}", file.display()))
}
