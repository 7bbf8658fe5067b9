//! Changes to the truth from outside any scenario and any request: what a harness that owns the server does to it.

use std::sync::Arc;
use std::time::Duration;

use super::Server;
use crate::model::Stored;
use crate::scenario::{Manifest, ObjectName};

impl Server {
    /// Creates the object, or replaces it, at `now`.
    pub fn put(&mut self, now: Duration, manifest: &Manifest) {
        self.apply(now, manifest);
        self.after_direct_change(now);
    }

    /// Deletes the object at `now`; nothing if it is not there.
    pub fn remove(&mut self, now: Duration, name: &ObjectName) {
        let written = self.model.delete(now, name);
        self.wrote(now, &name.group, &name.plural, written);
        self.after_direct_change(now);
    }

    /// The object as it is now.
    pub fn stored(&self, name: &ObjectName) -> Option<Arc<Stored>> {
        self.model.object(name)
    }

    /// etcd is compacted at its current revision, which costs a revision; watch caches keep their events.
    pub fn compact_store(&mut self, now: Duration) {
        self.model.compact_store();
        self.after_direct_change(now);
    }

    /// The apiserver process is replaced by a new one on the same store: every stream ends, every watch cache lists
    /// anew.
    pub fn restart(&mut self, now: Duration) {
        self.model.relist_all();
        self.after_direct_change(now);
    }

    fn after_direct_change(&mut self, now: Duration) {
        self.touched.extend(self.open.keys().copied());
        self.advance(now);
    }
}
