//! What actions do to the truth: writes, history, watch caches, backups; and what is recorded of every write.
//!
//! It must not know of answers.

use std::collections::BTreeMap;
use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::object::Stored;
use apimachinery::selector::{FieldSelector, LabelSelector, Selector};
use apimachinery::status::Status;
use scenario::{ClientSettings, Expected, Manifest, Ref, TruthAction};
use trace::record::{Replica, Truth, What, WriteOp};
use trace::report::Version;

use super::Server;
use super::names::Binding;
use crate::model::{WatchCacheOp, Written};

impl Server {
    /// Carries out an action on the truth, or on the watch caches of `target` at `replica`.
    pub(super) fn change_truth(
        &mut self,
        now: Duration,
        action: &TruthAction,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        match action {
            TruthAction::Apply(manifests) => {
                for manifest in manifests {
                    self.apply(now, manifest);
                }
            }
            TruthAction::Delete { objects, binds } => {
                for object in objects {
                    let written = self.model.delete(now, object);
                    self.wrote(now, &object.group, &object.plural, written);
                }
                self.bind_write(now, binds.as_deref());
                self.settle(now);
            }
            TruthAction::Relabel {
                object,
                labels,
                binds,
            } => {
                let written = self.model.relabel(now, object, labels);
                self.wrote(now, &object.group, &object.plural, written);
                self.bind_write(now, binds.as_deref());
            }
            TruthAction::Compact => {
                self.model.storage_mut().compact();
                self.turned(now, format!("compacted up to {}", self.model.revision()));
            }
            TruthAction::ClearWatchCache => self.turn_caches(now, WatchCacheOp::Clear, target, replica),
            TruthAction::FreezeWatchCache => self.turn_caches(now, WatchCacheOp::Freeze, target, replica),
            TruthAction::LagWatchCache { by_ms } => {
                let turn = WatchCacheOp::Lag(Duration::from_millis(*by_ms));
                self.turn_caches(now, turn, target, replica);
            }
            TruthAction::ThawWatchCache => self.turn_caches(now, WatchCacheOp::Thaw, target, replica),
            TruthAction::Restore { to } => self.restore(now, to),
        }
    }

    fn turn_caches(
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

    pub(super) fn apply(&mut self, now: Duration, manifest: &Manifest) {
        let written = self.model.apply(now, manifest);
        self.wrote(now, &manifest.group, &manifest.plural, written);
        self.bind_write(now, manifest.binds.as_deref());
        self.settle(now);
    }

    /// What the apiserver writes by itself, because of what was written.
    fn settle(&mut self, now: Duration) {
        let written = self.model.settle(now);
        self.record_writes(now, written);
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
        self.script.on_activity(now);
        let of_target = group == self.scenario.target.group && plural == self.scenario.target.plural;
        let selected = of_target && self.selects(&written.stored);
        if of_target && self.goal.compares() {
            let state = (selected && op != WriteOp::Delete).then(|| Version {
                uid: written.uid.clone(),
                resource_version: written.revision.to_string(),
            });
            self.goal.on_write(now, &written.key, state);
        }
        let is_secret = group.is_empty() && plural == "secrets";
        let keeps_content = self.goal.compares() && !is_secret;
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

    fn bind_write(&mut self, now: Duration, name: Option<&str>) {
        if let Some(name) = name {
            let resource_version = self.model.revision().to_string();
            self.bind(
                now,
                name,
                Binding {
                    resource_version,
                    continue_token: None,
                },
            );
        }
    }

    /// Is the object one the client was told to keep?
    fn selects(&self, stored: &Stored) -> bool {
        let scenario = &self.scenario;
        let namespace = scenario.target.namespace.as_deref();
        let here = namespace.is_none_or(|namespace| stored.key.split('/').next() == Some(namespace));
        let named = scenario
            .client
            .object
            .as_ref()
            .is_none_or(|name| stored.key.rsplit('/').next() == Some(name));
        here && named && self.selector.matches(stored)
    }

    fn restore(&mut self, now: Duration, to: &Ref) {
        let wanted = Expected::Ref(to.clone());
        let revision = self.value(&wanted).and_then(|text| text.parse::<u64>().ok());
        let Some(revision) = revision else {
            return self.turned(now, format!("restore refused: {to} stands for no revision"));
        };
        match self.model.storage_mut().restore(revision) {
            Err(refused) => self.turned(now, format!("restore refused: {refused}")),
            Ok(()) => {
                self.script.on_activity(now);
                let target = self.scenario.target.clone();
                let truth: BTreeMap<String, Version> = self
                    .model
                    .objects_at(
                        &target.group,
                        &target.plural,
                        target.namespace.as_deref(),
                        revision,
                    )
                    .filter(|stored| self.selects(stored))
                    .map(|stored| {
                        let version = Version {
                            uid: stored.uid.clone(),
                            resource_version: stored.revision.to_string(),
                        };
                        (stored.key.clone(), version)
                    })
                    .collect();
                self.goal.on_restore(now, truth);
                self.log.push(now, What::Restored { to: revision });
            }
        }
    }

    pub(super) fn turned(&mut self, now: Duration, how: String) {
        self.log.push(
            now,
            What::Turned {
                how,
                resource_version: self.model.revision(),
            },
        );
    }
}

/// What the client is told to select. A scenario's selectors were read once by its parser, so they can be read again.
pub(super) fn selector(client: &ClientSettings) -> Selector {
    let labels = client.labels.as_deref().map(LabelSelector::parse);
    let fields = client.fields.as_deref().map(FieldSelector::parse);
    Selector {
        labels: labels.and_then(Result::ok).unwrap_or_default(),
        fields: fields.and_then(Result::ok).unwrap_or_default(),
    }
}
