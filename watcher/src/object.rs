//! Object identity: what the machine uses of an object, and what an error contains of one. Names and versions only.

use std::borrow::Cow;
use std::fmt;

/// Identity of an object, borrowed from the bytes received. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity<'a> {
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Cow<'a, str>,
    /// `metadata.name`.
    pub name: Cow<'a, str>,
    /// `metadata.uid`.
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`, verbatim.
    pub resource_version: Cow<'a, str>,
}

/// Returns the identity of a decoded object.
#[cfg(feature = "client")]
pub(crate) fn identity<K: kube_core::Resource>(object: &K) -> Identity<'_> {
    fn text(field: Option<&String>) -> Cow<'_, str> {
        field.map_or(Cow::Borrowed(""), |text| Cow::Borrowed(text))
    }
    let meta = object.meta();
    Identity {
        namespace: text(meta.namespace.as_ref()),
        name: text(meta.name.as_ref()),
        uid: text(meta.uid.as_ref()),
        resource_version: text(meta.resource_version.as_ref()),
    }
}

/// Identity of the object an error is about, as far as it could be parsed. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectId {
    /// `type` of the watch event; empty for an item of a list.
    pub event_type: String,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`, verbatim.
    pub resource_version: String,
}

impl Identity<'_> {
    /// Returns an owned copy with the type of the event.
    pub fn to_id(&self, event_type: &str) -> ObjectId {
        ObjectId {
            event_type: event_type.to_owned(),
            namespace: self.namespace.clone().into_owned(),
            name: self.name.clone().into_owned(),
            uid: self.uid.clone().into_owned(),
            resource_version: self.resource_version.clone().into_owned(),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.event_type.is_empty() {
            write!(f, "{} ", self.event_type)?;
        }
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        let name = if self.name.is_empty() {
            "(no name)"
        } else {
            &self.name
        };
        write!(f, "{name}@{} (uid {})", self.resource_version, self.uid)
    }
}
