//! The initial objects of a server, and the reset to them.
//!
//! A reset consists of ordinary writes: revisions increase, watches receive the changes, and unchanged objects are not
//! written. A restored object keeps its uid, so that it again owns its dependents; for clients it is like a restored backup.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::object::Stored;
use apimachinery::options::Representation;

use super::write::Outcome;
use super::{Model, Objects, ResourceId, Written};

/// The objects of each resource that has any.
pub(super) type InitialState = BTreeMap<ResourceId, Objects>;

/// Resource of the namespaces, which contain other objects.
const NAMESPACES: (&str, &str) = ("", "namespaces");

impl Model {
    /// Makes the current objects the initial state. Costs memory for what changes after it.
    pub fn mark_initial_state(&mut self) {
        let objects = self.resource_ids().map(|id| (id, self.storage.current(id)));
        let objects = objects.filter(|(_, objects)| !objects.is_empty());
        self.initial_state = objects.map(|(id, objects)| (id, objects.clone())).collect();
    }

    /// Sets the time since 1970 that is time zero.
    pub fn starts_at(&mut self, epoch: Duration) {
        self.epoch = epoch;
    }

    /// Sets the wall clock forward, or back by a negative number of milliseconds, at most to 1970.
    pub fn jump_clock(&mut self, by_ms: i64) {
        let by = Duration::from_millis(by_ms.unsigned_abs());
        self.epoch = if by_ms < 0 {
            self.epoch.saturating_sub(by)
        } else {
            self.epoch.saturating_add(by)
        };
    }

    /// Wall clock at `now`, since 1970.
    pub fn wall_clock(&self, now: Duration) -> Duration {
        self.epoch.saturating_add(now)
    }

    /// Resets to the initial objects; returns the writes, in order. Objects created since are deleted at once, despite
    /// finalizers.
    pub fn reset(&mut self, now: Duration) -> Vec<Written> {
        let mut written = Vec::new();
        let mut gone = self.added_objects();
        gone.sort_by_key(|object| (object.kind.storage() == NAMESPACES, object.kind.defines));
        for object in gone {
            let (kind, key) = (object.kind.clone(), object.key.clone());
            written.push(self.carry_out(now, &kind, key, Some(object), Outcome::Gone));
        }
        written.extend(self.settle(now));

        let initial = self.resource_ids().filter_map(|id| self.initial_state.get(&id));
        let mut back: Vec<Arc<Stored>> = initial.flat_map(Objects::values).cloned().collect();
        // Custom resources follow the processing of their definitions.
        back.sort_by_key(|then| (then.kind.custom, then.kind.storage() != NAMESPACES));
        let defined = back.partition_point(|then| !then.kind.custom);
        for then in &back[..defined] {
            written.extend(self.restore_object(now, then));
        }
        written.extend(self.settle(now));
        for then in &back[defined..] {
            written.extend(self.restore_object(now, then));
        }
        written
    }

    /// Returns the objects that are not initial ones, including those that reuse a name.
    fn added_objects(&self) -> Vec<Arc<Stored>> {
        let mut found = Vec::new();
        for id in self.resource_ids() {
            let then = self.initial_state.get(&id);
            let known = |object: &Stored| {
                let then = then.and_then(|then| then.get(object.key.as_str()));
                then.is_some_and(|then| then.uid == object.uid)
            };
            let objects = self.storage.current(id).values();
            found.extend(objects.filter(|object| !known(object)).cloned());
        }
        found
    }

    fn restore_object(&mut self, now: Duration, then: &Arc<Stored>) -> Option<Written> {
        let id = self.resource_id_of(then.kind.storage())?;
        let current = self.storage.current(id).get(then.key.as_str()).cloned();
        let same = current.as_ref().is_some_and(|current| {
            let at_its_revision = || then.at_revision(current.revision).encoded(Representation::Full);
            Arc::ptr_eq(current, then) || current.encoded(Representation::Full) == at_its_revision()
        });
        (!same).then(|| {
            self.carry_out(
                now,
                &then.kind,
                then.key.clone(),
                current,
                Outcome::Put(then.json()),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Model;
    use crate::scenario::ServerSettings;

    #[test]
    fn start_times_keep_their_fraction() {
        let mut model = Model::standalone(&ServerSettings::default());
        let manifest = model.namespace_manifest("n");
        model.starts_at(Duration::from_millis(1_700_000_000_900));
        model
            .apply(Duration::from_millis(100), &manifest)
            .expect("it is valid");
        let namespaces = model.catalog().find("", "namespaces").expect("they are built in");
        let object = model.objects(namespaces).get("n").expect("it was put").json();
        assert_eq!(object["metadata"]["creationTimestamp"], "2023-11-14T22:13:21Z");
    }
}
