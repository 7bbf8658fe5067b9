//! The read half of a store: cheap to clone; blocks at most while one event is applied.

use std::fmt;
use std::sync::Arc;

use kube_core::{Resource, Selector, SelectorExt};

use super::lookup::{Lookup, ObjectRef};
use super::ready::{Ready, WriterDropped};
use super::set::{IndexBy, Set};
use super::subscriber::{Subscriber, Subscribers};
use super::sync::{Mutex, RwLock, lock, read, write};
use crate::object::Identity;
use crate::progress::{Progress, Synced};

/// State shared by a store and its writer.
pub(super) struct Shared<K> {
    pub(super) set: RwLock<Set<K>>,
    pub(super) ready: Ready,
    /// Accessed only while `set` is locked, so that a new subscriber neither misses nor repeats a change.
    pub(super) subscribers: Subscribers<K>,
    pub(super) progress: Mutex<Option<Progress>>,
}

/// A collection of objects that a [`Writer`](super::Writer) keeps in sync with the server.
///
/// Readers see the objects as of some event, never a partial relist. Before the first relist is complete the store is
/// empty or contains only objects of single events: wait until it is [ready](Self::wait_until_ready). Objects are
/// sorted by namespace and name.
pub struct Store<K> {
    pub(super) shared: Arc<Shared<K>>,
}

impl<K: Lookup> Store<K> {
    /// Waits until the first snapshot is complete. Any number of tasks may wait.
    ///
    /// # Errors
    /// If the writer is dropped first.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        self.shared.ready.wait().await
    }

    /// Returns true if a snapshot has completed.
    pub fn is_ready(&self) -> bool {
        self.shared.ready.outcome() == Some(Ok(()))
    }

    /// Returns the resourceVersion at which the store equals the server, and when bytes last arrived; `None` before
    /// the first snapshot is complete, and for a writer that does not [follow](super::Writer::follow) a watcher.
    pub fn synced(&self) -> Option<Synced> {
        lock(&self.shared.progress).as_ref().and_then(Progress::synced)
    }

    /// Returns the object of this name. The namespace of a reference to a cluster-scoped object is ignored.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        set.get(namespace, &reference.name)
            .or_else(|| set.get("", &reference.name))
            .cloned()
    }

    /// Returns the object if its uid and resourceVersion match.
    pub(crate) fn same(&self, id: &Identity<'_>) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        set.same(&id.namespace, &id.name, &id.uid, &id.resource_version)
            .cloned()
    }

    /// Returns all objects.
    pub fn state(&self) -> Vec<Arc<K>> {
        read(&self.shared.set).objects().cloned().collect()
    }

    /// Returns the first object that satisfies the predicate. The predicate runs under the store's lock and must not
    /// block.
    pub fn find(&self, mut predicate: impl FnMut(&K) -> bool) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        set.objects().find(|object| predicate(object)).cloned()
    }

    /// Returns the objects that satisfy the predicate. The predicate runs under the store's lock and must not block.
    pub fn state_filter(&self, mut predicate: impl FnMut(&K) -> bool) -> Vec<Arc<K>> {
        let set = read(&self.shared.set);
        set.objects()
            .filter(|object| predicate(object))
            .cloned()
            .collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        read(&self.shared.set).len()
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an index: finds objects by the values that `by` returns for them. Covers existing and future objects.
    ///
    /// `by` must depend only on the object. It runs under the store's lock and must neither block nor access the
    /// store.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watcher::reflector::{ObjectRef, Writer};
    /// # let mut writer = Writer::<Pod>::default();
    /// let pods = writer.as_reader();
    /// let by_node = pods.index(|pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
    /// assert!(by_node.get("worker-1").is_empty());
    /// ```
    pub fn index(&self, by: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Index<K> {
        let by: IndexBy<K> = Box::new(by);
        Index {
            number: write(&self.shared.set).add_index(by),
            store: self.clone(),
        }
    }

    /// Subscribes to changes. The stream starts with the current objects.
    pub fn subscribe(&self) -> Subscriber<K> {
        let set = read(&self.shared.set);
        self.shared.subscribers.add(set.objects())
    }
}

impl<K: Resource> Store<K> {
    /// Returns the objects that match a label selector.
    pub fn state_filter_selector(&self, selector: &Selector) -> Vec<Arc<K>> {
        let none = std::collections::BTreeMap::new();
        self.state_filter(|object| selector.matches(object.meta().labels.as_ref().unwrap_or(&none)))
    }
}

/// An index of a store, from [`Store::index`]. Cheap to clone; the index lives as long as the store.
pub struct Index<K> {
    store: Store<K>,
    number: usize,
}

impl<K: Lookup> Index<K> {
    /// Returns the objects with this value.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let set = read(&self.store.shared.set);
        set.by_index(self.number, value).cloned().collect()
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            number: self.number,
        }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
