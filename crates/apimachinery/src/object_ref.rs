//! Identity and version of an object, which logs and traces contain instead of its content.

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

impl ObjectRef {
    /// Returns the identity and version that the metadata of an object has.
    pub fn of(object: &Value) -> Self {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        Self {
            key: Self::key(text("namespace"), text("name")),
            uid: text("uid").to_owned(),
            resource_version: text("resourceVersion").to_owned(),
        }
    }

    /// Returns the key of an object; `namespace` is empty for cluster-scoped objects.
    pub fn key(namespace: &str, name: &str) -> String {
        match namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        }
    }
}
