//! The kinds that are served.

/// One kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for core.
    pub group: &'static str,
    /// `v1`.
    pub version: &'static str,
    /// `configmaps`.
    pub plural: &'static str,
    /// `ConfigMap`.
    pub kind: &'static str,
    /// Do its objects live in namespaces?
    pub namespaced: bool,
}

/// The kinds that are served.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    kinds: &'static [Kind],
}

impl Catalog {
    /// All of them.
    pub fn builtin() -> Self {
        Self { kinds: &[] }
    }

    /// The kind of this group and plural.
    pub fn find(&self, group: &str, plural: &str) -> Option<&'static Kind> {
        self.kinds
            .iter()
            .find(|kind| kind.group == group && kind.plural == plural)
    }

    /// All of them, in the order of the table.
    pub fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }
}
