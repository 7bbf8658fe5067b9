//! What this crate needs of an object, and what a request sees of it. It must not know what else an object contains.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use apimachinery::object::Stored;

/// One version of an object.
pub trait Object: fmt::Debug + Sized {
    /// Key: `namespace/name`, or `name` for cluster-scoped objects. Lists are in bytewise order of keys.
    fn key(&self) -> &str;

    /// Returns the same content at another revision: what DELETED events carry.
    fn at_revision(&self, revision: u64) -> Self;

    /// Approximate memory in bytes. The limits of history count it.
    fn weight(&self) -> usize;
}

impl Object for Stored {
    fn key(&self) -> &str {
        &self.key
    }

    fn at_revision(&self, revision: u64) -> Self {
        self.at_revision(revision)
    }

    fn weight(&self) -> usize {
        self.weight()
    }
}

/// What one request sees of the objects: its selector, and its API version.
///
/// A closure `|object: &O| …` is a view that selects and does not convert.
pub trait View<O> {
    /// Does the selector match this object, which is converted already?
    fn selects(&self, object: &O) -> bool;

    /// Returns the object in the version of the request; borrowed if that is the stored one.
    fn convert<'a>(&self, object: &'a Arc<O>) -> Cow<'a, Arc<O>> {
        Cow::Borrowed(object)
    }
}

impl<O, F: Fn(&O) -> bool> View<O> for F {
    fn selects(&self, object: &O) -> bool {
        self(object)
    }
}

/// Is an object of this key in the namespace (`None`: all namespaces)?
pub(crate) fn in_namespace(key: &str, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| {
        let rest = key.strip_prefix(namespace);
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}
