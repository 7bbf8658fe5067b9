//! Changes of the stored state outside of the API: writes, compaction, watch caches, backups; and the record of every write.
//!
//! No requests or responses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::object::Stored;
use apimachinery::options::Collection;
use apimachinery::selector::{FieldSelector, LabelSelector, Selector};
use apimachinery::status::Status;
use scenario::{Manifest, ObjectName, Scenario, Target};
use trace::record::{CacheTurn, Replica, StoreWrite, StreamId, Turn, What, WriteOp};
use trace::report::Version;

use super::ApiServer;
use crate::model::{WatchCacheOp, Written};

/// The objects that the client under test keeps: their writes are marked in the trace.
#[derive(Debug)]
pub(crate) struct Followed {
    target: Target,
    /// Name of a single object.
    object: Option<String>,
    selector: Selector,
    /// Whether they are compared with the client's reports, which needs their content in the trace and a queue of changes.
    compared: bool,
    changes: VecDeque<Change>,
    /// Revisions that clients wrote.
    own: BTreeSet<u64>,
}

/// A change of the selected objects: key `namespace/name`, and the new state or `None` if it is no longer selected.
pub(crate) type Change = (String, Option<Version>);

impl Followed {
    /// Returns the selection of a scenario's client.
    pub(crate) fn of(scenario: &Scenario, compared: bool) -> Self {
        // The parser of the scenario has validated the selectors.
        let labels = scenario.client.labels.as_deref().map(LabelSelector::parse);
        let fields = scenario.client.fields.as_deref().map(FieldSelector::parse);
        Self {
            target: scenario.target.clone(),
            object: scenario.client.object.clone(),
            selector: Selector {
                labels: labels.and_then(Result::ok).unwrap_or_default(),
                fields: fields.and_then(Result::ok).unwrap_or_default(),
            },
            compared,
            changes: VecDeque::new(),
            own: BTreeSet::new(),
        }
    }

    /// Whether an event is one that a step caused: not one of another resource, nor of a client's own write.
    pub(super) fn is_moved_by(&self, collection: &Collection, event: &ObjectRef) -> bool {
        let is_own = || {
            let version = event.resource_version.parse();
            version.is_ok_and(|version: u64| self.own.contains(&version))
        };
        self.is_of_target(collection) && (self.own.is_empty() || !is_own())
    }

    /// Whether it is a collection of the selected resource.
    pub(super) fn is_of_target(&self, collection: &Collection) -> bool {
        collection.kind.group == self.target.group && collection.kind.plural == self.target.plural
    }

    /// Whether namespace, name and selectors match.
    fn selects(&self, stored: &Stored) -> bool {
        let namespace = self.target.namespace.as_deref();
        let here = namespace.is_none_or(|namespace| stored.key.split('/').next() == Some(namespace));
        let named = self
            .object
            .as_ref()
            .is_none_or(|name| stored.key.rsplit('/').next() == Some(name));
        here && named && self.selector.matches(stored)
    }
}

impl ApiServer {
    /// Sets the selection. Without it, no write is marked as selected.
    pub(crate) fn follow(&mut self, followed: Followed) {
        self.followed = Some(followed);
    }

    /// Returns the next change of the selected objects.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        self.followed.as_mut()?.changes.pop_front()
    }

    /// Creates or replaces the object of a manifest.
    pub(crate) fn apply(&mut self, now: Duration, manifest: &Manifest) {
        let written = self.model.apply(now, manifest);
        self.wrote(now, None, &manifest.group, &manifest.plural, written);
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, now: Duration, object: &ObjectName) {
        let written = self.model.delete(now, object);
        self.wrote(now, None, &object.group, &object.plural, written);
    }

    /// Sets labels of an object; `None` removes one.
    pub(crate) fn relabel(
        &mut self,
        now: Duration,
        object: &ObjectName,
        labels: &[(String, Option<String>)],
    ) {
        let written = self.model.relabel(now, object, labels);
        self.wrote(now, None, &object.group, &object.plural, written);
    }

    /// Runs the writes that the apiserver makes in reaction to other writes.
    pub(crate) fn settle(&mut self, now: Duration) {
        let written = self.model.settle(now);
        self.record_writes(now, None, written);
    }

    /// Compacts etcd and the watch caches.
    pub(crate) fn compact(&mut self, now: Duration) {
        self.model.storage_mut().compact();
        let to = self.model.revision();
        self.turned(now, Turn::Compacted { to, of_etcd: false });
    }

    /// Changes how the watch caches of `target` at `replica` follow the store; `None`: every resource, both replicas.
    pub(crate) fn turn_caches(
        &mut self,
        now: Duration,
        turn: WatchCacheOp,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        let resource = target.map(|(group, plural)| (group.as_str(), plural.as_str()));
        let done = match turn {
            WatchCacheOp::Clear => CacheTurn::Cleared,
            WatchCacheOp::Freeze => CacheTurn::Frozen,
            WatchCacheOp::Lag(by) => CacheTurn::LagsBy(by.as_millis() as u64),
            WatchCacheOp::Thaw => CacheTurn::Thawed,
        };
        match self.forwards() {
            true => self.turn_upstream_caches(now, turn, resource),
            false => self.model.turn_watch_caches(now, turn, resource, replica),
        }
        let plural = target.map(|(_, plural)| plural.clone());
        self.turned(
            now,
            Turn::Cache {
                now: done,
                plural,
                replica,
            },
        );
    }

    /// Restores the state of a revision. Returns the selected objects by `namespace/name`; `None` if the revision is compacted,
    /// which is recorded.
    pub(crate) fn restore(&mut self, now: Duration, revision: u64) -> Option<BTreeMap<String, Version>> {
        if let Err(refused) = self.model.storage_mut().restore(revision) {
            self.turned(now, Turn::Other(format!("restore refused: {refused}")));
            return None;
        }
        let selected = match &self.followed {
            None => BTreeMap::new(),
            Some(followed) => {
                let Target {
                    group,
                    plural,
                    namespace,
                    ..
                } = &followed.target;
                self.model
                    .objects_at(group, plural, namespace.as_deref(), revision)
                    .filter(|stored| followed.selects(stored))
                    .map(|stored| {
                        let version = Version {
                            uid: stored.uid.clone(),
                            resource_version: stored.revision.to_string(),
                        };
                        (stored.key.clone(), version)
                    })
                    .collect()
            }
        };
        self.log.push(now, What::Restored { to: revision });
        Some(selected)
    }

    /// Records a write. `by`: the request that made it.
    pub(super) fn wrote(
        &mut self,
        now: Duration,
        by: Option<StreamId>,
        group: &str,
        plural: &str,
        written: Result<Written, Status>,
    ) {
        let written = match written {
            Ok(written) => written,
            Err(status) => {
                return self.turned(now, Turn::Other(format!("write refused: {}", status.message)));
            }
        };
        let Some(op) = written.op else { return };
        let mut selected = false;
        if let Some(followed) = self.followed.as_mut().filter(|_| by.is_some()) {
            followed.own.insert(written.revision);
        }
        if let Some(followed) = &mut self.followed
            && (group, plural) == (&followed.target.group, &followed.target.plural)
        {
            selected = followed.selects(&written.stored);
            if followed.compared {
                let state = (selected && op != WriteOp::Delete).then(|| Version {
                    uid: written.uid.clone(),
                    resource_version: written.revision.to_string(),
                });
                followed.changes.push_back((written.key.clone(), state));
            }
        }
        let is_secret = group.is_empty() && plural == "secrets";
        let compared = self.followed.as_ref().is_some_and(|followed| followed.compared);
        let encoded = || written.stored.bytes();
        let content = match (compared, &self.kept) {
            (true, _) => (!is_secret).then(|| encoded().into()),
            (false, Some(kept)) => kept.stored(plural, encoded()),
            (false, None) => None,
        };
        self.log.push(
            now,
            What::Wrote(StoreWrite {
                resource: plural.to_owned(),
                object: ObjectRef {
                    key: written.key,
                    uid: written.uid,
                    resource_version: written.revision.to_string(),
                },
                op,
                selected,
                by,
                content,
            }),
        );
    }

    /// Records a change of the stored state other than a write.
    pub(crate) fn turned(&mut self, now: Duration, how: Turn) {
        self.log.push(
            now,
            What::Turned {
                how,
                resource_version: self.revision(),
            },
        );
    }
}
