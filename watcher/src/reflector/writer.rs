//! The one that writes a store: takes events in, in order, and tells what they changed.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use super::delta::Delta;
use super::lookup::Lookup;
use super::ready::{Ready, WriterDropped};
use super::set::Set;
use super::store::{Shared, Store};
use super::subscriber::{Subscriber, Subscribers};
use super::sync::{Mutex, RwLock, lock, write};
use crate::event::Event;
use crate::progress::Progress;

/// The writing half of a [`Store`]. There is one; when it is dropped, the store keeps what it has, waiters are told, and
/// subscribers end.
pub struct Writer<K: Lookup> {
    shared: Arc<Shared<K>>,
}

impl<K: Lookup> Writer<K> {
    /// An empty store's writer. Kinds known only at run time need nothing more: keys are names.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                set: RwLock::new(Set::default()),
                ready: Ready::default(),
                subscribers: Subscribers::default(),
                progress: Mutex::new(None),
            }),
        }
    }

    /// The reading half.
    pub fn as_reader(&self) -> Store<K> {
        Store {
            shared: Arc::clone(&self.shared),
        }
    }

    /// As [`Store::subscribe`].
    pub fn subscribe(&self) -> Subscriber<K> {
        self.as_reader().subscribe()
    }

    /// The events come from the watcher of this progress, so that the store can say up to where it is synced.
    pub fn follow(&mut self, progress: Progress) {
        *lock(&self.shared.progress) = Some(progress);
    }

    /// Takes an event in; gives what it changed in the set, which readers and subscribers have by then.
    ///
    /// A relist changes nothing until its [`Event::InitDone`], and then everything at once.
    pub fn apply(&mut self, event: Event<K>) -> Vec<Delta<K>> {
        self.apply_shared(event.map(Arc::new))
    }

    /// As [`apply`](Self::apply), of objects that are shared already.
    pub fn apply_shared(&mut self, event: Event<Arc<K>>) -> Vec<Delta<K>> {
        let is_done = matches!(event, Event::InitDone);
        let (deltas, woken) = {
            let mut set = write(&self.shared.set);
            let deltas = set.apply(event);
            let woken = if deltas.is_empty() {
                Vec::new()
            } else {
                self.shared.subscribers.tell(&deltas)
            };
            if is_done && set.is_complete() {
                drop(set);
                self.shared.ready.settle(Ok(()));
            }
            (deltas, woken)
        };
        woken.into_iter().for_each(Waker::wake);
        deltas
    }

    /// As [`apply`](Self::apply), of an event that is needed elsewhere too.
    pub fn apply_watcher_event(&mut self, event: &Event<K>)
    where
        K: Clone,
    {
        self.apply(event.clone());
    }
}

impl<K: Lookup> Default for Writer<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Lookup> Drop for Writer<K> {
    fn drop(&mut self) {
        let woken = {
            // No subscriber comes while the others are told that it is over.
            let _set = write(&self.shared.set);
            self.shared.subscribers.close()
        };
        woken.into_iter().for_each(Waker::wake);
        self.shared.ready.settle(Err(WriterDropped));
    }
}

impl<K: Lookup> fmt::Debug for Writer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
