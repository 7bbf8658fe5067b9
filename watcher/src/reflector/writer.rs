//! The write half of a store: applies events in order and publishes the changes.

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

/// The write half of a [`Store`]. Not clonable; when it is dropped, the store keeps its objects, waiters receive
/// [`WriterDropped`](super::WriterDropped), and subscribers end.
pub struct Writer<K: Lookup> {
    shared: Arc<Shared<K>>,
}

impl<K: Lookup> Writer<K> {
    /// Creates a writer with an empty store. Takes no dynamic type: keys are names.
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

    /// Returns the read half.
    pub fn as_reader(&self) -> Store<K> {
        Store {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Same as [`Store::subscribe`].
    pub fn subscribe(&self) -> Subscriber<K> {
        self.as_reader().subscribe()
    }

    /// Links the watcher that the events come from, so that [`Store::synced`] reports its progress.
    pub fn follow(&mut self, progress: Progress) {
        *lock(&self.shared.progress) = Some(progress);
    }

    /// Applies an event; returns the changes, which readers and subscribers already see.
    ///
    /// A relist changes nothing until its [`Event::InitDone`], which applies all changes at once.
    pub fn apply(&mut self, event: Event<K>) -> Vec<Delta<K>> {
        self.apply_shared(event.map(Arc::new))
    }

    /// Same as [`apply`](Self::apply), for objects already in an `Arc`.
    pub fn apply_shared(&mut self, event: Event<Arc<K>>) -> Vec<Delta<K>> {
        let is_done = matches!(event, Event::InitDone);
        let (deltas, woken) = {
            let mut set = write(&self.shared.set);
            let deltas = set.apply(event);
            let woken = if deltas.is_empty() {
                Vec::new()
            } else {
                self.shared.subscribers.notify(&deltas)
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

    /// Same as [`apply`](Self::apply), for an event that is also used elsewhere.
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
            // Locked so that no subscriber is added while the others are closed.
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
