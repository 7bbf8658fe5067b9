//! Objects that are kept as the bytes they came in, and decoded when they are used: the compact form of a cache.

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

/// An object of type `K` that is not decoded yet: its JSON, and where in it its names are.
///
/// It takes little more memory than its text: an eighth of a decoded Pod. What cannot be decoded is found when it is
/// used, not when it comes: [`get`](Self::get) then says so. A watcher of lazy objects tells whole values from torn ones,
/// and tells nothing that has no metadata.
pub struct Lazy<K> {
    /// Its JSON; or its names, and behind them its JSON compressed.
    bytes: Box<[u8]>,
    /// What it is compressed against.
    #[cfg(feature = "compress")]
    model: Option<packed::Model>,
    name: Span,
    namespace: Span,
    uid: Span,
    resource_version: Span,
    /// The decoded object, for as long as anybody has it.
    decoded: Mutex<Weak<K>>,
}

/// A part of the bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    length: u32,
}

impl Span {
    /// Where `part` is in `whole`, which it was cut from. Only objects of more than 4 GiB have none.
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
    /// Keeps the JSON of one object.
    ///
    /// # Errors
    /// If it has no metadata, is not one value of JSON as far as its brackets tell, or a name in it has escapes, which no
    /// name that a server admits has.
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

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.name.cut(&self.bytes)
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.namespace.cut(&self.bytes)
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.uid.cut(&self.bytes)
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.resource_version.cut(&self.bytes)
    }

    /// The JSON, as it came.
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
    /// The object. It is decoded once for all who have it at the same time, and forgotten when nobody has it any more.
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

/// The codec of lazy objects. What `prune` names is cut out of their text.
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

/// Names and versions, never content.
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
    fn it_knows_its_names_and_decodes_when_asked() {
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
    fn what_does_not_fit_is_found_when_it_is_used() {
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
    fn what_is_pruned_is_not_kept() {
        let codec = codec::<ConfigMap>(Prune::nothing().field("data"));
        let lazy = codec.decode(JSON).unwrap();
        assert!(!lazy.json().contains(r#""k":"v""#), "{}", lazy.json());
        assert_eq!((lazy.name(), lazy.uid()), ("a", "u"));
    }
}
