//! What the program is linked with: its crates from Cargo's metadata, as an SBOM (CycloneDX 1.6) and as licence texts.
//!
//! It must not know archives. Format: <https://cyclonedx.org/docs/1.6/json/>.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};

/// A crate that is linked into the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Linked {
    pub(super) name: String,
    pub(super) version: String,
    /// Licence expression of its manifest.
    pub(super) license: String,
    pub(super) description: String,
    /// SHA-256 of its package; none for the crates of this repository.
    pub(super) checksum: Option<String>,
    /// Crates it depends on, as `name@version`.
    pub(super) dependencies: BTreeSet<String>,
    /// Licence files of its package, by name.
    pub(super) texts: Vec<(String, String)>,
}

impl Linked {
    /// Returns `name@version`.
    pub(super) fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Program that the SBOM describes.
const PROGRAM: &str = "fake-apiserver-cli";

/// Returns the SBOM of the program and its crates. It has no serial number and no time, so that equal input gives equal bytes.
pub(super) fn cyclonedx(crates: &[Linked], version: &str) -> String {
    let purl = |linked: &Linked| format!("pkg:cargo/{}@{}", linked.name, linked.version);
    let known: BTreeMap<String, String> = crates.iter().map(|linked| (linked.id(), purl(linked))).collect();
    let component = |linked: &Linked| {
        let mut component = json!({
            "type": "library",
            "bom-ref": purl(linked),
            "name": linked.name,
            "version": linked.version,
            "purl": purl(linked),
        });
        if !linked.description.is_empty() {
            component["description"] = json!(linked.description);
        }
        if !linked.license.is_empty() {
            component["licenses"] = json!([{"expression": linked.license}]);
        }
        if let Some(checksum) = &linked.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let libraries = crates.iter().filter(|linked| linked.name != PROGRAM);
    let components: Vec<Value> = libraries.map(component).collect();
    let dependencies = crates.iter().map(|linked| {
        let on: Vec<&String> = linked
            .dependencies
            .iter()
            .filter_map(|id| known.get(id))
            .collect();
        json!({"ref": purl(linked), "dependsOn": on})
    });
    let dependencies: Vec<Value> = dependencies.collect();
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist"}]},
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/{PROGRAM}@{version}"),
                "name": PROGRAM,
                "version": version,
                "purl": format!("pkg:cargo/{PROGRAM}@{version}"),
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    });
    format!("{document:#}\n")
}

/// Notices of what is linked and is no crate.
const NO_CRATES: &str = "\
The Rust standard library: MIT OR Apache-2.0. Copyright (c) The Rust Project Contributors.
musl, the C library of static binaries: MIT. Copyright (c) 2005-2020 Rich Felker, et al.
Their licence texts are below.
";

/// Returns the licence texts of all crates that are not of this repository, each text once.
///
/// # Errors
/// A crate has no licence text, and there is none of its licence in another crate.
pub(super) fn licences(crates: &[Linked]) -> Result<String, String> {
    let foreign: Vec<&Linked> = crates.iter().filter(|linked| linked.checksum.is_some()).collect();
    let mut texts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for linked in &foreign {
        for (_, text) in &linked.texts {
            texts.entry(text.trim()).or_default().insert(linked.id());
        }
    }
    let mut page = format!("Licences of the software that fake-apiserver is linked with.\n\n{NO_CRATES}\n");
    for linked in &foreign {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{} {}: {}", linked.name, linked.version, linked.license);
        let replaced = || {
            let choices = linked
                .license
                .split([' ', '/', '(', ')'])
                .filter(|word| !["", "OR", "AND"].contains(word));
            let mut known = choices.filter(|choice| {
                foreign
                    .iter()
                    .any(|other| other.license == *choice && !other.texts.is_empty())
            });
            known.next().is_some() || texts.keys().any(|text| mentions(text, &linked.license))
        };
        if linked.texts.is_empty() && !replaced() {
            return Err(format!(
                "{}: its package has no licence file, and no other crate is under {}: its text has to be added",
                linked.id(),
                linked.license
            ));
        }
    }
    for (text, of) in texts {
        let of: Vec<String> = of.into_iter().collect();
        let line = "=".repeat(80);
        let _ = write!(page, "\n{line}\n{}\n{line}\n\n{text}\n", of.join(", "));
    }
    Ok(page)
}

/// Whether a text is that of a licence in an expression.
fn mentions(text: &str, expression: &str) -> bool {
    let of = [
        ("MIT", "Permission is hereby granted, free of charge"),
        ("Apache-2.0", "Apache License"),
        ("MPL-2.0", "Mozilla Public License"),
    ];
    of.iter()
        .any(|(id, words)| expression.contains(id) && text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(name: &str, license: &str, text: Option<&str>) -> Linked {
        Linked {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            description: String::new(),
            checksum: Some("0".repeat(64)),
            dependencies: BTreeSet::from(["a@1.0.0".to_owned(), "dev@1.0.0".to_owned()]),
            texts: text
                .map(|text| ("LICENSE".to_owned(), text.to_owned()))
                .into_iter()
                .collect(),
        }
    }

    #[test]
    fn the_sbom_has_the_crates_and_their_dependencies() {
        let text = cyclonedx(&[linked("a", "MIT", None), linked("b", "MIT", None)], "0.1.0");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["components"][1]["purl"], "pkg:cargo/b@1.0.0");
        // What is not linked is not named.
        assert_eq!(read["dependencies"][1]["dependsOn"], json!(["pkg:cargo/a@1.0.0"]));
    }

    #[test]
    fn equal_texts_are_printed_once_and_none_is_missing() {
        let mit = "Permission is hereby granted, free of charge, to any person";
        let page = licences(&[
            linked("a", "MIT", Some(mit)),
            linked("b", "MIT", Some(mit)),
            linked("c", "MIT", None),
        ])
        .unwrap();
        assert_eq!(page.matches(mit).count(), 1);
        assert!(page.contains("a@1.0.0, b@1.0.0"), "{page}");
        let missing = licences(&[linked("z", "Zlib", None)]).unwrap_err();
        assert!(
            missing.starts_with("z@1.0.0: its package has no licence file"),
            "{missing}"
        );
    }
}
