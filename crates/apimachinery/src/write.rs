//! The words of writes: subresources, patches, `fieldValidation`.

use serde_json::{Map, Value};

/// A patch.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON Merge Patch (RFC 7386).
    Merge(Value),
    /// JSON Patch (RFC 6902).
    Json(json_patch::Patch),
    /// Strategic merge patch.
    Strategic(Map<String, Value>),
}

/// A subresource that writes part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `finalize`: what a namespace waits for before it goes.
    Finalize,
    /// `scale`: how many replicas there shall be. Its bodies are of a Kind of their own.
    Scale,
    /// `ephemeralcontainers` of a pod: what comes to look into it.
    EphemeralContainers,
    /// `resize` of a pod: what its containers may use.
    Resize,
}

impl Subresource {
    /// As paths and rules name it.
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
    /// Dropped, and told in a `Warning` header.
    Warn,
    /// Refused.
    Strict,
}
