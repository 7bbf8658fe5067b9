//! View of a request on stored objects: its selector, and the version of its path.

use std::borrow::Cow;
use std::sync::Arc;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::selector::Selector;

use super::conversions::Conversions;

/// The view of one request.
pub(super) struct View<'a> {
    /// The requested kind, which may be another version than the stored one.
    pub(super) kind: &'a KindRef,
    /// Objects that a webhook converted.
    pub(super) conversions: &'a Conversions,
    /// Selector, which reads the converted object.
    pub(super) selector: &'a Selector,
}

impl watchcache::View<Stored> for View<'_> {
    fn selects(&self, object: &Stored) -> bool {
        self.selector.matches(object)
    }

    fn convert<'a>(&self, object: &'a Arc<Stored>) -> Cow<'a, Arc<Stored>> {
        if object.kind == *self.kind {
            Cow::Borrowed(object)
        } else {
            Cow::Owned(self.conversions.as_kind(object, self.kind))
        }
    }
}
