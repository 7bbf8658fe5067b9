//! `adapters/versions.yaml`: the versions of client libraries, and whether every manifest of the repository has them.
//!
//! Manifests are read line by line, as far as they name a library and its version. It must not ask a registry.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Where the versions are.
pub(crate) const FILE: &str = "adapters/versions.yaml";

/// Folders that are not held to the list: servers that are recorded.
const APART: [&str; 1] = ["fidelity/oracle/"];

/// Versions of libraries, by the registry that has them; the first one of each is the newest that is used.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Versions {
    pub(crate) go: Libraries,
    pub(crate) npm: Libraries,
    pub(crate) pypi: Libraries,
    pub(crate) maven: Libraries,
    pub(crate) crates: Libraries,
}

/// Name of a library to its versions.
pub(crate) type Libraries = BTreeMap<String, Vec<String>>;

impl Versions {
    /// Reads the text of [`FILE`].
    ///
    /// # Errors
    /// It is not such a file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|why| format!("{FILE}: {why}"))
    }

    /// Returns what is wrong between the list and the manifests among these files: another version, and a version of the
    /// list that none has. `read` returns the text of a file, and is called for manifests alone.
    pub(crate) fn wrong<'a>(
        &self,
        files: impl IntoIterator<Item = &'a str>,
        read: impl Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut used = BTreeSet::new();
        for path in files {
            let Some((libraries, pins_of)) = self.reader(path) else {
                continue;
            };
            for Pin { line, name, version } in read(path).map_or_else(Vec::new, |text| pins_of(&text)) {
                let Some((name, listed)) = libraries.get_key_value(&name) else {
                    continue;
                };
                match listed.iter().find(|listed| **listed == version) {
                    Some(listed) => {
                        used.insert((name.as_str(), listed.as_str()));
                    }
                    None => found.push(format!(
                        "{path}:{line}: {name} {version}, but {FILE} has {}",
                        listed.join(" and ")
                    )),
                }
            }
        }
        let every = [&self.go, &self.npm, &self.pypi, &self.maven, &self.crates];
        for (name, listed) in every.into_iter().flatten() {
            let unused = listed
                .iter()
                .filter(|version| !used.contains(&(name.as_str(), version.as_str())));
            found.extend(unused.map(|version| format!("{FILE}: no manifest has {name} {version}")));
        }
        found
    }

    /// Returns the libraries of a manifest's registry, and what reads its pins; `None` for any other file.
    fn reader(&self, path: &str) -> Option<(&Libraries, ReadPins)> {
        if APART.iter().any(|folder| path.starts_with(folder)) {
            return None;
        }
        let name = path.rsplit('/').next()?;
        Some(match name {
            "go.mod" => (&self.go, |text| by_line(text, go)),
            "package.json" => (&self.npm, |text| by_line(text, npm)),
            "requirements.txt" => (&self.pypi, |text| by_line(text, pypi)),
            "Cargo.toml" => (&self.crates, |text| by_line(text, cargo)),
            "pom.xml" => (&self.maven, maven),
            _ => return None,
        })
    }
}

/// Reads the pins of a manifest.
type ReadPins = fn(&str) -> Vec<Pin>;

/// A library and its version in a manifest.
#[derive(Debug, PartialEq, Eq)]
struct Pin {
    /// From 1.
    line: usize,
    name: String,
    version: String,
}

fn by_line(text: &str, read: fn(&str) -> Option<(&str, &str)>) -> Vec<Pin> {
    let lines = (1..).zip(text.lines());
    let pins = lines.filter_map(|(line, text)| {
        let (name, version) = read(text)?;
        Some(Pin {
            line,
            name: name.to_owned(),
            version: version.to_owned(),
        })
    });
    pins.collect()
}

/// `k8s.io/api v0.37.2`, after `require` or in its block. What a library of the list needs itself is the tool's matter.
fn go(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let mut words = line.strip_prefix("require ").unwrap_or(line).split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    (version.starts_with('v') && words.next().is_none()).then_some((name, version))
}

/// `"kopf": "1.2.3"`, or `"alias": "npm:kopf@1.2.3"`. Lines with several are not written here.
fn npm(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches("\"dependencies\": {");
    let (name, version) = line.trim_end_matches([',', '}', ' ']).split_once("\": \"")?;
    let name = name.trim().trim_start_matches('"');
    let version = version.strip_suffix('"')?;
    match version.strip_prefix("npm:") {
        Some(aliased) => aliased.rsplit_once('@'),
        None => Some((name, version)),
    }
}

/// `kopf==1.2.3`.
fn pypi(line: &str) -> Option<(&str, &str)> {
    let (name, version) = line.split_once("==")?;
    Some((name.trim(), version.split([' ', ';', '\\']).next()?))
}

/// `kube = "=1.2.3"` or `kube = { version = "1.2.3", … }`.
fn cargo(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    let value = match value.strip_prefix('{') {
        Some(table) => table.split_once("version = ")?.1,
        None => value,
    };
    let version = value.strip_prefix('"')?.split('"').next()?;
    Some((name, version.trim_start_matches('=')))
}

/// `<groupId>`, `<artifactId>` and `<version>` of dependencies and plugins, in this order.
fn maven(text: &str) -> Vec<Pin> {
    let mut group = String::new();
    let mut artifact = None;
    let mut pins = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some((tag, rest)) = text
            .trim()
            .strip_prefix('<')
            .and_then(|text| text.split_once('>'))
        else {
            continue;
        };
        let value = rest.split('<').next().unwrap_or_default();
        match tag {
            "dependency" | "plugin" => artifact = None,
            "groupId" => value.clone_into(&mut group),
            "artifactId" => artifact = Some(value),
            "version" => pins.extend(artifact.take().map(|artifact| Pin {
                line,
                name: format!("{group}:{artifact}"),
                version: value.to_owned(),
            })),
            _ => {}
        }
    }
    pins
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::go("go.mod", "require (\n\tlib v2\n\tlib v3 // indirect\n)", &[(2, "v2")])]
    #[case::go_alone("a/go.mod", "require lib v2", &[(1, "v2")])]
    #[case::npm("package.json", "{\n  \"lib\": \"2\",\n  \"old\": \"npm:lib@1\"\n}", &[(2, "2"), (3, "1")])]
    #[case::npm_in_a_line("package.json", "  \"dependencies\": { \"lib\": \"2\" },", &[(1, "2")])]
    #[case::pypi("requirements.txt", "lib==2\nlibrary==3", &[(1, "2")])]
    #[case::cargo("Cargo.toml", "lib = \"=2\"\nlib.workspace = true\nlib = { version = \"3\" }", &[(1, "2"), (3, "3")])]
    #[case::maven(
        "pom.xml",
        "<groupId>lib</groupId>\n<artifactId>lib</artifactId>\n<version>2</version>\n<version>9</version>",
        &[(3, "2")]
    )]
    #[case::oracle("fidelity/oracle/go.mod", "require lib v2", &[])]
    #[case::other("README.md", "lib v2", &[])]
    fn manifests_are_read(#[case] path: &str, #[case] text: &str, #[case] expected: &[(usize, &str)]) {
        let versions = Versions::default();
        let pins = versions
            .reader(path)
            .map_or_else(Vec::new, |(_, pins_of)| pins_of(text));
        let found: Vec<(usize, &str)> = { pins.iter() }
            .filter(|pin| ["lib", "lib:lib"].contains(&pin.name.as_str()))
            .map(|pin| (pin.line, pin.version.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn other_and_unused_versions_are_wrong() {
        let list = "go: {}\nnpm: {}\npypi: {lib: ['2', '1'], gone: ['7']}\nmaven: {}\ncrates: {}\n";
        let versions = Versions::parse(list).unwrap();
        let manifests = [
            ("a/requirements.txt", "lib==2\nother==5"),
            ("b/requirements.txt", "\nlib==3"),
        ];
        let read = |path: &str| {
            let of = manifests.iter().find(|(other, _)| *other == path);
            of.map(|(_, text)| (*text).to_owned())
        };
        assert_eq!(
            versions.wrong(manifests.map(|(path, _)| path), read),
            [
                "b/requirements.txt:2: lib 3, but adapters/versions.yaml has 2 and 1",
                "adapters/versions.yaml: no manifest has gone 7",
                "adapters/versions.yaml: no manifest has lib 1",
            ]
        );
    }
}
