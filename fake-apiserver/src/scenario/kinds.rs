//! The words scenario files have for the kinds the fake serves. What a kind is, the model's catalog says.

use crate::model::catalog::{Catalog, Kind};

/// kubectl's singular names, in the order of the keys of `raw::ShortObject`.
pub(crate) const SHORT_WORDS: &[&str] = &[
    "configmap",
    "secret",
    "pod",
    "service",
    "namespace",
    "node",
    "event",
    "deployment",
    "job",
    "lease",
    "widget",
];

/// Every kind.
pub(crate) fn all() -> &'static [Kind] {
    Catalog::builtin().kinds()
}

/// The kind a target's resource means: `configmaps`, `widgets.probe.example.com`.
pub(crate) fn by_resource(resource: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.qualified() == resource)
}

/// The kind of a manifest.
pub(crate) fn by_api_version(api_version: &str, kind: &str) -> Option<&'static Kind> {
    all()
        .iter()
        .find(|known| known.api_version() == api_version && known.kind == kind)
}

/// The kind a short form means.
pub(crate) fn by_word(word: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.singular == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word() {
        let mut words = SHORT_WORDS.to_vec();
        let mut kinds: Vec<&str> = all().iter().map(|kind| kind.singular).collect();
        words.sort_unstable();
        kinds.sort_unstable();
        assert_eq!(words, kinds);
    }
}
