//! Selects the type into which objects are decoded, and the fields that are dropped while decoding.

#[cfg(feature = "client")]
use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::plain;
use super::prune::Pruned;
use crate::prune::Prune;

/// Decodes the JSON of one object into the consumer's type. Cheap to clone.
pub struct Codec<O> {
    decode: Arc<Decode<O>>,
}

/// Decodes JSON into `O` without the pruned fields.
type Reading<O> = fn(&str, &Prune) -> Result<O, serde_json::Error>;

type Decode<O> = dyn Fn(&str) -> Result<O, serde_json::Error> + Send + Sync;

impl<O: DeserializeOwned + 'static> Codec<O> {
    /// Returns a codec for the full type, without the fields in `prune`.
    pub fn typed(prune: Prune) -> Self {
        Self::pruning(prune, decoding::<O>())
    }
}

#[cfg(feature = "client")]
impl<K: 'static> Codec<kube_core::PartialObjectMeta<K>> {
    /// Returns a codec for the metadata of any object, without the fields in `prune`.
    pub(crate) fn metadata(prune: Prune) -> Self {
        Self::pruning(prune, super::dynamic::metadata)
    }
}

impl<O: 'static> Codec<O> {
    fn pruning(prune: Prune, decode: Reading<O>) -> Self {
        if prune.is_empty() {
            return Self::new(move |json| decode(json, &prune));
        }
        let (nothing, kept) = (Prune::nothing(), Mutex::new(String::new()));
        Self::new(move |json| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(cut) = prune.cut(json, &mut kept)
                && let Ok(object) = decode(cut, &nothing)
            {
                return Ok(object);
            }
            drop(kept);
            // Fallback for unusual or invalid input.
            decode(json, &prune)
        })
    }
}

/// Returns the decoding function for a type.
fn decoding<O: DeserializeOwned + 'static>() -> Reading<O> {
    #[cfg(feature = "client")]
    if TypeId::of::<O>() == TypeId::of::<kube_core::DynamicObject>() {
        return |json, prune| {
            super::dynamic::object(json, prune).map(|object| {
                let mut object: Option<kube_core::DynamicObject> = Some(object);
                let object: &mut dyn Any = &mut object;
                let object = object.downcast_mut::<Option<O>>().and_then(Option::take);
                object.expect("the two are one type: that was asked above")
            })
        };
    }
    |json, prune| {
        if prune.is_empty() {
            return plain::from_str(json);
        }
        let mut values = serde_json::Deserializer::from_str(json);
        let object = O::deserialize(Pruned::new(&mut values, prune.root()))?;
        values.end()?;
        Ok(object)
    }
}

impl<O> Codec<O> {
    /// Returns a codec that calls `decode` with the JSON of one object; the JSON may be invalid.
    pub fn new(decode: impl Fn(&str) -> Result<O, serde_json::Error> + Send + Sync + 'static) -> Self {
        Self {
            decode: Arc::new(decode),
        }
    }

    pub(crate) fn decode(&self, json: &str) -> Result<O, serde_json::Error> {
        (self.decode)(json)
    }
}

impl<O> Clone for Codec<O> {
    fn clone(&self) -> Self {
        Self {
            decode: Arc::clone(&self.decode),
        }
    }
}

impl<O> fmt::Debug for Codec<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}
