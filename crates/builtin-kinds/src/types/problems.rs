//! What a strict reader finds wrong with a body, remembered in the order it came. It must not know what is read.
//!
//! Source: sigs.k8s.io/json `kubernetes_patch.go` (`saveStrictError`).

use std::fmt;

/// Fields that nobody knows or that come twice, the first [`PROBLEMS_MAX`] of them.
#[derive(Default)]
pub(super) struct Problems(Vec<String>);

/// How many a real server remembers (sigs.k8s.io/json `saveStrictError`).
const PROBLEMS_MAX: usize = 100;

impl Problems {
    /// All of them, in order.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }

    /// How many there are, for [`Self::insert`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A problem of the field at this place; the same twice is one.
    pub(super) fn push(&mut self, what: &str, path: &dyn fmt::Display) {
        self.insert(self.len(), what, path);
    }

    /// The same, before what came since there were so many.
    pub(super) fn insert(&mut self, before: usize, what: &str, path: &dyn fmt::Display) {
        if before >= PROBLEMS_MAX {
            return;
        }
        let problem = format!("{what} field \"{path}\"");
        if !self.0.contains(&problem) {
            self.0.insert(before, problem);
            self.0.truncate(PROBLEMS_MAX);
        }
    }
}
