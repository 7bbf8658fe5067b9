//! A set of objects built from events: pure, without locks, readers or wakers.
//!
//! A relist does not build a second set. Unchanged objects are only marked, changed ones are kept aside until the
//! relist is complete, and then unmarked objects are removed: a relist of an unchanged collection costs one mark per
//! object, and readers see the old objects until the relist is complete.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::Delta;
use super::lookup::Lookup;
use crate::event::Event;

/// Function that returns the values of an object in one index.
pub(super) type IndexBy<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Namespace and name, the order of the server's lists. The namespace of cluster-scoped objects is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

/// A key, owned or borrowed, so that lookups do not allocate.
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
    /// Number of the last relist that contained it.
    named_by: u32,
}

/// A relist in progress.
#[derive(Debug)]
struct Relist<K> {
    /// Objects that are new, or differ from the published ones.
    changed: BTreeMap<Key, Arc<K>>,
}

struct Index<K> {
    by: IndexBy<K>,
    found: BTreeMap<String, BTreeMap<Key, Arc<K>>>,
}

/// The published objects, their indexes, and the relist in progress.
pub(super) struct Set<K> {
    entries: BTreeMap<Key, Entry<K>>,
    relist: Option<Relist<K>>,
    /// Number of relists; wraps after 2^32.
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
    /// Applies an event; returns the changes to the published objects, in the order of their names, deletes first.
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

    /// Returns the published object of this name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<K>> {
        let key: &dyn AsKey = &(namespace, name);
        self.entries.get(key).map(|entry| &entry.object)
    }

    /// Returns the published objects, by namespace and name.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<K>> {
        self.entries.values().map(|entry| &entry.object)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if a relist has completed at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Adds an index and returns its number.
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

    /// Returns the published objects with a value in an index.
    pub(super) fn by_index(&self, index: usize, value: &str) -> impl Iterator<Item = &Arc<K>> {
        let found = self.indexes.get(index).and_then(|index| index.found.get(value));
        found.into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the published object if its uid and resourceVersion match.
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
            // A page may contain a changed object and, when read again, the published state of it.
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
            // A delete of an object whose name was taken by another one.
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

/// Returns true for two different objects of one name. Undetectable without uids.
fn is_another<K: Lookup>(one: &K, other: &K) -> bool {
    match (one.uid(), other.uid()) {
        (Some(one), Some(other)) => one != other,
        (Some(_) | None, Some(_) | None) => false,
    }
}

fn inferred<K>(last: Arc<K>) -> Delta<K> {
    Delta::Deleted { last, inferred: true }
}
