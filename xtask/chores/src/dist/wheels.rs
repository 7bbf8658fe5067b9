//! A wheel for each platform: the Python package and the program as a script, with the metadata of `pyproject.toml`.
//!
//! Formats: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/> and `core-metadata` beside it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::files::{Content, Entry, zip};
use super::release::{Artifact, Release};

const PACKAGE: &str = "packages/python";

#[derive(Deserialize)]
struct Pyproject {
    project: Project,
}

/// The keys of `[project]` that this project uses. A further one is an error, because it would be left out of the wheel.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Project {
    name: String,
    description: String,
    readme: String,
    requires_python: String,
    license: String,
    keywords: Vec<String>,
    classifiers: Vec<String>,
    /// Only `version`, which is that of the workspace.
    dynamic: Vec<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    optional_dependencies: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    urls: BTreeMap<String, String>,
    #[serde(default)]
    entry_points: BTreeMap<String, BTreeMap<String, String>>,
}

/// Returns the wheels.
///
/// # Errors
/// `pyproject.toml` is not valid or has keys that are not known here.
pub(super) fn artifacts(release: &Release) -> Result<Vec<Artifact>, String> {
    let file = format!("{PACKAGE}/pyproject.toml");
    let read: Pyproject = toml::from_str(release.text(&file)?).map_err(|why| format!("{file}: {why}"))?;
    let project = read.project;
    if project.dynamic != ["version"] {
        return Err(format!(
            "{file}: `dynamic` is {:?}: only the version is added here",
            project.dynamic
        ));
    }
    let name = project.name.replace('-', "_");
    let info = format!("{name}-{}.dist-info", release.version);
    let metadata = metadata(
        &project,
        &release.version,
        release.text(&format!("{PACKAGE}/{}", project.readme))?,
    );
    let wheels = release.binaries.iter().map(|binary| {
        let tags = binary.platform.wheel;
        let mut entries = release.folder(&format!("{PACKAGE}/src"));
        let script = format!("{name}-{}.data/scripts/fake-apiserver", release.version);
        entries.push(Entry::program(script, binary.bytes.clone()));
        entries.push(Entry::file(format!("{info}/METADATA"), metadata.clone()));
        entries.push(Entry::file(format!("{info}/WHEEL"), wheel(tags)));
        entries.push(Entry::file(
            format!("{info}/entry_points.txt"),
            entry_points(&project.entry_points),
        ));
        entries.extend(
            release
                .licences()
                .iter()
                .map(|licence| licence.below(&format!("{info}/licenses"))),
        );
        let sbom = release
            .documents
            .iter()
            .find(|entry| entry.path == "sbom.cdx.json");
        entries.extend(sbom.map(|sbom| sbom.below(&format!("{info}/sboms"))));
        let record = Entry::file(format!("{info}/RECORD"), record(&entries, &info));
        entries.push(record);
        let file = format!("{name}-{}-py3-none-{tags}.whl", release.version);
        Ok(Artifact::new(file, zip(&entries, release.style)?))
    });
    wheels.collect()
}

fn wheel(tags: &str) -> String {
    let mut text = "Wheel-Version: 1.0\nGenerator: fake-apiserver-dist\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags.split('.') {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Tag: py3-none-{tag}");
    }
    text
}

fn metadata(project: &Project, version: &str, readme: &str) -> String {
    let mut lines = vec![
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", project.name),
        format!("Version: {version}"),
        format!("Summary: {}", project.description),
        format!("Keywords: {}", project.keywords.join(",")),
    ];
    lines.extend(project.classifiers.iter().map(|one| format!("Classifier: {one}")));
    lines.push(format!("License-Expression: {}", project.license));
    lines.extend(super::release::LICENCES.map(|file| format!("License-File: {file}")));
    lines.push(format!("Requires-Python: {}", project.requires_python));
    lines.extend(
        project
            .dependencies
            .iter()
            .map(|one| format!("Requires-Dist: {one}")),
    );
    for (extra, requirements) in &project.optional_dependencies {
        lines.push(format!("Provides-Extra: {extra}"));
        lines.extend(
            requirements
                .iter()
                .map(|one| format!("Requires-Dist: {one} ; extra == '{extra}'")),
        );
    }
    lines.extend(
        project
            .urls
            .iter()
            .map(|(label, url)| format!("Project-URL: {label}, {url}")),
    );
    lines.push("Description-Content-Type: text/markdown; charset=UTF-8".to_owned());
    format!("{}\n\n{readme}", lines.join("\n"))
}

fn entry_points(groups: &BTreeMap<String, BTreeMap<String, String>>) -> String {
    let group = |(name, points): (&String, &BTreeMap<String, String>)| {
        let points: Vec<String> = points
            .iter()
            .map(|(name, object)| format!("{name} = {object}\n"))
            .collect();
        format!("[{name}]\n{}", points.concat())
    };
    groups.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// Returns the list of files with digests and sizes. Its own line has neither.
fn record(entries: &[Entry], info: &str) -> String {
    let mut text = String::new();
    for entry in entries {
        let Content::File(bytes) = &entry.content else {
            continue;
        };
        let digest = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{},sha256={digest},{}", entry.path, bytes.len());
    }
    let _ = writeln!(text, "{info}/RECORD,,");
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use super::*;
    use crate::dist::release::samples;

    #[test]
    fn a_wheel_has_the_package_the_program_and_its_metadata() {
        let wheels = artifacts(&samples::release()).unwrap();
        assert_eq!(
            wheels[0].path,
            "fake_apiserver-0.1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl"
        );
        let mut read = ::zip::ZipArchive::new(Cursor::new(&wheels[0].bytes)).unwrap();
        let mut text = |path: &str| {
            let mut text = String::new();
            read.by_name(path).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        let script = text("fake_apiserver-0.1.0.data/scripts/fake-apiserver");
        assert_eq!(script, "program for x86_64-unknown-linux-musl");
        let metadata = text("fake_apiserver-0.1.0.dist-info/METADATA");
        assert!(
            metadata.contains("\nRequires-Dist: pytest>=8 ; extra == 'pytest'\n"),
            "{metadata}"
        );
        let points = text("fake_apiserver-0.1.0.dist-info/entry_points.txt");
        assert_eq!(
            points,
            "[pytest11]\nfake_apiserver = fake_apiserver.pytest_plugin\n"
        );
        let record = text("fake_apiserver-0.1.0.dist-info/RECORD");
        assert!(record.contains("fake_apiserver/__init__.py,sha256="), "{record}");
        assert!(record.ends_with("fake_apiserver-0.1.0.dist-info/RECORD,,\n"));
    }

    #[test]
    fn a_digest_is_in_the_alphabet_of_urls_without_padding() {
        assert_eq!(
            record(&[Entry::file("a", "")], "i"),
            "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\ni/RECORD,,\n"
        );
    }
}
