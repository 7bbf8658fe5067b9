//! `cargo xtask conformance --outdated`: libraries of `adapters/versions.yaml` that have a newer release.
//!
//! The tools of each language ask their registries. It must not know what is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::versions::{FILE, Versions};

/// Folders whose `pom.xml` names every Java library of the list.
const MAVEN: [&str; 3] = ["adapters/java", "adapters/java/operator-sdk", "e2e/crowd/java"];

/// Asks a registry for the newest version of a library.
type Ask = fn(&str) -> Result<String, String>;

/// Returns a line for each library that is behind, and one for each whose registry does not answer.
///
/// # Errors
/// The list cannot be read.
pub(super) fn outdated(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|why| format!("{FILE}: {why}"))?;
    let Versions {
        go,
        npm,
        pypi,
        maven,
        crates,
    } = Versions::parse(&text)?;
    let mut lines = Vec::new();
    let tools: [(_, Ask); 4] = [
        (go, newest_module),
        (npm, newest_package),
        (pypi, newest_distribution),
        (crates, newest_crate),
    ];
    for (libraries, newest) in tools {
        for (name, used) in libraries {
            match (newest(&name), used.first()) {
                (Ok(newest), Some(used)) if newest != *used => {
                    lines.push(format!("{name} {used}, newest {newest}"));
                }
                (Ok(_), _) => {}
                (Err(why), _) => lines.push(format!("{name}: not compared: {why}")),
            }
        }
    }
    let mut newer = BTreeMap::new();
    for folder in MAVEN {
        match newer_artifacts(&root.join(folder)) {
            Ok(found) => newer.extend(found),
            Err(why) => lines.push(format!("{folder}: not compared: {why}")),
        }
    }
    for (name, used) in maven {
        if let (Some(newest), Some(used)) = (newer.get(&name), used.first()) {
            lines.push(format!("{name} {used}, newest {newest}"));
        }
    }
    Ok(lines)
}

fn newest_module(name: &str) -> Result<String, String> {
    let latest = format!("{name}@latest");
    let printed = output(Command::new("go").args(["list", "-m", "-f", "{{.Version}}", &latest]))?;
    Ok(printed.trim().to_owned())
}

fn newest_package(name: &str) -> Result<String, String> {
    let printed = output(Command::new("npm").args(["view", name, "version"]))?;
    Ok(printed.trim().to_owned())
}

fn newest_distribution(name: &str) -> Result<String, String> {
    let printed = output(Command::new("python3").args(["-m", "pip", "index", "versions", name]))?;
    in_parentheses(&printed).ok_or_else(|| "pip prints no version".to_owned())
}

/// Returns `1.2` of pip's first line, `name (1.2)`.
fn in_parentheses(printed: &str) -> Option<String> {
    let (_, rest) = printed.lines().next()?.split_once('(')?;
    Some(rest.split_once(')')?.0.to_owned())
}

fn newest_crate(name: &str) -> Result<String, String> {
    let printed = output(Command::new("cargo").args(["info", "--quiet", name]))?;
    latest(&printed).ok_or_else(|| "cargo prints no version".to_owned())
}

/// Returns `1.2` of the line `version: 1.2`, or of `version: 1.1 (latest 1.2)`, which is for a crate of a workspace.
fn latest(printed: &str) -> Option<String> {
    let line = printed.lines().find_map(|line| line.strip_prefix("version: "))?;
    let version = line.split_once("(latest ").map_or(line, |(_, latest)| latest);
    Some(version.split([' ', ')']).next()?.to_owned())
}

/// Returns the dependencies of a `pom.xml` that have a newer version, with it.
fn newer_artifacts(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let goal = "versions:display-dependency-updates";
    let printed = output(
        Command::new("mvn")
            .args(["--batch-mode", goal])
            .current_dir(folder),
    )?;
    Ok(arrows(&printed))
}

/// Returns the names and newest versions of lines `[INFO]   NAME .... 1.1 -> 1.2`; a long name is on the line before.
fn arrows(printed: &str) -> BTreeMap<String, String> {
    let mut name = String::new();
    let mut found = BTreeMap::new();
    for line in printed.lines() {
        let mut words = line.trim_start_matches("[INFO]").split_whitespace();
        if let Some(first) = words.clone().next().filter(|first| first.contains(':')) {
            first.clone_into(&mut name);
        }
        if words.any(|word| word == "->")
            && let Some(newest) = words.next()
        {
            found.insert(name.clone(), newest.to_owned());
        }
    }
    found
}

/// Returns the standard output of a program that succeeds.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, .. } = command.output().map_err(|why| format!("{name}: {why}"))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(format!("{name}: {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_versions_are_read() {
        assert_eq!(
            in_parentheses("kopf (1.45.2)\nAvailable versions: 1.45.2, 1.45.1").unwrap(),
            "1.45.2"
        );
        assert_eq!(latest("kube #k8s\nversion: 5.0.0\n").unwrap(), "5.0.0");
        assert_eq!(
            latest("kube #k8s\nversion: 5.0.0 (latest 5.1.0)\n").unwrap(),
            "5.1.0"
        );
        let printed = "[INFO] The following dependencies in Dependencies have newer versions:\n\
                       [INFO]   io.fabric8:kubernetes-client .......... 8.0.0 -> 8.1.0\n\
                       [INFO]   io.javaoperatorsdk:operator-framework-of-a-long-name ...\n\
                       [INFO]                                             5.2.3 -> 5.3.0\n";
        let found = arrows(printed);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, newest)| (name.as_str(), newest.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("io.fabric8:kubernetes-client", "8.1.0"),
                ("io.javaoperatorsdk:operator-framework-of-a-long-name", "5.3.0")
            ]
        );
    }
}
