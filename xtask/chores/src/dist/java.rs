//! The Java artefacts in the layout of a Maven repository: the JUnit 5 extension, and a jar for each platform with nothing but the
//! program, which the extension unpacks.
//!
//! The extension depends on all of these jars, so that a project that is built on one platform is tested on another.

use super::files::{Entry, sha256, zip};
use super::maven::Compiled;
use super::platform::Platform;
use super::release::{Artifact, Release};

/// Folder of the extension.
pub(super) const PACKAGE: &str = "packages/java/junit5";

const GROUP: &str = "io.github.fake-apiserver";
const EXTENSION: &str = "fake-apiserver-junit5";

/// Folder of the program in a jar; the extension looks for it there.
const RESOURCES: &str = "io/github/fakeapiserver/binary";

/// Returns the files of the Maven repository.
///
/// # Errors
/// The `pom.xml` has another version or no dependencies.
pub(super) fn artifacts(release: &Release, compiled: &Compiled) -> Result<Vec<Artifact>, String> {
    let pom = format!("{PACKAGE}/pom.xml");
    let text = release.text(&pom)?;
    let mut artifacts = Vec::new();
    let mut dependencies = String::new();
    for binary in &release.binaries {
        let id = format!("fake-apiserver-binary-{}", binary.platform.java);
        let folder = format!("{RESOURCES}/{}", binary.platform.java);
        let digest = sha256(&binary.bytes);
        let mut entries = vec![
            Entry::program(format!("{folder}/fake-apiserver"), binary.bytes.clone()),
            // The name of the unpacked file: it is found without reading the program.
            Entry::file(format!("{folder}/fake-apiserver.sha256"), digest),
        ];
        entries.extend(
            release
                .licences()
                .iter()
                .map(|entry| entry.below(&format!("META-INF/{id}"))),
        );
        artifacts.push(file(release, &id, ".jar", jar(entries, release)?));
        artifacts.push(file(
            release,
            &id,
            ".pom",
            pom_of_binary(text, &id, binary.platform, &release.version)?,
        ));
        dependencies += &format!(
            "    <dependency>\n      <groupId>{GROUP}</groupId>\n      <artifactId>{id}</artifactId>\n      \
             <version>{}</version>\n      <scope>runtime</scope>\n    </dependency>\n",
            release.version
        );
    }
    let licence = release
        .licences()
        .into_iter()
        .filter(|entry| entry.path == "LICENSE");
    let licence: Vec<Entry> = licence.map(|entry| entry.below("META-INF")).collect();
    let classes = [compiled.classes.as_slice(), &licence].concat();
    artifacts.push(file(release, EXTENSION, ".jar", jar(classes, release)?));
    let pages = [compiled.documentation.as_slice(), &licence].concat();
    artifacts.push(file(release, EXTENSION, "-javadoc.jar", jar(pages, release)?));
    let sources = [release.folder(&format!("{PACKAGE}/src/main/java")), licence].concat();
    artifacts.push(file(release, EXTENSION, "-sources.jar", jar(sources, release)?));
    let own = format!("<version>{}</version>", release.version);
    let (before, after) = text
        .split_once("  </dependencies>")
        .ok_or_else(|| format!("{pom}: no dependencies"))?;
    if !before.contains(&own) {
        return Err(format!("{pom}: its version is not {}", release.version));
    }
    let published = format!("{before}{dependencies}  </dependencies>{after}");
    artifacts.push(file(release, EXTENSION, ".pom", published));
    Ok(artifacts)
}

/// Returns a file of the repository.
fn file(release: &Release, id: &str, ending: &str, bytes: impl Into<Vec<u8>>) -> Artifact {
    let (group, version) = (GROUP.replace('.', "/"), &release.version);
    Artifact::new(
        format!("maven/{group}/{id}/{version}/{id}-{version}{ending}"),
        bytes,
    )
}

fn jar(mut entries: Vec<Entry>, release: &Release) -> Result<Vec<u8>, String> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let manifest = "Manifest-Version: 1.0\r\nCreated-By: cargo xtask dist\r\n\r\n";
    entries.insert(0, Entry::file("META-INF/MANIFEST.MF", manifest));
    zip(&entries, release.style)
}

/// Returns the description of a jar with a program. What Maven Central requires is taken from that of the extension.
fn pom_of_binary(extension: &str, id: &str, platform: &Platform, version: &str) -> Result<String, String> {
    let section = |name: &str| {
        let (start, end) = (format!("  <{name}>"), format!("</{name}>\n"));
        let found = extension.find(&start).and_then(|from| {
            let to = extension[from..].find(&end)?;
            Some(&extension[from..from + to + end.len()])
        });
        found.ok_or_else(|| format!("{PACKAGE}/pom.xml: no <{name}>"))
    };
    let sections = ["url", "licenses", "developers", "scm"]
        .map(section)
        .into_iter()
        .collect::<Result<String, String>>()?;
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  \
         <modelVersion>4.0.0</modelVersion>\n  <groupId>{GROUP}</groupId>\n  <artifactId>{id}</artifactId>\n  \
         <version>{version}</version>\n  <name>fake-apiserver for {}</name>\n  \
         <description>The program fake-apiserver for {}</description>\n{sections}</project>\n",
        platform.java, platform.java
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::samples;

    #[test]
    fn the_extension_depends_on_the_jar_of_every_platform() {
        let compiled = Compiled {
            classes: vec![Entry::file(
                "io/github/fakeapiserver/FakeApiserver.class",
                "class",
            )],
            documentation: vec![Entry::file("index.html", "page")],
        };
        let artifacts = artifacts(&samples::release(), &compiled).unwrap();
        let last = artifacts.last().unwrap();
        assert_eq!(
            last.path,
            "maven/io/github/fake-apiserver/fake-apiserver-junit5/0.1.0/fake-apiserver-junit5-0.1.0.pom"
        );
        let pom = std::str::from_utf8(&last.bytes).unwrap();
        for id in [
            "fake-apiserver-binary-linux-x86_64",
            "fake-apiserver-binary-linux-aarch64",
        ] {
            assert_eq!(
                pom.matches(&format!("<artifactId>{id}</artifactId>")).count(),
                1,
                "{pom}"
            );
        }
        let binary = std::str::from_utf8(&artifacts[1].bytes).unwrap();
        assert!(
            binary.contains("  <licenses>\n    <license>") && binary.contains("<developers>"),
            "{binary}"
        );
        let mut jar = ::zip::ZipArchive::new(std::io::Cursor::new(&artifacts[0].bytes)).unwrap();
        assert_eq!(jar.by_index(0).unwrap().name(), "META-INF/MANIFEST.MF");
    }
}
