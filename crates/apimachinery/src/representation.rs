//! Representation of objects in a response, as negotiated by `Accept`.

/// Representation of each object, from `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// The whole object.
    Full,
    /// `as=PartialObjectMetadata` or `as=PartialObjectMetadataList`.
    Metadata(MetaVersion),
    /// `as=Table`: printer columns.
    Table(TableOptions),
}

/// Version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

impl MetaVersion {
    /// Returns the API version: `meta.k8s.io/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Options of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableOptions {
    /// Version of the table itself.
    pub version: MetaVersion,
    /// `includeObject`.
    pub object: RowObject,
}

/// `object` of a table row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowObject {
    /// No object.
    None,
    /// `PartialObjectMetadata`.
    Metadata,
    /// The whole object.
    Full,
}
