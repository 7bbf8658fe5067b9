//! One version of one object.

use std::sync::Arc;

use serde_json::Value;

use crate::record::ObjectRef;

/// One version of one object, as stored.
#[derive(Debug)]
pub struct Stored {
    /// `namespace/name`, or `name`.
    pub key: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The revision of the write that made it.
    pub revision: u64,
    /// The object, in the order it is written on the wire.
    pub json: Arc<Value>,
}

impl Stored {
    /// Its identity and version.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
        }
    }
}
