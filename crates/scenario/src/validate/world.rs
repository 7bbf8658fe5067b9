//! Tracks which objects exist at each step, as far as the file determines it.

use std::collections::BTreeSet;

use crate::{Manifest, ObjectName, Target};

/// Limit on the total size of a scenario's objects: `repeat:` and `filler:` multiply.
const LARGEST_STORE: usize = 512 << 20;

/// The objects that exist, as far as the file determines it.
#[derive(Debug)]
pub(super) struct World {
    target: Target,
    /// Whether the target's kind is namespaced.
    namespaced: bool,
    /// Number of the target's objects in the store.
    count_of_target: usize,
    /// Objects in the store.
    present: BTreeSet<Identity>,
    /// Objects that were in the store at any time, or sent by the script.
    ever: BTreeSet<Identity>,
    /// Texts that the script sends verbatim: they may contain any object.
    raw: Vec<String>,
    /// Approximate size of all objects written.
    written: usize,
    /// The store was restored, so its content is unknown.
    restored: bool,
    /// The server is already running and may have objects that are not in the file.
    running: bool,
}

/// Resource (plural with group) and `namespace/name`.
type Identity = (String, String);

impl World {
    pub(super) fn new(target: &Target, namespaced: bool) -> Self {
        Self {
            target: target.clone(),
            namespaced,
            count_of_target: 0,
            present: BTreeSet::new(),
            ever: BTreeSet::new(),
            raw: Vec::new(),
            written: 0,
            restored: false,
            running: false,
        }
    }

    /// Returns the default namespace of objects.
    pub(super) fn namespace(&self) -> String {
        self.target
            .namespace
            .clone()
            .unwrap_or_else(|| String::from("default"))
    }

    pub(super) fn target_resource(&self) -> String {
        self.target.resource()
    }

    /// Returns the current number of the target's objects, in all namespaces.
    pub(super) fn count_of_target(&self) -> usize {
        self.count_of_target
    }

    pub(super) fn may_hold_anything(&mut self, text: String) {
        self.raw.push(text);
    }

    pub(super) fn restore(&mut self) {
        self.restored = true;
    }

    /// Marks the server as running: it may have objects that are not in the file.
    pub(super) fn run(&mut self) {
        self.restored = true;
        self.running = true;
    }

    /// Returns whether the object exists now; `None` if unknown.
    pub(super) fn has(&self, object: &ObjectName) -> Option<bool> {
        let present = self.present.contains(&identity(object));
        if self.restored {
            present.then_some(true)
        } else {
            Some(present)
        }
    }

    /// Returns whether the object ever existed.
    pub(super) fn had(&self, object: &ObjectName) -> bool {
        self.ever.contains(&identity(object))
    }

    pub(super) fn remove(&mut self, object: &ObjectName) {
        let identity = identity(object);
        let target = self.target_resource();
        let mut gone = vec![identity.clone()];
        if object.plural == "customresourcedefinitions" {
            let defined = self
                .present
                .iter()
                .filter(|(resource, _)| *resource == object.name);
            gone.extend(defined.cloned());
        }
        for identity in gone {
            if self.present.remove(&identity) && identity.0 == target {
                self.count_of_target -= 1;
            }
        }
    }

    /// Adds to the total size; returns false if the limit is exceeded.
    pub(super) fn may_hold(&mut self, bytes: usize) -> bool {
        self.written = self.written.saturating_add(bytes);
        self.written <= LARGEST_STORE
    }

    pub(super) fn add(&mut self, manifest: &Manifest) {
        let identity = identity_of(manifest);
        if self.present.insert(identity.clone()) && identity.0 == self.target_resource() {
            self.count_of_target += 1;
        }
        self.ever.insert(identity);
    }

    /// Returns whether an object of the target with `key` (`name` or `namespace/name`) existed at any time so far.
    pub(super) fn knows(&self, key: &str) -> bool {
        let whole = self.whole_key(key);
        let name = key.rsplit('/').next().unwrap_or(key);
        self.running
            || self.ever.contains(&(self.target_resource(), whole))
            || self.raw.iter().any(|text| text.contains(name))
    }

    /// Returns `name` as `namespace/name` if the target is namespaced.
    fn whole_key(&self, key: &str) -> String {
        if !self.namespaced || key.contains('/') {
            key.to_owned()
        } else {
            format!("{}/{key}", self.namespace())
        }
    }

    /// Returns the names of the target's objects, for suggestions.
    pub(super) fn names_of_target(&self) -> Vec<&str> {
        let target = self.target_resource();
        let names = self.ever.iter().filter(|(resource, _)| *resource == target);
        names
            .map(|(_, key)| key.rsplit('/').next().unwrap_or(key))
            .collect()
    }
}

fn identity(object: &ObjectName) -> Identity {
    (object.resource(), object.key())
}

fn identity_of(manifest: &Manifest) -> Identity {
    identity(&manifest.object_name())
}
