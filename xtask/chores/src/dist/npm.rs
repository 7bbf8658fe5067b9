//! npm packages: the JavaScript package, and a package for each platform with nothing but the program.
//!
//! The first names the others as optional dependencies, of which npm installs the one for the platform: no script runs at
//! installation, and nothing is downloaded but packages.

use serde_json::{Map, Value, json};

use super::files::{Entry, tar_gz};
use super::platform::Platform;
use super::release::{Artifact, Release};

const PACKAGE: &str = "packages/javascript";

/// Returns the packages as the files that `npm publish` accepts, that of JavaScript last.
///
/// # Errors
/// `package.json` is not valid, or has another version.
pub(super) fn artifacts(release: &Release) -> Result<Vec<Artifact>, String> {
    let file = format!("{PACKAGE}/package.json");
    let mut main: Map<String, Value> =
        serde_json::from_str(release.text(&file)?).map_err(|why| format!("{file}: {why}"))?;
    if main.get("version").and_then(Value::as_str) != Some(&release.version) {
        return Err(format!("{file}: its version is not {}", release.version));
    }
    let mut artifacts = Vec::new();
    let mut optional = Map::new();
    for binary in &release.binaries {
        let (name, manifest) = of_platform(binary.platform, release, &main);
        optional.insert(name.clone(), json!(release.version));
        let mut entries = release.licences();
        entries.push(Entry::program("bin/fake-apiserver", binary.bytes.clone()));
        entries.push(Entry::file("package.json", pretty(&manifest)));
        entries.push(Entry::file(
            "README.md",
            format!("# {name}\n\nThe program of the package `fake-apiserver` for this platform.\n"),
        ));
        artifacts.push(packed(&name, entries, release)?);
    }
    main.insert("optionalDependencies".to_owned(), Value::Object(optional));
    let published = main
        .get("files")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let is_published = |entry: &Entry| {
        let top = entry.path.split('/').next().unwrap_or_default();
        entry.path == "README.md" || published.iter().any(|folder| folder.as_str() == Some(top))
    };
    let mut entries: Vec<Entry> = release.folder(PACKAGE).into_iter().filter(is_published).collect();
    for entry in entries.iter_mut().filter(|entry| entry.path.starts_with("bin/")) {
        entry.mode = 0o755;
    }
    entries.extend(
        release
            .licences()
            .into_iter()
            .filter(|entry| entry.path == "LICENSE"),
    );
    entries.push(Entry::file("package.json", pretty(&Value::Object(main))));
    artifacts.push(packed("fake-apiserver", entries, release)?);
    Ok(artifacts)
}

/// Returns the name and the manifest of the package with the program for a platform.
fn of_platform(platform: &Platform, release: &Release, main: &Map<String, Value>) -> (String, Value) {
    let (system, processor) = platform.npm;
    let name = format!("@fake-apiserver/{system}-{processor}");
    let manifest = json!({
        "name": name,
        "version": release.version,
        "description": format!("fake-apiserver for {system} {processor}"),
        "license": main.get("license"),
        "repository": main.get("repository"),
        "engines": main.get("engines"),
        "os": [system],
        "cpu": [processor],
        // The program is run where it is: Yarn would leave it in an archive.
        "preferUnplugged": true,
    });
    (name, manifest)
}

/// Returns a package under the name that `npm pack` gives it.
fn packed(name: &str, entries: Vec<Entry>, release: &Release) -> Result<Artifact, String> {
    let entries: Vec<Entry> = entries.iter().map(|entry| entry.below("package")).collect();
    let file = name.trim_start_matches('@').replace('/', "-");
    Ok(Artifact::new(
        format!("npm-{file}-{}.tgz", release.version),
        tar_gz(&entries, release.style)?,
    ))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::dist::release::samples;

    fn manifest(artifact: &Artifact) -> Value {
        let mut read = ::tar::Archive::new(flate2::read::GzDecoder::new(&artifact.bytes[..]));
        let mut entries = read.entries().unwrap().map(Result::unwrap);
        let mut found = entries
            .find(|entry| entry.path_bytes().ends_with(b"/package.json"))
            .unwrap();
        let mut text = String::new();
        found.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_package_depends_on_one_for_each_platform() {
        let artifacts = artifacts(&samples::release()).unwrap();
        let paths: Vec<&str> = artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "npm-fake-apiserver-linux-x64-0.1.0.tgz",
                "npm-fake-apiserver-linux-arm64-0.1.0.tgz",
                "npm-fake-apiserver-0.1.0.tgz"
            ]
        );
        assert_eq!(
            manifest(&artifacts[2])["optionalDependencies"],
            json!({"@fake-apiserver/linux-x64": "0.1.0", "@fake-apiserver/linux-arm64": "0.1.0"})
        );
        let platform = manifest(&artifacts[1]);
        assert_eq!(
            (&platform["os"], &platform["cpu"]),
            (&json!(["linux"]), &json!(["arm64"]))
        );
    }
}
