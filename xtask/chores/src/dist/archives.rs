//! An archive for each platform: the program, completions, manual pages, scenarios, licences. `curl`, `cargo binstall` and the Go
//! module unpack it.

use super::files::{Entry, tar_gz};
use super::platform::Platform;
use super::release::{Artifact, Release};

/// Returns the name of an archive without its ending, which is also the name of the folder in it.
fn folder(release: &Release, platform: &Platform) -> String {
    format!("fake-apiserver-{}-{}", release.version, platform.target)
}

/// Returns the file name of an archive.
pub(super) fn name(release: &Release, platform: &Platform) -> String {
    format!("{}.tar.gz", folder(release, platform))
}

/// Returns the archives.
///
/// # Errors
/// A path is not valid in a tar file.
pub(super) fn artifacts(release: &Release) -> Result<Vec<Artifact>, String> {
    let archives = release.binaries.iter().map(|binary| {
        let folder = folder(release, binary.platform);
        let program = Entry::program("fake-apiserver", binary.bytes.clone());
        let all = release.documents.iter().chain([&program]);
        let entries: Vec<Entry> = all.map(|entry| entry.below(&folder)).collect();
        Ok(Artifact::new(
            name(release, binary.platform),
            tar_gz(&entries, release.style)?,
        ))
    });
    archives.collect()
}
