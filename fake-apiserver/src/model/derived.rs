//! Cache of a value computed from the objects of resources, valid until one of them changes. It must not know the value.

use std::sync::{Arc, Mutex, PoisonError};

use super::Objects;

/// The last value, with the objects it was computed from.
#[derive(Debug)]
pub(super) struct Derived<T>(Mutex<Option<(Vec<Objects>, Arc<T>)>>);

impl<T> Default for Derived<T> {
    /// No value.
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Derived<T> {
    /// Returns the last value if it was computed from the same `objects`, else the result of `compute`.
    pub(super) fn of(&self, objects: &[&Objects], compute: impl FnOnce() -> T) -> Arc<T> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, value)) = last.as_ref()
            && from.len() == objects.len()
            && from.iter().zip(objects).all(|(one, other)| one.ptr_eq(other))
        {
            return Arc::clone(value);
        }
        let value = Arc::new(compute());
        let from = objects.iter().map(|objects| (*objects).clone());
        *last = Some((from.collect(), Arc::clone(&value)));
        value
    }
}
