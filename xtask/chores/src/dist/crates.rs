//! The packages for crates.io, in the order in which they have to be published: a copy of the repository gets the names that are
//! free there (`deploy/registry-names`), and `cargo package` packs it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::read::{listed, output};
use super::release::Artifact;
use crate::cargo::cargo;

/// Packs the crates. `work`: a folder for the copy.
///
/// # Errors
/// The copy cannot be written, or Cargo fails.
pub(super) fn artifacts(root: &Path, work: &Path) -> Result<Vec<Artifact>, String> {
    let copy = work.join("crates");
    copied(root, &copy)?;
    output(Command::new(copy.join("deploy/registry-names")).current_dir(&copy))?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let printed = output(metadata.current_dir(&copy))?;
    let metadata: Value = serde_json::from_str(&printed).map_err(|why| format!("cargo metadata: {why}"))?;
    let order = order(&metadata);
    let target = work.join("crates-target");
    let mut package = cargo();
    // `cargo publish --dry-run` compiles each from its package; that takes as long as a build.
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    package.args(order.iter().flat_map(|(name, _)| ["--package", name]));
    output(package.env("CARGO_TARGET_DIR", &target).current_dir(&copy))?;
    let mut artifacts = Vec::new();
    for (name, version) in &order {
        let file = format!("{name}-{version}.crate");
        let path = target.join("package").join(&file);
        let bytes = std::fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        artifacts.push(Artifact::new(format!("crates/{file}"), bytes));
    }
    let lines: Vec<String> = order
        .iter()
        .map(|(name, version)| format!("{name}-{version}.crate\n"))
        .collect();
    artifacts.push(Artifact::new("crates/ORDER", lines.concat()));
    Ok(artifacts)
}

/// Returns name and version of the packages that are published, each after those it depends on.
fn order(metadata: &Value) -> Vec<(String, String)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published = packages.filter(|package| package["publish"].is_null());
    let mut left: BTreeMap<&str, &Value> = published
        .filter_map(|package| Some((package["name"].as_str()?, package)))
        .collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let depends = |package: &Value| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            // A published package has no development dependencies without a version.
            let mut needed = dependencies
                .filter(|one| one["kind"] != "dev")
                .filter_map(|one| one["name"].as_str());
            needed.any(|name| left.contains_key(name))
        };
        let ready: BTreeSet<&str> = left
            .iter()
            .filter(|(_, package)| !depends(package))
            .map(|(name, _)| *name)
            .collect();
        if ready.is_empty() {
            // Cargo rejects cycles, and prints them better.
            ordered.extend(left.iter().map(|(name, package)| (*name, *package)));
            break;
        }
        ordered.extend(ready.iter().filter_map(|name| Some((*name, left.remove(name)?))));
    }
    let named = ordered.into_iter().map(|(name, package)| {
        (
            name.to_owned(),
            package["version"].as_str().unwrap_or_default().to_owned(),
        )
    });
    named.collect()
}

/// Copies the files of the repository that Git does not ignore. Links stay links.
fn copied(root: &Path, copy: &Path) -> Result<(), String> {
    let failed = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
    if copy.exists() {
        std::fs::remove_dir_all(copy).map_err(|why| failed(copy, why))?;
    }
    for path in listed(root, &["."])? {
        let (from, to) = (root.join(&path), copy.join(&path));
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).map_err(|why| failed(folder, why))?;
        }
        let copied = match std::fs::read_link(&from) {
            Ok(aim) => std::os::unix::fs::symlink(aim, &to),
            Err(_) => std::fs::copy(&from, &to).map(drop),
        };
        copied.map_err(|why| failed(&from, why))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_is_after_those_it_depends_on() {
        let package = |name: &str, on: &[&str], kind: Value, publish: Value| {
            let on: Vec<Value> = on
                .iter()
                .map(|name| json!({"name": name, "kind": kind}))
                .collect();
            json!({"name": name, "version": "1.0.0", "publish": publish, "dependencies": on})
        };
        let metadata = json!({"packages": [
            package("a", &["b", "serde"], Value::Null, Value::Null),
            package("b", &["c"], Value::Null, Value::Null),
            package("c", &["a"], json!("dev"), Value::Null),
            package("own", &[], Value::Null, json!([])),
        ]});
        let names: Vec<String> = order(&metadata).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["c", "b", "a"]);
    }
}
