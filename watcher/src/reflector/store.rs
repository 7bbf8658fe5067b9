//! The readers' side of a set: cheap to clone, never blocked for longer than an event takes to be applied.

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

/// What a store and its writer share.
pub(super) struct Shared<K> {
    pub(super) set: RwLock<Set<K>>,
    pub(super) ready: Ready,
    /// Touched only while `set` is locked, so that nobody who comes misses or doubles a change.
    pub(super) subscribers: Subscribers<K>,
    pub(super) progress: Mutex<Option<Progress>>,
}

/// A set of objects that a [`Writer`](super::Writer) keeps in step with the server.
///
/// Readers see the set as it was after some event, never half of a relist. Before the first relist is complete it is
/// empty, or what single events told: wait until it is [ready](Self::wait_until_ready). Objects come in the order of
/// their namespaces and names.
pub struct Store<K> {
    pub(super) shared: Arc<Shared<K>>,
}

impl<K: Lookup> Store<K> {
    /// Waits until the set is complete for the first time. Any number of tasks may wait.
    ///
    /// # Errors
    /// If the writer is dropped before.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        self.shared.ready.wait().await
    }

    /// Was the set ever complete?
    pub fn is_ready(&self) -> bool {
        self.shared.ready.outcome() == Some(Ok(()))
    }

    /// Up to which resourceVersion the set is the server's, and when the server was last heard; `None` before the first
    /// set is complete, and for a writer that does not [follow](super::Writer::follow) a watcher.
    pub fn synced(&self) -> Option<Synced> {
        lock(&self.shared.progress).as_ref().and_then(Progress::synced)
    }

    /// The object of this name. For a reference with a namespace to a cluster-scoped object: that object.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        set.get(namespace, &reference.name)
            .or_else(|| set.get("", &reference.name))
            .cloned()
    }

    /// The object, if this very state of it is published.
    pub(crate) fn same(&self, id: &Identity<'_>) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        set.same(&id.namespace, &id.name, &id.uid, &id.resource_version)
            .cloned()
    }

    /// All objects.
    pub fn state(&self) -> Vec<Arc<K>> {
        read(&self.shared.set).objects().cloned().collect()
    }

    /// The first object the predicate holds for. It runs under the store's lock and must not wait.
    pub fn find(&self, mut predicate: impl FnMut(&K) -> bool) -> Option<Arc<K>> {
        let set = read(&self.shared.set);
        set.objects().find(|object| predicate(object)).cloned()
    }

    /// The objects the predicate holds for. It runs under the store's lock and must not wait.
    pub fn state_filter(&self, mut predicate: impl FnMut(&K) -> bool) -> Vec<Arc<K>> {
        let set = read(&self.shared.set);
        set.objects()
            .filter(|object| predicate(object))
            .cloned()
            .collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        read(&self.shared.set).len()
    }

    /// Is there no object?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an index: objects are found by the values `by` gives for them, from now on and as they are now.
    ///
    /// `by` depends on the object alone and runs under the store's lock: it must not wait, nor touch the store.
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

    /// Hears of every change from now on, after what is there now.
    pub fn subscribe(&self) -> Subscriber<K> {
        let set = read(&self.shared.set);
        self.shared.subscribers.add(set.objects())
    }
}

impl<K: Resource> Store<K> {
    /// The objects with labels that a selector selects.
    pub fn state_filter_selector(&self, selector: &Selector) -> Vec<Arc<K>> {
        let none = std::collections::BTreeMap::new();
        self.state_filter(|object| selector.matches(object.meta().labels.as_ref().unwrap_or(&none)))
    }
}

/// Finds objects by a value; from [`Store::index`]. Cheap to clone; the index lives as long as the store.
pub struct Index<K> {
    store: Store<K>,
    number: usize,
}

impl<K: Lookup> Index<K> {
    /// The objects with this value.
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
