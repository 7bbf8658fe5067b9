//! What of an object matters to a consumer: two states with the same value are the same to it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kube_core::Resource;

/// Gives a value for what matters of an object; `None`: nothing can be told, and the object always matters.
///
/// Any `Fn(&K) -> Option<u64>` is one.
pub trait Predicate<K> {
    /// The value of this state of an object.
    fn hash_property(&self, object: &K) -> Option<u64>;

    /// This one, and `fallback` where it has no value.
    fn fallback<F: Predicate<K>>(self, fallback: F) -> Fallback<Self, F>
    where
        Self: Sized,
    {
        Fallback(self, fallback)
    }

    /// Both: what changes either matters.
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

/// From [`Predicate::fallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Fallback<A, B> {
    fn hash_property(&self, object: &K) -> Option<u64> {
        self.0
            .hash_property(object)
            .or_else(|| self.1.hash_property(object))
    }
}

/// From [`Predicate::combine`].
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

/// `metadata.generation`: changes of the spec. Kinds without generations have no value: see [`Predicate::fallback`].
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

#[expect(
    clippy::unnecessary_wraps,
    reason = "a predicate gives an Option, and this ends them"
)]
fn hash<T: Hash + ?Sized>(value: &T) -> Option<u64> {
    // Its keys are constants: the same value has the same hash in every run.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    Some(hasher.finish())
}
