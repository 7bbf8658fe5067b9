//! Documents that are no objects: discovery, version, health.

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `/version`.
    Version,
}

impl Document {
    /// The document, ready to be sent.
    pub fn answer(
        &self,
        catalog: &crate::model::catalog::Catalog,
        version: crate::scenario::Version,
    ) -> super::Answer {
        let _ = (catalog, version);
        super::ok(bytes::Bytes::new())
    }
}
