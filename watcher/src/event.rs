//! What a watcher tells its consumer, in kube's words.

/// One step in keeping a copy of a collection.
///
/// Between [`Event::Init`] and [`Event::InitDone`] come all objects of a snapshot. Once `InitDone` is there, the set of
/// [`Event::InitApply`] objects since the last `Init` is the server's set at one resourceVersion, and what is missing
/// from it no longer exists. A snapshot that could not be read whole never gets its `InitDone`; the next attempt begins
/// with another `Init`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<K> {
    /// A (re)list begins: forget what an unfinished one has collected. The published set stays valid.
    Init,
    /// An object of the (re)list.
    InitApply(K),
    /// The (re)list is complete: replace the published set.
    InitDone,
    /// An object was added or changed.
    Apply(K),
    /// An object was deleted; this is its last state, with the resourceVersion of the deletion.
    Delete(K),
}

impl<K> Event<K> {
    /// Changes the object, if the event carries one: to drop fields before they are stored.
    #[must_use]
    pub fn modify(mut self, mut change: impl FnMut(&mut K)) -> Self {
        match &mut self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => change(object),
            Self::Init | Self::InitDone => {}
        }
        self
    }

    /// The same event about what `change` makes of its object.
    pub fn map<T>(self, change: impl FnOnce(K) -> T) -> Event<T> {
        match self {
            Self::Init => Event::Init,
            Self::InitApply(object) => Event::InitApply(change(object)),
            Self::InitDone => Event::InitDone,
            Self::Apply(object) => Event::Apply(change(object)),
            Self::Delete(object) => Event::Delete(change(object)),
        }
    }

    /// The object, if it exists on the server: of `InitApply` and `Apply`.
    pub fn into_iter_applied(self) -> impl Iterator<Item = K> {
        match self {
            Self::InitApply(object) | Self::Apply(object) => Some(object),
            Self::Init | Self::InitDone | Self::Delete(_) => None,
        }
        .into_iter()
    }

    /// The object, deleted ones included: of `InitApply`, `Apply` and `Delete`.
    pub fn into_iter_touched(self) -> impl Iterator<Item = K> {
        match self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => Some(object),
            Self::Init | Self::InitDone => None,
        }
        .into_iter()
    }
}

/// The kind of event and the object's name, never its content.
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
