//! Archives and the index for `setup-envtest use --index URL`.
//!
//! setup-envtest unpacks regular files only, by the last part of their path: so `etcd` and `kube-apiserver` are two copies of the
//! program, which acts by the name it is called by.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::files::{Entry, sha512, tar_gz};
use super::release::{Artifact, Release};

/// Path of the index in the folder of the release.
pub(super) const INDEX: &str = "envtest-releases.yaml";

/// Folder in an archive, as in those of controller-tools.
const FOLDER: &str = "controller-tools/envtest";

/// Returns the archives and the index. `kubernetes` is the version that the program emulates, such as `1.37.2`.
///
/// # Errors
/// A path is not valid in a tar file.
pub(super) fn artifacts(release: &Release, kubernetes: &str) -> Result<Vec<Artifact>, String> {
    let mut artifacts = Vec::new();
    for binary in &release.binaries {
        let (system, processor) = binary.platform.go;
        let mut entries: Vec<Entry> = release.licences();
        entries.extend(["etcd", "kube-apiserver"].map(|name| Entry::program(name, binary.bytes.clone())));
        let entries: Vec<Entry> = entries.iter().map(|entry| entry.below(FOLDER)).collect();
        let name = format!("envtest-v{kubernetes}-{system}-{processor}.tar.gz");
        artifacts.push(Artifact::new(name, tar_gz(&entries, release.style)?));
    }
    let index = index(&artifacts, &release.url, kubernetes);
    artifacts.push(Artifact::new(INDEX, index));
    Ok(artifacts)
}

/// Returns the index: a hash (SHA-512) and a URL for each archive.
fn index(archives: &[Artifact], url: &str, kubernetes: &str) -> String {
    let archives: BTreeMap<&str, &Artifact> = archives
        .iter()
        .map(|archive| (archive.path.as_str(), archive))
        .collect();
    let mut text = format!("releases:\n  v{kubernetes}:\n");
    for (name, archive) in archives {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "    {name}:\n      hash: {}\n      selfLink: {url}/{name}\n",
            sha512(&archive.bytes)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::samples;

    #[test]
    fn the_index_names_every_archive_with_its_hash() {
        let artifacts = artifacts(&samples::release(), "1.37.2").unwrap();
        let index = std::str::from_utf8(&artifacts[2].bytes).unwrap();
        assert!(
            index.starts_with("releases:\n  v1.37.2:\n    envtest-v1.37.2-linux-amd64.tar.gz:\n      hash: ")
        );
        assert!(
            index.contains("      selfLink: https://example.com/v0.1.0/envtest-v1.37.2-linux-arm64.tar.gz\n")
        );
        assert!(index.contains(&sha512(&artifacts[1].bytes)));
    }
}
