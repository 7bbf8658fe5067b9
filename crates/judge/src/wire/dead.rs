//! Versions that expired with 410, and lists at them since. More lists than are needed to learn of the 410 are a
//! violation if each returns the expired version itself.
//!
//! Independent of loops, streams and texts.

use std::collections::BTreeMap;

use super::position::Version;

/// Maximum number of versions kept.
const REMEMBERED_MAX: usize = 64;

/// Number of 410 responses per version, and of lists at it since.
#[derive(Debug, Default)]
pub(super) struct DeadVersions {
    counts: BTreeMap<Version, (u64, u64)>,
}

impl DeadVersions {
    /// Records that a watch from a version received 410.
    pub(super) fn expire(&mut self, version: Version) {
        if self.counts.len() < REMEMBERED_MAX || self.counts.contains_key(&version) {
            self.counts.entry(version).or_default().0 += 1;
        }
    }

    /// Records a list at a version that was rejected with 410, or returned that version again; returns `true` if it
    /// is one too many.
    pub(super) fn list(&mut self, version: Version) -> bool {
        self.counts.get_mut(&version).is_some_and(|(deaths, lists)| {
            *lists += 1;
            *lists > *deaths * 2
        })
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }
}
