//! What can be done to the truth from outside of the API: writes, history, watch caches, backups; and what is recorded of
//! every write.
//!
//! It must not know of answers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::object::Stored;
use apimachinery::options::Collection;
use apimachinery::selector::{FieldSelector, LabelSelector, Selector};
use apimachinery::status::Status;
use scenario::{Manifest, ObjectName, Scenario, Target};
use trace::record::{Replica, Truth, What, WriteOp};
use trace::report::Version;

use super::ApiServer;
use crate::model::{WatchCacheOp, Written};

/// The objects that a client was told to keep: of them the trace says more.
#[derive(Debug)]
pub(crate) struct Followed {
    target: Target,
    /// One object, by its name.
    object: Option<String>,
    selector: Selector,
    /// Are they compared with what the client reports? Then their content is recorded, and their changes are kept.
    compared: bool,
    changes: VecDeque<Change>,
}

/// An object that the client has to keep, by `namespace/name`, and its state; `None`: not any longer.
pub(crate) type Change = (String, Option<Version>);

impl Followed {
    /// What the client of a scenario is told to keep.
    pub(crate) fn of(scenario: &Scenario, compared: bool) -> Self {
        // Its selectors were read once by the parser of the scenario, so they can be read again.
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
        }
    }

    /// Is the object one the client was told to keep?
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
    /// Says what a client is told to keep. Without it, the trace says of no write that it concerns one.
    pub(crate) fn follow(&mut self, followed: Followed) {
        self.followed = Some(followed);
    }

    /// The next change of what the client has to keep.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        self.followed.as_mut()?.changes.pop_front()
    }

    /// Is it a collection of the resource the client was told to keep?
    pub(crate) fn is_followed(&self, collection: &Collection) -> bool {
        self.followed.as_ref().is_some_and(|followed| {
            let target = &followed.target;
            collection.kind.group == target.group && collection.kind.plural == target.plural
        })
    }

    /// Is a watch open of that resource?
    pub(crate) fn watches_followed(&self) -> bool {
        self.watches().any(|(_, asked)| {
            let collection = asked.collection.as_ref();
            collection.is_some_and(|collection| self.is_followed(collection))
        })
    }

    /// Puts an object as a manifest has it.
    pub(crate) fn apply(&mut self, now: Duration, manifest: &Manifest) {
        let written = self.model.apply(now, manifest);
        self.wrote(now, &manifest.group, &manifest.plural, written);
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, now: Duration, object: &ObjectName) {
        let written = self.model.delete(now, object);
        self.wrote(now, &object.group, &object.plural, written);
    }

    /// Sets labels of an object; `None` removes one.
    pub(crate) fn relabel(
        &mut self,
        now: Duration,
        object: &ObjectName,
        labels: &[(String, Option<String>)],
    ) {
        let written = self.model.relabel(now, object, labels);
        self.wrote(now, &object.group, &object.plural, written);
    }

    /// What the apiserver writes by itself, because of what was written.
    pub(crate) fn settle(&mut self, now: Duration) {
        let written = self.model.settle(now);
        self.record_writes(now, written);
    }

    /// Compacts etcd and the watch caches.
    pub(crate) fn compact(&mut self, now: Duration) {
        self.model.storage_mut().compact();
        self.turned(now, format!("compacted up to {}", self.model.revision()));
    }

    /// Turns the watch caches of `target` at `replica`; without one, of every resource, or of both.
    pub(crate) fn turn_caches(
        &mut self,
        now: Duration,
        turn: WatchCacheOp,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        let resource = target.map(|(group, plural)| (group.as_str(), plural.as_str()));
        let done = match turn {
            WatchCacheOp::Clear => "cleared".to_owned(),
            WatchCacheOp::Freeze => "frozen".to_owned(),
            WatchCacheOp::Lag(by) => format!("lags by {} ms", by.as_millis()),
            WatchCacheOp::Thaw => "thawed".to_owned(),
        };
        self.model.turn_watch_caches(now, turn, resource, replica);
        let of = match target {
            Some((_, plural)) => format!("watch cache of {plural}"),
            None => "every watch cache".to_owned(),
        };
        let at = replica.map(|replica| format!(" of replica {}", replica.word()));
        self.turned(now, format!("{of}{} {done}", at.unwrap_or_default()));
    }

    /// Restores the backup of a revision. Gives the objects the client has to keep from now on, by `namespace/name`;
    /// `None` if there is no such backup, which is recorded.
    pub(crate) fn restore(&mut self, now: Duration, revision: u64) -> Option<BTreeMap<String, Version>> {
        if let Err(refused) = self.model.storage_mut().restore(revision) {
            self.turned(now, format!("restore refused: {refused}"));
            return None;
        }
        let truth = match &self.followed {
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
        Some(truth)
    }

    pub(super) fn wrote(
        &mut self,
        now: Duration,
        group: &str,
        plural: &str,
        written: Result<Written, Status>,
    ) {
        let written = match written {
            Ok(written) => written,
            Err(status) => return self.turned(now, format!("write refused: {}", status.message)),
        };
        let Some(op) = written.op else { return };
        let mut selected = false;
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
        let keeps_content = compared && !is_secret;
        self.log.push(
            now,
            What::Wrote(Truth {
                resource: plural.to_owned(),
                object: ObjectRef {
                    key: written.key,
                    uid: written.uid,
                    resource_version: written.revision.to_string(),
                },
                op,
                selected,
                content: keeps_content.then(|| written.stored.bytes().into()),
            }),
        );
    }

    /// Records that the truth was turned otherwise than by a write.
    pub(crate) fn turned(&mut self, now: Duration, how: String) {
        self.log.push(
            now,
            What::Turned {
                how,
                resource_version: self.model.revision(),
            },
        );
    }
}
