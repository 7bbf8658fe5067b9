//! The run of a scenario: where its script stands, what it is after, what its names stand for, and what is assumed of a
//! client that reports nothing.
//!
//! It learns what happened from the records of the apiserver, and says what is to be done and recorded as values. It must
//! not know how a request is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scenario::SharedScenario;
use trace::record::{Record, RunEnd, StreamId, Verb, What};
use trace::report::{Report, Version};

use super::assumed::{is_marker, reports};
use super::goal::{Goal, Limits};
use super::names::{Binding, Names, binding_of};
use crate::api;
use crate::apiserver::{Asked, Observer};
use crate::script::{self, Script, Standing};

/// A scenario that is played.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scenario: SharedScenario,
    script: Script,
    goal: Goal,
    pub(super) names: Names,
    /// The names of steps that were met by requests, to be bound to what leaves on their answers.
    to_name: BTreeMap<StreamId, String>,
    /// Streaming lists whose initial events have ended.
    marked: BTreeSet<StreamId>,
    requests: u64,
    /// The number of the next record to be looked at.
    next_record: u64,
}

impl Run {
    /// A run that has not begun.
    pub(super) fn new(scenario: SharedScenario, limits: Limits) -> Self {
        Self {
            script: Script::new(scenario.clone()),
            goal: Goal::new(scenario.clone(), limits),
            scenario,
            names: Names::default(),
            to_name: BTreeMap::new(),
            marked: BTreeSet::new(),
            requests: 0,
            next_record: 0,
        }
    }

    /// Makes a name stand for a resourceVersion. Gives what is to be recorded of it.
    pub(super) fn bind(&mut self, name: &str, resource_version: String) -> What {
        let binding = Binding {
            resource_version,
            continue_token: None,
        };
        self.names.bind(name, binding)
    }

    /// Is the truth compared with what the client reports?
    pub(super) fn compares(&self) -> bool {
        self.goal.compares()
    }

    /// Why the run is over, once it is.
    pub(super) fn finished(&self) -> Option<&RunEnd> {
        self.goal.finished()
    }

    /// The step that waits, by its index, and what for; `None` once every step is done.
    pub(super) fn waiting_step(&self) -> Option<(usize, String)> {
        match self.script.standing() {
            Standing::Armed { step, .. } => {
                let step = self.script.required().unwrap_or(*step);
                Some((step, self.script.waiting_for()))
            }
            Standing::Missed { .. } | Standing::Done { .. } => None,
        }
    }

    /// Where the script stands, for progress lines.
    pub(super) fn waiting_for(&self) -> String {
        self.script.waiting_for()
    }

    // ---- what happened

    /// The records that are new, and when a watch was last given a change.
    pub(super) fn observe(&mut self, records: &[Record], changed_at: Duration) {
        for record in records {
            self.next_record = record.seq + 1;
            match &record.what {
                What::Refused => {
                    self.script.on_activity(record.at);
                    self.count_request();
                }
                What::Request { .. } => self.count_request(),
                What::Wrote(_) | What::Restored { .. } => self.script.on_activity(record.at),
                What::End { stream, .. } => {
                    self.to_name.remove(stream);
                    self.marked.remove(stream);
                }
                What::Connected { .. }
                | What::Goaway { .. }
                | What::Disconnected { .. }
                | What::Head { .. }
                | What::Body { .. }
                | What::Page { .. }
                | What::Frame { .. }
                | What::Torn { .. }
                | What::Withheld { .. }
                | What::Turned { .. }
                | What::Step { .. }
                | What::Rule { .. }
                | What::Bound { .. }
                | What::ScriptDone
                | What::Reported(_)
                | What::StopRequested
                | What::LeftOpen { .. }
                | What::RunEnded(_) => {}
            }
        }
        if changed_at > self.script.quiet_since() {
            self.script.on_activity(changed_at);
        }
    }

    /// The number of the next record that [`Run::observe`] wants.
    pub(super) fn next_record(&self) -> u64 {
        self.next_record
    }

    /// An object the client has to keep changed: `None` says it is gone or no longer selected.
    pub(super) fn on_write(&mut self, now: Duration, key: &str, state: Option<Version>) {
        self.goal.on_write(now, key, state);
    }

    /// The whole truth is another one.
    pub(super) fn on_restore(&mut self, now: Duration, truth: BTreeMap<String, Version>) {
        self.goal.on_restore(now, truth);
    }

    /// A request arrived. Gives the step it meets, whose actions are due before the answer. A script counts no requests for
    /// other resources than the scenario's: a client may read those, too.
    pub(super) fn on_request(&mut self, now: Duration, asked: &Asked, of_target: bool) -> Option<usize> {
        if asked.verb == Verb::Other || !of_target {
            self.script.on_activity(now);
            return None;
        }
        let query = api::query_pairs(&asked.request.query);
        let (names, asked) = (
            &self.names,
            script::Asked {
                verb: asked.verb,
                query: &query,
            },
        );
        self.script
            .on_request(now, &asked, &|wanted| names.expand(wanted))
    }

    /// The client reported something.
    pub(super) fn on_report(&mut self, now: Duration, report: &Report) {
        self.goal.on_report(now, report);
        let names = &self.names;
        self.script.on_report(now, report, &|wanted| names.expand(wanted));
    }

    /// What leaves on this stream is to be called so.
    pub(super) fn name_what_leaves(&mut self, stream: StreamId, name: &str) {
        self.to_name.insert(stream, name.to_owned());
    }

    fn count_request(&mut self) {
        self.requests += 1;
        self.goal.on_request(self.requests);
    }

    // ---- what is due

    /// The step that is due at `now`, if one is. `watches`: is a watch open? `of_target`: is one of the scenario's resource?
    pub(super) fn due_step(
        &mut self,
        now: Duration,
        watches: impl FnOnce() -> bool,
        of_target: impl FnOnce() -> bool,
    ) -> Option<usize> {
        // Only a step that stands needs to know, and looking may be long.
        let Standing::Armed { .. } = self.script.standing() else {
            return None;
        };
        let synced = self.synced_since(of_target);
        self.script.poll(now, watches(), synced)
    }

    /// Since when the client has a watch open and follows the truth, if a step waits for that.
    fn synced_since(&self, of_target: impl FnOnce() -> bool) -> Option<Duration> {
        let asked = self.script.awaits_sync() && of_target();
        asked
            .then(|| self.goal.synced_since(self.script.quiet_since()))
            .flatten()
    }

    /// Looks whether the run is over. Gives what is to be recorded.
    ///
    /// A frame that just left may have been the client's last word on a step that waits for quiet; nothing else that pumping
    /// does can arm a step.
    pub(super) fn advance(&mut self, now: Duration, of_target: impl FnOnce() -> bool) -> Vec<What> {
        if self.goal.can_end() {
            let at_rest = of_target().then(|| self.script.quiet_since());
            self.goal.on_rest(at_rest);
        }
        self.goal.advance(now, &self.script)
    }

    /// When to look again, if nothing happens before.
    pub(super) fn poll_timeout(&self, now: Duration, of_target: impl FnOnce() -> bool) -> Option<Duration> {
        let goal = self.goal.poll_timeout(&self.script);
        // A step that is due and still there waits for an open watch: no tick can help it.
        let script = self
            .script
            .poll_timeout(self.synced_since(of_target))
            .filter(|at| *at > now);
        [goal, script].into_iter().flatten().min()
    }
}

impl Observer for Run {
    fn on_left(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) -> Vec<What> {
        let mut told = Vec::new();
        if let Some(name) = self.to_name.get(&stream)
            && let Some(binding) = records.iter().find_map(|record| binding_of(&record.what))
        {
            told.push(self.names.bind(name, binding));
            self.to_name.remove(&stream);
        }
        self.assume_reports(now, stream, asked, records);
        told
    }
}

impl Run {
    /// Takes what left on a stream for reports, where the client gives none and a step waits for one.
    fn assume_reports(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) {
        if self.goal.hears_reports() {
            return;
        }
        let target = &self.scenario.target;
        let of_target = asked.collection.as_ref().is_some_and(|collection| {
            collection.kind.group == target.group && collection.kind.plural == target.plural
        });
        let awaited = of_target && self.script.awaits_report();
        // What a streaming list says before its marker is its list.
        let mut listing = asked.verb == Verb::WatchList && !self.marked.contains(&stream);
        let names = &self.names;
        for record in records {
            if let What::Frame { frame, .. } = &record.what
                && is_marker(&frame.kind)
            {
                self.marked.insert(stream);
            }
            if !awaited {
                continue;
            }
            for report in reports(&record.what, listing) {
                listing &= report != Report::InitDone;
                self.script.on_told(now, &report, &|wanted| names.expand(wanted));
            }
        }
    }
}
