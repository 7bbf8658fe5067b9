//! Vocabulary of writes: subresources, patches, `fieldValidation`.

use serde_json::{Map, Value};

/// A patch, by its type.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON Merge Patch (RFC 7386).
    Merge(Value),
    /// JSON Patch (RFC 6902). An operation is read when it is its turn.
    Json(Vec<Map<String, Value>>),
    /// Strategic merge patch.
    Strategic(Map<String, Value>),
}

/// Subresource that writes part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `finalize` of a namespace: writes its finalizers.
    Finalize,
    /// `scale`: the desired replicas. Its bodies have another kind.
    Scale,
    /// `ephemeralcontainers` of a pod.
    EphemeralContainers,
    /// `resize` of a pod: the resources of its containers.
    Resize,
}

impl Subresource {
    /// Returns its name in paths and RBAC rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Finalize => "finalize",
            Self::Scale => "scale",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
        }
    }
}

/// `fieldValidation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown fields are dropped.
    Ignore,
    /// Unknown fields are dropped, with a `Warning` header.
    Warn,
    /// Unknown fields are an error.
    Strict,
}
