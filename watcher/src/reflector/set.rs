//! A set of objects as events build it up: pure, without locks, readers or wakers.
//!
//! A relist does not build a second set beside the first. What it names again unchanged is only marked, what it changes
//! is kept aside until it is complete, and then the marks tell what is gone: a relist of an unchanged set costs a mark
//! an object, and readers see the old set until the moment the new one is whole.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::Delta;
use super::lookup::Lookup;
use crate::event::Event;

/// The values an object is found by in one index.
pub(super) type IndexBy<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Namespace and name: what the server orders lists by. Cluster-scoped objects have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

/// A key, owned or not, so that a set can be asked without building one.
pub(super) trait AsKey {
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
}

impl AsKey for Key {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl AsKey for (&str, &str) {
    fn namespace(&self) -> &str {
        self.0
    }

    fn name(&self) -> &str {
        self.1
    }
}

impl PartialEq for dyn AsKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn AsKey + '_ {}

impl PartialOrd for dyn AsKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AsKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (self as &dyn AsKey).cmp(other as &dyn AsKey)
    }
}

impl<'a> Borrow<dyn AsKey + 'a> for Key {
    fn borrow(&self) -> &(dyn AsKey + 'a) {
        self
    }
}

impl Key {
    pub(super) fn of<K: Lookup>(object: &K) -> Self {
        Self {
            namespace: object.namespace().as_deref().unwrap_or_default().into(),
            name: object.name().as_deref().unwrap_or_default().into(),
        }
    }
}

#[derive(Debug)]
struct Entry<K> {
    object: Arc<K>,
    /// The relist that named it last.
    named_by: u32,
}

/// A relist that is under way.
#[derive(Debug)]
struct Relist<K> {
    /// Objects that are new, or differ from the published ones.
    changed: BTreeMap<Key, Arc<K>>,
}

struct Index<K> {
    by: IndexBy<K>,
    found: BTreeMap<String, BTreeMap<Key, Arc<K>>>,
}

/// The published set, its indexes, and the relist under way.
pub(super) struct Set<K> {
    entries: BTreeMap<Key, Entry<K>>,
    relist: Option<Relist<K>>,
    /// Counts relists; wraps after four thousand million.
    relists: u32,
    indexes: Vec<Index<K>>,
    is_complete: bool,
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            relist: None,
            relists: 0,
            indexes: Vec::new(),
            is_complete: false,
        }
    }
}

impl<K: Lookup> Set<K> {
    /// Takes in an event; tells what it changed in the published set, in the order of the names, deletes first.
    pub(super) fn apply(&mut self, event: Event<Arc<K>>) -> Vec<Delta<K>> {
        match event {
            Event::Init => {
                self.relists = self.relists.wrapping_add(1);
                self.relist = Some(Relist {
                    changed: BTreeMap::new(),
                });
                Vec::new()
            }
            Event::InitApply(object) => {
                self.name_again(object);
                Vec::new()
            }
            Event::InitDone => self.publish(),
            Event::Apply(object) => self.insert(Key::of(&*object), object),
            Event::Delete(object) => self.delete(object),
        }
    }

    /// The published object of this name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<K>> {
        let key: &dyn AsKey = &(namespace, name);
        self.entries.get(key).map(|entry| &entry.object)
    }

    /// The published objects, by namespace and name.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<K>> {
        self.entries.values().map(|entry| &entry.object)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A relist came to its end at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Adds an index and gives its number.
    pub(super) fn add_index(&mut self, by: IndexBy<K>) -> usize {
        let mut index = Index {
            by,
            found: BTreeMap::new(),
        };
        for (key, entry) in &self.entries {
            index.insert(key, &entry.object);
        }
        self.indexes.push(index);
        self.indexes.len() - 1
    }

    /// The published objects an index finds by a value.
    pub(super) fn by_index(&self, index: usize, value: &str) -> impl Iterator<Item = &Arc<K>> {
        let found = self.indexes.get(index).and_then(|index| index.found.get(value));
        found.into_iter().flat_map(BTreeMap::values)
    }

    /// The published object, if it is this very state of it.
    pub(super) fn same(&self, namespace: &str, name: &str, uid: &str, version: &str) -> Option<&Arc<K>> {
        let object = self.get(namespace, name)?;
        let is_same = |field: Option<Cow<'_, str>>, wanted: &str| {
            !wanted.is_empty() && field.as_deref() == Some(wanted)
        };
        (is_same(object.uid(), uid) && is_same(object.resource_version(), version)).then_some(object)
    }

    fn name_again(&mut self, object: Arc<K>) {
        let (namespace, name) = (
            object.namespace().unwrap_or_default(),
            object.name().unwrap_or_default(),
        );
        let is_same = self
            .same(
                &namespace,
                &name,
                &object.uid().unwrap_or_default(),
                &object.resource_version().unwrap_or_default(),
            )
            .is_some();
        let key: &dyn AsKey = &(&*namespace, &*name);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.named_by = self.relists;
        }
        let Some(relist) = &mut self.relist else {
            return;
        };
        if is_same {
            // A page may bring an object that changed and, read again, the same object as it is published.
            relist.changed.remove(key);
        } else {
            let key = Key::of(&*object);
            drop((namespace, name));
            relist.changed.insert(key, object);
        }
    }

    fn publish(&mut self) -> Vec<Delta<K>> {
        let Some(relist) = self.relist.take() else {
            return Vec::new();
        };
        self.is_complete = true;
        let gone: Vec<Key> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.named_by != self.relists)
            .map(|(key, _)| key.clone())
            .collect();
        let mut deltas = Vec::with_capacity(gone.len() + relist.changed.len());
        for key in gone {
            deltas.extend(self.remove(&key).map(inferred));
        }
        for (key, object) in relist.changed {
            deltas.extend(self.insert(key, object));
        }
        deltas
    }

    fn insert(&mut self, key: Key, object: Arc<K>) -> Vec<Delta<K>> {
        for index in &mut self.indexes {
            if let Some(entry) = self.entries.get(&key) {
                index.remove(&key, &entry.object);
            }
            index.insert(&key, &object);
        }
        let entry = Entry {
            object: Arc::clone(&object),
            named_by: self.relists,
        };
        match self.entries.insert(key, entry) {
            None => vec![Delta::Added(object)],
            Some(Entry { object: old, .. }) if is_another(&*old, &*object) => {
                vec![inferred(old), Delta::Added(object)]
            }
            Some(Entry { object: old, .. }) => vec![Delta::Modified { old, new: object }],
        }
    }

    fn delete(&mut self, last: Arc<K>) -> Vec<Delta<K>> {
        let key = Key::of(&*last);
        if let Some(relist) = &mut self.relist {
            relist.changed.remove(&key);
        }
        match self.entries.get(&key) {
            // The end of an object whose name has another one by now.
            Some(entry) if is_another(&*entry.object, &*last) => Vec::new(),
            Some(_) => {
                self.remove(&key);
                vec![Delta::Deleted {
                    last,
                    inferred: false,
                }]
            }
            None => Vec::new(),
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let entry = self.entries.remove(key)?;
        for index in &mut self.indexes {
            index.remove(key, &entry.object);
        }
        Some(entry.object)
    }
}

impl<K> Index<K> {
    fn insert(&mut self, key: &Key, object: &Arc<K>) {
        for value in (self.by)(object) {
            self.found
                .entry(value)
                .or_default()
                .insert(key.clone(), Arc::clone(object));
        }
    }

    fn remove(&mut self, key: &Key, object: &Arc<K>) {
        for value in (self.by)(object) {
            if let Some(found) = self.found.get_mut(&value) {
                found.remove(key);
                if found.is_empty() {
                    self.found.remove(&value);
                }
            }
        }
    }
}

/// Two objects that had one name, one after the other. Without uids nobody can tell.
fn is_another<K: Lookup>(one: &K, other: &K) -> bool {
    match (one.uid(), other.uid()) {
        (Some(one), Some(other)) => one != other,
        (Some(_) | None, Some(_) | None) => false,
    }
}

fn inferred<K>(last: Arc<K>) -> Delta<K> {
    Delta::Deleted { last, inferred: true }
}
