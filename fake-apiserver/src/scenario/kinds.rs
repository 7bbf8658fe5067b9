//! The words scenario files have for the kinds the fake serves. What a kind is, the model's catalog says.

use std::sync::LazyLock;

use crate::model::catalog::{Catalog, Kind};

use super::Version;

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
pub(crate) fn all() -> &'static [&'static Kind] {
    static KINDS: LazyLock<Catalog> = LazyLock::new(|| Catalog::of_scenarios(Version::V1_36));
    KINDS.kinds()
}

/// The kind a target's resource means: `configmaps`, `widgets.probe.example.com`.
pub(crate) fn by_resource(resource: &str) -> Option<&'static Kind> {
    all().iter().copied().find(|kind| kind.qualified() == resource)
}

/// The kind of a manifest.
pub(crate) fn by_api_version(api_version: &str, kind: &str) -> Option<&'static Kind> {
    all()
        .iter()
        .copied()
        .find(|known| known.api_version() == api_version && known.kind == kind)
}

/// The kind a short form means.
pub(crate) fn by_word(word: &str) -> Option<&'static Kind> {
    let known = SHORT_WORDS.contains(&word);
    all().iter().copied().find(|kind| known && kind.singular == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_kind() {
        for word in SHORT_WORDS {
            assert!(by_word(word).is_some(), "{word}");
        }
    }
}
