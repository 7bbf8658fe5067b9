//! Which objects there are at each moment, as far as the file alone can tell.

use std::collections::BTreeSet;

use crate::{Manifest, ObjectName, Target};

/// No scenario's objects take more: `repeat:` and `filler:` multiply.
const LARGEST_STORE: usize = 512 << 20;

/// Which objects there are, as far as the file alone can tell.
#[derive(Debug)]
pub(super) struct World {
    target: Target,
    /// Do objects of the target's kind live in namespaces?
    namespaced: bool,
    /// Objects of the target's kind in the store now, counted as they come and go.
    count_of_target: usize,
    /// In the store now.
    present: BTreeSet<Identity>,
    /// Ever in the store, or put on the wire by the script.
    ever: BTreeSet<Identity>,
    /// Texts the script puts on the wire as they are: they may hold any object.
    raw: Vec<String>,
    /// Bytes of all objects written, roughly.
    written: usize,
    /// The store went back to an earlier state: what is there cannot be told.
    restored: bool,
    /// Whatever the file writes, the server may have other objects too.
    running: bool,
}

/// Plural with group, and `namespace/name`.
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

    /// The namespace of an object that names none.
    pub(super) fn namespace(&self) -> String {
        self.target
            .namespace
            .clone()
            .unwrap_or_else(|| String::from("default"))
    }

    pub(super) fn target_resource(&self) -> String {
        resource(&self.target.group, &self.target.plural)
    }

    /// Objects of the target's kind, in all namespaces, now.
    pub(super) fn count_of_target(&self) -> usize {
        self.count_of_target
    }

    pub(super) fn may_hold_anything(&mut self, text: String) {
        self.raw.push(text);
    }

    pub(super) fn restore(&mut self) {
        self.restored = true;
    }

    /// The server has been running for a while: its objects are not those of a file.
    pub(super) fn run(&mut self) {
        self.restored = true;
        self.running = true;
    }

    /// Is the object there now? `None`: it cannot be told.
    pub(super) fn has(&self, object: &ObjectName) -> Option<bool> {
        let present = self.present.contains(&identity(object));
        if self.restored {
            present.then_some(true)
        } else {
            Some(present)
        }
    }

    /// Was it ever there?
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

    /// So many bytes more are written. False: that is more than any scenario may hold.
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

    /// Was, or will be by an earlier line, an object of the target called `key` (`name` or `namespace/name`) ever there?
    pub(super) fn knows(&self, key: &str) -> bool {
        let whole = self.whole_key(key);
        let name = key.rsplit('/').next().unwrap_or(key);
        self.running
            || self.ever.contains(&(self.target_resource(), whole))
            || self.raw.iter().any(|text| text.contains(name))
    }

    /// `name` as `namespace/name`, if the target has namespaces.
    fn whole_key(&self, key: &str) -> String {
        if !self.namespaced || key.contains('/') {
            key.to_owned()
        } else {
            format!("{}/{key}", self.namespace())
        }
    }

    /// The names of the target's objects, for suggestions.
    pub(super) fn names_of_target(&self) -> Vec<&str> {
        let target = self.target_resource();
        let names = self.ever.iter().filter(|(resource, _)| *resource == target);
        names
            .map(|(_, key)| key.rsplit('/').next().unwrap_or(key))
            .collect()
    }
}

fn resource(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

fn identity(object: &ObjectName) -> Identity {
    (resource(&object.group, &object.plural), object.key())
}

fn identity_of(manifest: &Manifest) -> Identity {
    identity(&ObjectName {
        group: manifest.group.clone(),
        plural: manifest.plural.clone(),
        namespace: manifest.namespace.clone(),
        name: manifest.name.clone(),
    })
}
