//! Versions of which the server said 410, and the lists at them since. More lists than it takes to learn of a 410 lead
//! nowhere, if each is answered at the dead version itself.
//!
//! It must not know loops, streams or words.

use std::collections::BTreeMap;

use super::position::Version;

/// Versions that are remembered.
const REMEMBERED_MAX: usize = 64;

/// How often 410 was said of a version, and how often it was listed at since.
#[derive(Debug, Default)]
pub(super) struct DeadVersions {
    counts: BTreeMap<Version, (u64, u64)>,
}

impl DeadVersions {
    /// A watch from a version was told 410.
    pub(super) fn expire(&mut self, version: Version) {
        if self.counts.len() < REMEMBERED_MAX || self.counts.contains_key(&version) {
            self.counts.entry(version).or_default().0 += 1;
        }
    }

    /// A list at a version was refused with 410, or brought that version again. Returns `true` if it is one too many.
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
