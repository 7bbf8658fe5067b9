//! `cargo xtask conformance --outdated`: libraries of the adapters and test programs that have a newer release.
//!
//! The tools of each language ask their registries. Only direct dependencies are listed. It must not know what is measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Folders with a manifest, and the tool that reads it.
const MANIFESTS: [(&str, Tool); 9] = [
    ("adapters/go", Tool::Go),
    ("e2e/clients/go", Tool::Go),
    ("e2e/crowd/go", Tool::Go),
    ("e2e/envtest", Tool::Go),
    ("bench/peers/client-go", Tool::Go),
    ("adapters/javascript", Tool::Npm),
    ("e2e/crowd/javascript", Tool::Npm),
    ("adapters/python", Tool::Pip),
    (".", Tool::Cargo),
];

#[derive(Clone, Copy)]
enum Tool {
    Go,
    Npm,
    Pip,
    Cargo,
}

/// Crates that connect to an apiserver or have its types.
const CRATES: [&str; 5] = ["kube", "kube-client", "kube-core", "kube-runtime", "k8s-openapi"];

/// Returns a line for each library that is behind, and one for each manifest that cannot be read.
pub(super) fn outdated(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for (folder, tool) in MANIFESTS {
        match tool.behind(root, &root.join(folder)) {
            Ok(behind) => lines.extend(
                behind
                    .into_iter()
                    .map(|(name, used, newest)| format!("{folder}: {name} {used}, newest {newest}")),
            ),
            Err(why) => lines.push(format!("{folder}: not compared: {why}")),
        }
    }
    lines
}

/// Name, used version, newest version.
type Behind = (String, String, String);

impl Tool {
    fn behind(self, root: &Path, folder: &Path) -> Result<Vec<Behind>, String> {
        match self {
            Self::Go => {
                let row =
                    "{{if and .Update (not .Indirect)}}{{.Path}} {{.Version}} {{.Update.Version}}{{end}}";
                let printed = output(
                    Command::new("go").args(["list", "-m", "-u", "-f", row, "all"]),
                    folder,
                )?;
                Ok(words(&printed))
            }
            Self::Npm => {
                // It exits with 1 if anything is behind.
                let ran = run(Command::new("npm").args(["outdated", "--json"]), folder)?;
                let packages: Value =
                    serde_json::from_slice(&ran.stdout).map_err(|why| format!("npm: {why}"))?;
                let packages = packages.as_object().into_iter().flatten();
                let behind =
                    packages.map(|(name, of)| (name.clone(), text(of, "wanted"), text(of, "latest")));
                Ok(behind.filter(|(_, used, newest)| used != newest).collect())
            }
            Self::Pip => {
                let python: PathBuf = root.join("target/adapters/python/environment/bin/python");
                // Absolute, because it runs in another folder; its link must not be followed.
                let python = std::path::absolute(&python).map_err(|why| why.to_string())?;
                if !python.exists() {
                    return Err("the adapters for Python are not built".to_owned());
                }
                let list = [
                    "-m",
                    "pip",
                    "list",
                    "--outdated",
                    "--not-required",
                    "--format",
                    "json",
                ];
                let printed = output(Command::new(python).args(list), folder)?;
                let packages: Vec<Value> =
                    serde_json::from_str(&printed).map_err(|why| format!("pip: {why}"))?;
                let behind = packages
                    .iter()
                    .map(|of| (text(of, "name"), text(of, "version"), text(of, "latest_version")));
                let is_tool = |name: &str| ["pip", "setuptools"].contains(&name);
                Ok(behind.filter(|(name, ..)| !is_tool(name)).collect())
            }
            Self::Cargo => {
                let ran = run(
                    Command::new("cargo").args(["update", "--dry-run", "--verbose"]),
                    folder,
                )?;
                Ok(available(&String::from_utf8_lossy(&ran.stderr)))
            }
        }
    }
}

/// Returns the crates of `Unchanged NAME vUSED (available: vNEWEST)` and `Updating NAME vUSED -> vNEWEST`.
fn available(printed: &str) -> Vec<Behind> {
    let rows = printed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let what = words.next()?;
        let (name, used) = (words.next()?, words.next()?);
        let newest = match what {
            "Unchanged" => line.split_once("(available: ")?.1.split([',', ')']).next()?,
            "Updating" => line.split_once("-> ")?.1.split_whitespace().next()?,
            _ => return None,
        };
        CRATES
            .contains(&name)
            .then(|| (name.to_owned(), used.to_owned(), newest.to_owned()))
    });
    rows.collect()
}

/// Returns the lines of three words.
fn words(printed: &str) -> Vec<Behind> {
    let rows = printed.lines().filter_map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.next()?, words.next()?))
    });
    rows.collect()
}

/// Returns the standard output of a program that succeeds.
fn output(command: &mut Command, folder: &Path) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = run(command, folder)?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => Err(format!("{name}: {}", ran.status)),
    }
}

fn run(command: &mut Command, folder: &Path) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.current_dir(folder).output();
    ran.map_err(|why| format!("{name}: {why}"))
}

/// Returns a text of a package; empty if it has none.
fn text(package: &Value, field: &str) -> String {
    package[field].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_are_behind_are_read() {
        let printed = "    Updating crates index\n     Locking 0 packages\n   Unchanged kube v3.1.0 (available: v4.0.0)\n   \
                       Unchanged serde v1.0.1 (available: v1.0.2)\n    Updating k8s-openapi v0.27.0 -> v0.27.1\n";
        let row =
            |name: &str, used: &str, newest: &str| (name.to_owned(), used.to_owned(), newest.to_owned());
        assert_eq!(
            available(printed),
            [
                row("kube", "v3.1.0", "v4.0.0"),
                row("k8s-openapi", "v0.27.0", "v0.27.1")
            ]
        );
    }
}
