//! How much of an object an answer shows, as negotiated by `Accept`.

/// How much of each object is answered, from `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// All of it.
    Full,
    /// `as=PartialObjectMetadata` or `as=PartialObjectMetadataList`.
    Metadata(MetaVersion),
    /// `as=Table`: what is printed of it.
    Table(TableForm),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// A table, and what stands in it beside the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableForm {
    /// Of the table itself.
    pub version: MetaVersion,
    /// `includeObject`.
    pub object: RowObject,
}

/// What of its object a row of a table carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowObject {
    /// Nothing.
    None,
    /// `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Full,
}
