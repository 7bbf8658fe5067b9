//! Actions of steps and rules: resolves names of the scenario, and requests the deviation from the apiserver.
//!
//! Actions run in the order written. One on a response runs after the events that were already due, except on the request
//! that triggered the step: there the script comes first.

use std::time::Duration;

use scenario::{Action, Expected, Ref, Restart, ShapeAction, StoreAction, StreamAction};
use trace::record::{Replica, StreamId, Turn, What};

use super::Server;
use crate::model::WatchCacheOp;

/// The responses that actions apply to.
#[derive(Debug)]
pub(super) enum On {
    /// The request that met the trigger, not answered yet; once it has ended, the newest open watch.
    Request(StreamId),
    /// The newest open watch of the loop under test.
    NewestWatch,
    /// These, if they are still open.
    These(Vec<StreamId>),
}

impl Server {
    /// Runs a step. `triggered_by`: the request that met it, not answered yet.
    pub(super) fn run_step(&mut self, now: Duration, step: usize, triggered_by: Option<StreamId>) {
        let Some(run) = &mut self.run else { return };
        let scenario = run.scenario.clone();
        let step_of = &scenario.steps[step];
        self.api.record(
            now,
            What::Step {
                step,
                how: words(&step_of.actions),
            },
        );
        tracing::debug!(step, "step met");
        if let (Some(stream), Some(name)) = (triggered_by, &step_of.name) {
            run.name_what_leaves(stream, name);
        }
        let on = match triggered_by {
            Some(id) => On::Request(id),
            None => On::NewestWatch,
        };
        let target = (scenario.target.group.clone(), scenario.target.plural.clone());
        self.act(now, &step_of.actions, &on, Some(&target), None);
    }

    /// Runs actions in the order written. Those on watch caches apply to `target` at `replica`; `None`: every resource, both
    /// replicas.
    pub(super) fn act(
        &mut self,
        now: Duration,
        actions: &[Action],
        on: &On,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        // On the request that met the step the script comes first, until it changes the stored state.
        let triggered_by = match on {
            On::Request(id) => Some(*id),
            On::NewestWatch | On::These(_) => None,
        };
        let mut store_changed = triggered_by.is_none();
        for action in actions {
            match action {
                Action::Store(action) if action.is_write() && self.api.forwards() => {
                    self.api.write_upstream(now, action);
                }
                Action::Store(action) => {
                    store_changed = true;
                    self.change_store(now, action, target, replica);
                    // Waiting reads and open watches may depend on it.
                    self.api.touch_all();
                }
                Action::Refuse(ms) => {
                    self.api.refuse_until(now + Duration::from_millis(*ms));
                    self.api.turned(now, Turn::Refused { ms: *ms });
                }
                Action::Shape(_) | Action::Rule(_) | Action::Stream(_) => {
                    for stream in self.concerned(on) {
                        self.act_on(now, stream, action, triggered_by, store_changed);
                    }
                }
            }
        }
    }

    fn act_on(
        &mut self,
        now: Duration,
        stream: StreamId,
        action: &Action,
        triggered_by: Option<StreamId>,
        store_changed: bool,
    ) {
        match action {
            Action::Store(_) | Action::Refuse(_) => {}
            Action::Shape(action) => self.shape(now, stream, action),
            Action::Rule(action) => {
                self.api.decide(now, stream);
                if Some(stream) != triggered_by {
                    self.pump(now, stream);
                }
                self.api.obey(stream, action);
            }
            Action::Stream(action) => {
                self.api.decide(now, stream);
                if store_changed {
                    self.pump(now, stream);
                }
                self.send(now, stream, action);
            }
        }
    }

    /// Returns the responses that an action applies to; none if the watch ended in this step.
    fn concerned(&self, on: &On) -> Vec<StreamId> {
        match on {
            On::Request(id) if self.api.is_open(*id) => vec![*id],
            On::Request(_) | On::NewestWatch => self.newest_watch().into_iter().collect(),
            On::These(streams) => streams
                .iter()
                .copied()
                .filter(|id| self.api.is_open(*id))
                .collect(),
        }
    }

    fn shape(&mut self, now: Duration, stream: StreamId, action: &ShapeAction) {
        let ShapeAction::EditPage(edit) = action else {
            return self.api.shape(now, stream, action);
        };
        let mut edit = edit.clone();
        if let Some(Expected::Ref(_)) = edit.resource_version {
            let version = edit
                .resource_version
                .as_ref()
                .and_then(|wanted| self.value(wanted));
            edit.resource_version = Some(Expected::Is(version.unwrap_or_default()));
        }
        edit.continue_token = edit.continue_token.map(|wanted| self.resolved(wanted));
        self.api.shape(now, stream, &ShapeAction::EditPage(edit));
    }

    fn send(&mut self, now: Duration, stream: StreamId, action: &StreamAction) {
        match action {
            StreamAction::Send(frames) => {
                for frame in frames {
                    self.api.send_raw(stream, frame);
                }
            }
            StreamAction::SendEvent {
                kind,
                object,
                resource_version,
            } => {
                let version = resource_version.clone().map(|wanted| self.resolved(wanted));
                if !self.api.send_event(stream, kind, object, version.as_ref()) {
                    self.api.turned(
                        now,
                        Turn::Other("no event sent: the object does not exist".to_owned()),
                    );
                }
            }
            StreamAction::SendError(spec) => self.api.send_error(stream, spec),
            StreamAction::SendBookmark {
                resource_version,
                initial_events_end,
                binds,
            } => {
                let version = resource_version
                    .as_ref()
                    .map(|wanted| self.value(wanted).unwrap_or_default());
                let sent = self
                    .api
                    .send_bookmark(stream, version, initial_events_end.as_deref());
                self.bind(now, binds.as_deref(), sent);
            }
            StreamAction::Goaway => self.api.send_goaway(now, stream),
            StreamAction::End(ending) => self.api.end(stream, *ending),
        }
    }

    /// Changes the stored state, or the watch caches of `target` at `replica`.
    fn change_store(
        &mut self,
        now: Duration,
        action: &StoreAction,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        match action {
            StoreAction::Apply(manifests) => {
                for manifest in manifests {
                    self.api.apply(now, manifest);
                    self.bind_write(now, manifest.binds.as_deref());
                    self.api.settle(now);
                }
            }
            StoreAction::Delete { objects, binds } => {
                for object in objects {
                    self.api.delete(now, object);
                }
                self.bind_write(now, binds.as_deref());
                self.api.settle(now);
            }
            StoreAction::Relabel {
                object,
                labels,
                binds,
            } => {
                self.api.relabel(now, object, labels);
                self.bind_write(now, binds.as_deref());
            }
            StoreAction::Compact => self.api.compact(now),
            StoreAction::ClearWatchCache(at) => {
                self.api
                    .turn_caches(now, WatchCacheOp::Clear, target, at.or(replica));
            }
            StoreAction::FreezeWatchCache(at) => {
                self.api
                    .turn_caches(now, WatchCacheOp::Freeze, target, at.or(replica));
            }
            StoreAction::LagWatchCache { by_ms, at } => {
                let turn = WatchCacheOp::Lag(Duration::from_millis(*by_ms));
                self.api.turn_caches(now, turn, target, at.or(replica));
            }
            StoreAction::ThawWatchCache(at) => {
                self.api
                    .turn_caches(now, WatchCacheOp::Thaw, target, at.or(replica));
            }
            StoreAction::Restore { to } => self.restore(now, to),
            StoreAction::Restart(restart) => {
                let at = restart.at.or(replica);
                self.api.restart(now, &Restart { at, ..*restart });
            }
            StoreAction::JumpClock { by_ms } => self.api.jump_clock(now, *by_ms),
        }
    }

    fn restore(&mut self, now: Duration, to: &Ref) {
        let wanted = Expected::Ref(to.clone());
        let revision = self.value(&wanted).and_then(|text| text.parse::<u64>().ok());
        let Some(revision) = revision else {
            return self.api.turned(
                now,
                Turn::Other(format!("restore refused: {to} stands for no revision")),
            );
        };
        self.observe(now);
        if let (Some(stored), Some(run)) = (self.api.restore(now, revision), &mut self.run) {
            run.on_restore(now, stored);
        }
    }

    fn bind_write(&mut self, now: Duration, name: Option<&str>) {
        let resource_version = self.api.revision().to_string();
        self.bind(now, name, resource_version);
    }

    /// Binds a name, if one is given, to a resourceVersion.
    pub(super) fn bind(&mut self, now: Duration, name: Option<&str>, resource_version: String) {
        let (Some(name), Some(run)) = (name, &mut self.run) else {
            return;
        };
        let bound = run.bind(name, resource_version);
        self.api.record(now, bound);
    }

    /// Resolves a value of a scenario file; `None`: absent.
    fn value(&self, wanted: &Expected) -> Option<String> {
        match (wanted, &self.run) {
            (Expected::Is(text), _) => Some(text.clone()),
            (_, Some(run)) => run.names.expand(wanted),
            (_, None) => None,
        }
    }

    /// Replaces a reference by its value; an unbound name is absent.
    fn resolved(&self, wanted: Expected) -> Expected {
        match wanted {
            Expected::Ref(_) => self.value(&wanted).map_or(Expected::Absent, Expected::Is),
            Expected::Is(_) | Expected::Not(_) | Expected::Absent | Expected::Present => wanted,
        }
    }
}

/// Description of actions, for the transcript.
pub(super) fn words(actions: &[Action]) -> String {
    let mut words: Vec<&'static str> = actions.iter().map(Action::word).collect();
    words.dedup();
    words.join(", ")
}
