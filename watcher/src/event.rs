//! Watcher events, named as in kube-runtime.

/// A change to a local copy of a collection.
///
/// [`Event::Init`] and [`Event::InitDone`] enclose all objects of a snapshot. After `InitDone`, the
/// [`Event::InitApply`] objects since the last `Init` are the server's objects at one resourceVersion; objects
/// missing from it no longer exist. An interrupted snapshot gets no `InitDone`; the next attempt starts with another
/// `Init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<K> {
    /// A (re)list starts: discard the objects of an unfinished one. The published objects stay valid.
    Init,
    /// An object of the (re)list.
    InitApply(K),
    /// The (re)list is complete: replace the published objects.
    InitDone,
    /// An object was added or changed.
    Apply(K),
    /// An object was deleted. Carries its last state, with the resourceVersion of the deletion.
    Delete(K),
}

impl<K> Event<K> {
    /// Modifies the object, if the event carries one: e.g. to drop fields before storing it.
    #[must_use]
    pub fn modify(mut self, mut change: impl FnMut(&mut K)) -> Self {
        match &mut self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => change(object),
            Self::Init | Self::InitDone => {}
        }
        self
    }

    /// Maps the object with `change`.
    pub fn map<T>(self, change: impl FnOnce(K) -> T) -> Event<T> {
        match self {
            Self::Init => Event::Init,
            Self::InitApply(object) => Event::InitApply(change(object)),
            Self::InitDone => Event::InitDone,
            Self::Apply(object) => Event::Apply(change(object)),
            Self::Delete(object) => Event::Delete(change(object)),
        }
    }

    /// Returns the object if it exists on the server: of `InitApply` and `Apply`.
    pub fn into_iter_applied(self) -> impl Iterator<Item = K> {
        match self {
            Self::InitApply(object) | Self::Apply(object) => Some(object),
            Self::Init | Self::InitDone | Self::Delete(_) => None,
        }
        .into_iter()
    }

    /// Returns the object, including deleted ones: of `InitApply`, `Apply` and `Delete`.
    pub fn into_iter_touched(self) -> impl Iterator<Item = K> {
        match self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => Some(object),
            Self::Init | Self::InitDone => None,
        }
        .into_iter()
    }
}

/// Prints the event type and the object's name, never its content.
#[cfg(feature = "client")]
impl<K: kube_core::Resource> std::fmt::Display for Event<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |object: &K| object.meta().name.clone().unwrap_or_default();
        match self {
            Self::Init => f.write_str("Init"),
            Self::InitApply(object) => write!(f, "InitApply({})", name(object)),
            Self::InitDone => f.write_str("InitDone"),
            Self::Apply(object) => write!(f, "Apply({})", name(object)),
            Self::Delete(object) => write!(f, "Delete({})", name(object)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Event::Init, &[], &[])]
    #[case(Event::InitApply(1), &[1], &[1])]
    #[case(Event::InitDone, &[], &[])]
    #[case(Event::Apply(2), &[2], &[2])]
    #[case(Event::Delete(3), &[], &[3])]
    fn applied_leaves_deletes_out_and_touched_keeps_them(
        #[case] event: Event<u8>,
        #[case] applied: &[u8],
        #[case] touched: &[u8],
    ) {
        assert_eq!(event.clone().into_iter_applied().collect::<Vec<_>>(), applied);
        assert_eq!(event.clone().into_iter_touched().collect::<Vec<_>>(), touched);
        let changed: Vec<u8> = event.modify(|object| *object += 10).into_iter_touched().collect();
        assert_eq!(
            changed,
            touched.iter().map(|object| object + 10).collect::<Vec<_>>()
        );
    }
}
