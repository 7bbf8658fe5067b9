//! Predicates: hashes of the part of an object that matters. Two states with the same value are considered equal.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kube_core::Resource;

/// Hashes the relevant part of an object; `None`: unknown, so the object always passes.
///
/// Implemented for every `Fn(&K) -> Option<u64>`.
pub trait Predicate<K> {
    /// Returns the value for this state of an object.
    fn hash_property(&self, object: &K) -> Option<u64>;

    /// Returns this value, or that of `fallback` if it is `None`.
    fn fallback<F: Predicate<K>>(self, fallback: F) -> Fallback<Self, F>
    where
        Self: Sized,
    {
        Fallback(self, fallback)
    }

    /// Combines both values: a change of either passes.
    fn combine<F: Predicate<K>>(self, other: F) -> Combine<Self, F>
    where
        Self: Sized,
    {
        Combine(self, other)
    }
}

impl<K, F: Fn(&K) -> Option<u64>> Predicate<K> for F {
    fn hash_property(&self, object: &K) -> Option<u64> {
        self(object)
    }
}

/// Predicate returned by [`Predicate::fallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Fallback<A, B> {
    fn hash_property(&self, object: &K) -> Option<u64> {
        self.0
            .hash_property(object)
            .or_else(|| self.1.hash_property(object))
    }
}

/// Predicate returned by [`Predicate::combine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combine<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Combine<A, B> {
    fn hash_property(&self, object: &K) -> Option<u64> {
        match (self.0.hash_property(object), self.1.hash_property(object)) {
            (None, None) => None,
            both => hash(&both),
        }
    }
}

/// `metadata.generation`: changes of the spec. `None` for kinds without generation: see [`Predicate::fallback`].
pub fn generation<K: Resource>(object: &K) -> Option<u64> {
    object.meta().generation.as_ref().and_then(hash)
}

/// `metadata.resourceVersion`: every change.
pub fn resource_version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref().and_then(hash)
}

/// `metadata.labels`.
pub fn labels<K: Resource>(object: &K) -> Option<u64> {
    hash(&object.meta().labels)
}

/// `metadata.annotations`.
pub fn annotations<K: Resource>(object: &K) -> Option<u64> {
    hash(&object.meta().annotations)
}

/// `metadata.finalizers`.
pub fn finalizers<K: Resource>(object: &K) -> Option<u64> {
    hash(&object.meta().finalizers)
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a predicate")]
fn hash<T: Hash + ?Sized>(value: &T) -> Option<u64> {
    // `DefaultHasher::new` uses constant keys: the same value has the same hash in every run.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    Some(hasher.finish())
}
