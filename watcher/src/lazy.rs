//! Objects stored as the bytes received and decoded on access: the compact form of a cache.

#[cfg(feature = "compress")]
mod packed;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::de::DeserializeOwned;

#[cfg(feature = "client")]
use crate::decode::{Codec, Prune};
use crate::decode::{from_str, identity, is_one_value};
use crate::error::DecodeError;
#[cfg(feature = "client")]
use crate::object::Identity;

/// An object of type `K` that is not decoded yet: its JSON, and the offsets of its names.
///
/// It takes little more memory than its text: an eighth of a decoded Pod. Decoding errors appear on access, in the
/// result of [`get`](Self::get), not on receipt. A watcher of lazy objects still rejects truncated values and objects
/// without metadata.
pub struct Lazy<K> {
    /// The JSON; or, if compressed, the names followed by the compressed JSON.
    bytes: Box<[u8]>,
    /// Dictionary for the compressed JSON.
    #[cfg(feature = "compress")]
    model: Option<packed::Model>,
    name: Span,
    namespace: Span,
    uid: Span,
    resource_version: Span,
    /// The decoded object, as long as it is in use.
    decoded: Mutex<Weak<K>>,
}

/// A range of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    length: u32,
}

impl Span {
    /// Returns the range of `part`, a slice of `whole`. `None` only for objects over 4 GiB.
    fn of(part: &str, whole: &str) -> Option<Self> {
        if part.is_empty() {
            return Some(Self::default());
        }
        let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
        (whole.get(start..start + part.len()) == Some(part)).then_some(Self {
            start: u32::try_from(start).ok()?,
            length: u32::try_from(part.len()).ok()?,
        })
    }

    fn cut(self, whole: &[u8]) -> &str {
        let start = self.start as usize;
        text(&whole[start..start + self.length as usize])
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it was text when it came")
}

impl<K> Lazy<K> {
    /// Stores the JSON of one object.
    ///
    /// # Errors
    /// If the object has no metadata, if it is not a single JSON value judging by its brackets, or if one of its
    /// names contains escapes, which no valid name does.
    pub fn new(json: &str) -> Result<Self, serde_json::Error> {
        let error = |message: &str| <serde_json::Error as serde::de::Error>::custom(message);
        if !is_one_value(json) {
            return Err(error("no whole object"));
        }
        let id = identity(json).ok_or_else(|| error("no metadata"))?;
        let span = |part: &str| Span::of(part, json).ok_or_else(|| error("a name with escapes"));
        Ok(Self {
            name: span(&id.name)?,
            namespace: span(&id.namespace)?,
            uid: span(&id.uid)?,
            resource_version: span(&id.resource_version)?,
            bytes: json.as_bytes().into(),
            #[cfg(feature = "compress")]
            model: None,
            decoded: Mutex::new(Weak::new()),
        })
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        self.name.cut(&self.bytes)
    }

    /// Returns `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.namespace.cut(&self.bytes)
    }

    /// Returns `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.uid.cut(&self.bytes)
    }

    /// Returns `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.resource_version.cut(&self.bytes)
    }

    /// Returns the JSON as received.
    pub fn json(&self) -> Cow<'_, str> {
        #[cfg(feature = "compress")]
        if let Some(model) = &self.model {
            return Cow::Owned(model.unpack(&self.bytes[self.names_length()..]));
        }
        Cow::Borrowed(text(&self.bytes))
    }

    #[cfg(feature = "client")]
    pub(crate) fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.namespace().into(),
            name: self.name().into(),
            uid: self.uid().into(),
            resource_version: self.resource_version().into(),
        }
    }
}

impl<K: DeserializeOwned> Lazy<K> {
    /// Returns the decoded object. Concurrent users share one decoded copy, which is freed when the last one drops
    /// it.
    ///
    /// # Errors
    /// If the JSON does not fit the type.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = decoded.upgrade() {
            return Ok(object);
        }
        let object = Arc::new(from_str::<K>(&self.json())?);
        *decoded = Arc::downgrade(&object);
        Ok(object)
    }
}

#[cfg(feature = "compress")]
pub(crate) use packed::codec as packed_codec;

/// Returns the codec of lazy objects. The fields in `prune` are cut out of their text.
#[cfg(feature = "client")]
pub(crate) fn codec<K: 'static>(prune: Prune) -> Codec<Lazy<K>> {
    if prune.is_empty() {
        return Codec::new(Lazy::new);
    }
    let values = Codec::<serde_json::Value>::typed(prune.clone());
    Codec::new(move |json| match prune.cut(json, &mut String::new()) {
        Some(cut) => Lazy::new(cut),
        None => Lazy::new(&values.decode(json)?.to_string()),
    })
}

impl<K> Clone for Lazy<K> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            #[cfg(feature = "compress")]
            model: self.model.clone(),
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            decoded: Mutex::new(Weak::clone(
                &self.decoded.lock().unwrap_or_else(PoisonError::into_inner),
            )),
        }
    }
}

/// Prints names and versions, never content.
impl<K> fmt::Debug for Lazy<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("resource_version", &self.resource_version())
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;

    use super::*;

    const JSON: &str =
        r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"},"data":{"k":"v"}}"#;

    #[test]
    fn names_are_available_without_decoding() {
        let lazy = Lazy::<ConfigMap>::new(JSON).unwrap();
        assert_eq!(
            (lazy.namespace(), lazy.name(), lazy.uid(), lazy.resource_version()),
            ("n", "a", "u", "5")
        );
        let object = lazy.get().unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("a"));
        assert!(Arc::ptr_eq(&object, &lazy.get().unwrap()), "decoded once");
        let weak = Arc::downgrade(&object);
        drop(object);
        assert!(weak.upgrade().is_none(), "kept by nobody");
        assert_eq!(lazy.clone().get().unwrap().metadata.uid.as_deref(), Some("u"));
    }

    #[test]
    fn decoding_errors_appear_on_access() {
        let lazy = Lazy::<ConfigMap>::new(&JSON.replace(r#"{"k":"v"}"#, "\"s3cr3t\"")).unwrap();
        let error = lazy.get().unwrap_err();
        assert!(!error.to_string().contains("s3cr3t") && !format!("{lazy:?}").contains("s3cr3t"));
    }

    #[rstest]
    #[case::torn(&JSON[..40])]
    #[case::two(&format!("{JSON}{JSON}"))]
    #[case::no_metadata("{}")]
    fn what_is_no_object_is_refused(#[case] json: &str) {
        assert!(Lazy::<ConfigMap>::new(json).is_err());
    }

    #[test]
    fn pruned_fields_are_not_stored() {
        let codec = codec::<ConfigMap>(Prune::nothing().field("data"));
        let lazy = codec.decode(JSON).unwrap();
        assert!(!lazy.json().contains(r#""k":"v""#), "{}", lazy.json());
        assert_eq!((lazy.name(), lazy.uid()), ("a", "u"));
    }
}
