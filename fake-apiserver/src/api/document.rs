//! Documents that are no objects: discovery, version, health.

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `/version`.
    Version,
}
