//! The objects of the collection, as far as a recording has shown them, and the versions at which they were written.

use std::collections::BTreeMap;

use serde_json::Value;

/// An object at a version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub(crate) version: String,
    pub(crate) uid: String,
    pub(crate) content: Option<Value>,
}

/// A change of the store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Write(String, Object),
    Delete(String, String),
}

/// The objects, by `namespace/name`.
#[derive(Debug, Default)]
pub(crate) struct Store {
    objects: BTreeMap<String, Object>,
    history: Vec<(u64, Change)>,
    /// The newest version that was seen.
    pub(crate) newest: u64,
}

impl Store {
    pub(crate) fn get(&self, key: &str) -> Option<&Object> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> &BTreeMap<String, Object> {
        &self.objects
    }

    /// Returns the objects in the order in which they were written last.
    pub(crate) fn in_order(&self) -> Vec<(&String, &Object)> {
        let mut objects: Vec<_> = self.objects.iter().collect();
        objects.sort_by_key(|(_, object)| number(&object.version));
        objects
    }

    pub(crate) fn saw(&mut self, version: &str) {
        self.newest = self.newest.max(number(version));
    }

    /// Makes a change. Returns false if it is known already.
    pub(crate) fn change(&mut self, change: Change) -> bool {
        let version = match &change {
            Change::Write(key, object) => {
                let known = self.objects.get(key);
                let is_known = known.is_some_and(|known| number(&known.version) >= number(&object.version));
                if is_known && !object.version.is_empty() {
                    return false;
                }
                self.objects.insert(key.clone(), object.clone());
                number(&object.version)
            }
            Change::Delete(key, version) => {
                if self.objects.remove(key).is_none() {
                    return false;
                }
                number(version)
            }
        };
        self.newest = self.newest.max(version);
        self.history.push((version, change));
        true
    }

    /// Goes back to a version.
    pub(crate) fn restore(&mut self, to: u64) {
        let history = std::mem::take(&mut self.history);
        *self = Self::default();
        for (_, change) in history.into_iter().filter(|(version, _)| *version <= to) {
            self.change(change);
        }
        self.newest = to;
    }

    /// Returns the changes that lead to these objects, a complete list at `version`; deletions first.
    pub(crate) fn changes_to(&self, listed: &BTreeMap<String, Object>, version: &str) -> Vec<Change> {
        let gone = self.objects.keys().filter(|key| !listed.contains_key(*key));
        let gone = gone.map(|key| Change::Delete(key.clone(), version.to_owned()));
        let mut written: Vec<(&String, &Object)> = listed
            .iter()
            .filter(|(key, object)| {
                let known = self.objects.get(*key);
                known.is_none_or(|known| number(&known.version) < number(&object.version))
            })
            .collect();
        written.sort_by_key(|(_, object)| number(&object.version));
        let written = written
            .into_iter()
            .map(|(key, object)| Change::Write(key.clone(), object.clone()));
        gone.chain(written).collect()
    }
}

/// Versions can be compared as numbers (KEP-5504); what is none is older than all.
pub(crate) fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}
