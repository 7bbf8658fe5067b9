//! Run of a scenario: position in the script, end condition, bound names, and assumed reports.
//!
//! It reads the records of the apiserver, and returns steps to run and records to append. It must not depend on how requests
//! are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scenario::SharedScenario;
use trace::record::{Record, RunEnd, StreamId, Verb, What};
use trace::report::{Report, Version};

use super::assumed::{is_marker, reports};
use super::goal::{Goal, Limits};
use super::names::{Binding, Names, binding_of};
use crate::apiserver::{Asked, Observer};
use crate::script::{self, Script, Standing};

/// State of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scenario: SharedScenario,
    script: Script,
    goal: Goal,
    pub(super) names: Names,
    /// Names of steps that were met by requests, to be bound to the responses.
    to_name: BTreeMap<StreamId, String>,
    /// Streaming lists past their initial events.
    marked: BTreeSet<StreamId>,
    requests: u64,
    /// Number of the next record to observe.
    next_record: u64,
}

impl Run {
    /// Returns a run before its first step.
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

    /// Binds a name to a resourceVersion. Returns the record to append.
    pub(super) fn bind(&mut self, name: &str, resource_version: String) -> What {
        let binding = Binding {
            resource_version,
            continue_token: None,
        };
        self.names.bind(name, binding)
    }

    /// Whether the store is compared with the client's reports.
    pub(super) fn compares(&self) -> bool {
        self.goal.compares()
    }

    /// End of the run, once it is over.
    pub(super) fn finished(&self) -> Option<&RunEnd> {
        self.goal.finished()
    }

    /// Index of the waiting step, and a description of its trigger; `None` once every step is done.
    pub(super) fn waiting_step(&self) -> Option<(usize, String)> {
        match self.script.standing() {
            Standing::Armed { step, .. } => {
                let step = self.script.required().unwrap_or(*step);
                Some((step, self.script.waiting_for()))
            }
            Standing::Missed { .. } | Standing::Done { .. } => None,
        }
    }

    /// Description of what the script waits for, for progress lines.
    pub(super) fn waiting_for(&self) -> String {
        self.script.waiting_for()
    }

    // ---- inputs

    /// Observes new records. `changed_at`: time of the last change queued on any watch.
    pub(super) fn observe(&mut self, records: &[Record], changed_at: Duration) {
        for record in records {
            self.next_record = record.seq + 1;
            let what = &record.what;
            if matches!(what, What::Refused | What::Wrote(_) | What::Restored { .. }) {
                self.script.on_activity(record.at);
            }
            if matches!(what, What::Refused | What::Request { .. }) {
                self.count_request();
            }
            if let What::End { stream, .. } = what {
                self.to_name.remove(stream);
                self.marked.remove(stream);
            }
        }
        if changed_at > self.script.quiet_since() {
            self.script.on_activity(changed_at);
        }
    }

    /// Number of the next record to pass to [`Run::observe`].
    pub(super) fn next_record(&self) -> u64 {
        self.next_record
    }

    /// A selected object changed: `Some` is its state; `None`: deleted or no longer selected.
    pub(super) fn on_write(&mut self, now: Duration, key: &str, state: Option<Version>) {
        self.goal.on_write(now, key, state);
    }

    /// The store was restored: `stored` are the selected objects.
    pub(super) fn on_restore(&mut self, now: Duration, stored: BTreeMap<String, Version>) {
        self.goal.on_restore(now, stored);
    }

    /// A request arrived. Returns the step it meets, whose actions run before the response. The script ignores other resources
    /// than the scenario's, which a client may read as well.
    pub(super) fn on_request(&mut self, now: Duration, asked: &Asked, of_target: bool) -> Option<usize> {
        if asked.verb == Verb::Other || !of_target {
            self.script.on_activity(now);
            return None;
        }
        let (names, asked) = (
            &self.names,
            script::Asked {
                verb: asked.verb,
                query: asked.request.query.pairs(),
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

    /// Binds the name to the response on this stream once it is sent.
    pub(super) fn name_what_leaves(&mut self, stream: StreamId, name: &str) {
        self.to_name.insert(stream, name.to_owned());
    }

    fn count_request(&mut self) {
        self.requests += 1;
        self.goal.on_request(self.requests);
    }

    // ---- deadlines

    /// Returns the step due at `now`. `watches`: whether a watch is open; `of_target`: whether one of the scenario's resource is.
    pub(super) fn due_step(
        &mut self,
        now: Duration,
        watches: impl FnOnce() -> bool,
        of_target: impl FnOnce() -> bool,
    ) -> Option<usize> {
        // Computed only for an armed step: it may visit every watch.
        let Standing::Armed { .. } = self.script.standing() else {
            return None;
        };
        let synced = self.synced_since(of_target);
        self.script.poll(now, watches(), synced)
    }

    /// Time since which the client has a watch open and is in sync, if a step waits for that.
    fn synced_since(&self, of_target: impl FnOnce() -> bool) -> Option<Duration> {
        let asked = self.script.awaits_sync() && of_target();
        asked
            .then(|| self.goal.synced_since(self.script.quiet_since()))
            .flatten()
    }

    /// Checks whether the run is over. Returns records to append.
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
        // A step that is due and not run waits for an open watch, which no tick provides.
        let script = self
            .script
            .poll_timeout(self.synced_since(of_target))
            .filter(|at| *at > now);
        [goal, script].into_iter().flatten().min()
    }
}

impl Observer for Run {
    fn on_left(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) -> Vec<What> {
        let mut bound = Vec::new();
        if let Some(name) = self.to_name.get(&stream)
            && let Some(binding) = records.iter().find_map(|record| binding_of(&record.what))
        {
            bound.push(self.names.bind(name, binding));
            self.to_name.remove(&stream);
        }
        self.assume_reports(now, stream, asked, records);
        bound
    }
}

impl Run {
    /// Derives reports from sent records, if the client sends none and a step waits for one.
    fn assume_reports(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) {
        if self.goal.hears_reports() {
            return;
        }
        let target = &self.scenario.target;
        let of_target = asked.collection.as_ref().is_some_and(|collection| {
            collection.kind.group == target.group && collection.kind.plural == target.plural
        });
        let awaited = of_target && self.script.awaits_report();
        // Events of a streaming list before its end marker are the list.
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
                self.script
                    .on_assumed_report(now, &report, &|wanted| names.expand(wanted));
            }
        }
    }
}
