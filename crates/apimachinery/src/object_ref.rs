//! Identity and version of an object, which logs and traces contain instead of its content.

use serde::{Deserialize, Serialize};

/// Identity and version of one object on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub key: String,
    /// `metadata.uid`; empty if the frame carried none.
    pub uid: String,
    /// `metadata.resourceVersion`, verbatim; empty if the frame carried none.
    pub resource_version: String,
}
