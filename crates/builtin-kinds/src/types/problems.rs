//! Errors of strict decoding, in the order found. It must not know what is decoded.
//!
//! Source: sigs.k8s.io/json `kubernetes_patch.go` (`saveStrictError`).

use std::fmt;

/// Unknown and duplicate fields, at most [`PROBLEMS_MAX`].
#[derive(Default)]
pub(super) struct Problems(Vec<String>);

/// Maximum in kube-apiserver (sigs.k8s.io/json `saveStrictError`).
const PROBLEMS_MAX: usize = 100;

impl Problems {
    /// Returns all errors, in order.
    pub(super) fn into_texts(self) -> Vec<String> {
        self.0
    }

    /// Returns their number, for [`Self::insert`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an error for the field at `path`, unless it exists already.
    pub(super) fn push(&mut self, what: &str, path: &dyn fmt::Display) {
        self.insert(self.len(), what, path);
    }

    /// Inserts an error at index `before`.
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
