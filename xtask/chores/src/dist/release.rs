//! What a release is made of, and what it becomes: values that every packaging format reads. It must not know a format.

use std::collections::BTreeMap;

use super::files::{Entry, Style};
use super::platform::Platform;

/// A built program.
pub(super) struct Binary {
    pub(super) platform: &'static Platform,
    pub(super) bytes: Vec<u8>,
}

/// Everything that artefacts are made from.
pub(super) struct Release {
    /// Version of the workspace.
    pub(super) version: String,
    /// URL of the folder from which files of the release are downloaded, without a slash at its end.
    pub(super) url: String,
    pub(super) style: Style,
    /// One binary for each platform.
    pub(super) binaries: Vec<Binary>,
    /// Tracked files of the repository that packages are made from, by path.
    pub(super) sources: BTreeMap<String, Vec<u8>>,
    /// Completions, manual pages, scenarios, licences and the SBOM, by their paths in an archive.
    pub(super) documents: Vec<Entry>,
}

impl Release {
    /// Returns the text of a tracked file.
    ///
    /// # Errors
    /// The repository does not have it.
    pub(super) fn text(&self, path: &str) -> Result<&str, String> {
        let bytes = self
            .sources
            .get(path)
            .ok_or_else(|| format!("{path} is not tracked"))?;
        std::str::from_utf8(bytes).map_err(|_| format!("{path} is not text"))
    }

    /// Returns the tracked files below a folder, as entries with paths relative to it.
    pub(super) fn folder(&self, folder: &str) -> Vec<Entry> {
        let prefix = format!("{folder}/");
        let inside = self
            .sources
            .iter()
            .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?, bytes)));
        inside
            .map(|(path, bytes)| Entry::file(path, bytes.clone()))
            .collect()
    }

    /// Returns the licence of the program and those of the crates it is linked with.
    pub(super) fn licences(&self) -> Vec<Entry> {
        let licences = self
            .documents
            .iter()
            .filter(|entry| LICENCES.contains(&entry.path.as_str()));
        licences.cloned().collect()
    }
}

/// Licence files of an archive.
pub(super) const LICENCES: [&str; 2] = ["LICENSE", "THIRD-PARTY.txt"];

/// A file of the release.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Artifact {
    /// Path in the folder of the release.
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

impl Artifact {
    pub(super) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            bytes: bytes.into(),
        }
    }
}

#[cfg(test)]
pub(super) mod samples {
    //! A release of a program of a few bytes, from the packages of this repository.

    use super::*;
    use crate::clients::root;
    use crate::dist::platform::PLATFORMS;
    use crate::dist::read;

    /// Returns the sample; every call returns the same.
    pub(in crate::dist) fn release() -> Release {
        let binaries = PLATFORMS.iter().take(2).map(|platform| Binary {
            platform,
            bytes: format!("program for {}", platform.target).into_bytes(),
        });
        Release {
            version: "0.1.0".to_owned(),
            url: "https://example.com/v0.1.0".to_owned(),
            style: Style {
                epoch: 1_000_000_000,
                level: 6,
            },
            binaries: binaries.collect(),
            sources: read::sources(&root()).unwrap(),
            documents: vec![
                Entry::file("LICENSE", "licence"),
                Entry::file("THIRD-PARTY.txt", "licences"),
                Entry::file("sbom.cdx.json", "{}"),
                Entry::file("man/man1/fake-apiserver.1", "manual"),
            ],
        }
    }
}
