//! Run of a scenario: position in the script, end condition, bound names, and assumed reports.
//!
//! It reads the records of the apiserver, and returns steps to run and records to append. It must not depend on how requests
//! are answered.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::matching::Read;
use scenario::{Awaited, ClientView, SharedScenario};
use trace::record::{Record, RunEnd, StreamId, What};
use trace::report::{Report, Version};

use super::assumed::{Assumed, is_marker};
use super::goal::{Goal, Limits};
use super::names::{Binding, Bindings, OfReports, OfRequests, START, binding_of};
use crate::apiserver::{Asked, Observer};
use crate::script::{Script, Standing};

/// How far the client has come to its start, the version of the first list that it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The initial objects are being created.
    Initial,
    /// Only the client has written since.
    Unmoved,
    /// A step has written.
    Moved,
    /// The client was sent its first list.
    Known,
}

/// State of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scenario: SharedScenario,
    script: Script,
    goal: Goal,
    pub(super) names: Bindings,
    /// What the client has received and written.
    view: ClientView,
    awaited: Awaited,
    /// How `$start` is still to be learned.
    start: Start,
    /// Names of steps that were met by requests, to be bound to the responses.
    to_name: BTreeMap<StreamId, String>,
    assumed: Assumed,
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
            names: Bindings::default(),
            view: ClientView::of(&scenario),
            awaited: Awaited::default(),
            start: Start::Initial,
            scenario,
            to_name: BTreeMap::new(),
            assumed: Assumed::default(),
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
            self.view.take(record);
            let what = &record.what;
            // A client that renews a lease every second is at rest all the same.
            let is_of_script = matches!(what, What::Wrote(write) if write.by.is_none());
            let moves = is_of_script || matches!(what, What::Restored { .. });
            if moves || matches!(what, What::Refused) {
                self.script.on_activity(record.at);
            }
            self.start = match (self.start, what) {
                (Start::Initial, What::Bound { name, .. }) if name == START => Start::Unmoved,
                (Start::Unmoved, _) if moves => Start::Moved,
                (start, _) => start,
            };
            let is_of_loop = matches!(what, What::Request { stream, .. } if self.view.is_of_loop(*stream));
            if is_of_loop || matches!(what, What::Refused) {
                self.count_request(record.at);
            }
            if let What::Restored { to } = what {
                self.assumed.on_restore(*to);
            }
            if let What::End { stream, .. } = what {
                self.to_name.remove(stream);
                self.assumed.on_end(*stream);
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

    /// Whether a request belongs to the loop under test. Only for observed requests.
    pub(super) fn is_of_loop(&self, stream: StreamId) -> bool {
        self.view.is_of_loop(stream)
    }

    /// Newest open watch of the loop under test.
    pub(super) fn newest_of_loop(&self, watches: impl Iterator<Item = StreamId>) -> Option<StreamId> {
        watches.filter(|stream| self.is_of_loop(*stream)).max()
    }

    /// The loop under test starts at `revision`, unless it has started before: what the client has written by then lies before
    /// the start. Returns the record to append.
    pub(super) fn on_start(&mut self, asked: &Asked, stream: StreamId, revision: u64) -> Option<What> {
        let read = read_of(asked);
        let starts = self.start == Start::Unmoved && self.is_of_loop(stream) && read.is_start();
        starts.then(|| self.start_at(&revision.to_string())).flatten()
    }

    /// A request arrived. Returns the step it meets, whose actions run before the response. The script ignores requests of
    /// other loops, which a client may run as well.
    pub(super) fn on_request(&mut self, now: Duration, asked: &Asked, stream: StreamId) -> Option<usize> {
        if !self.is_of_loop(stream) {
            return None;
        }
        let read = read_of(asked);
        let names = OfRequests(&self.names, &self.view);
        self.awaited.on_read(&self.scenario.expect, read, &names);
        self.script.on_request(now, read, &names)
    }

    /// The client reported something.
    pub(super) fn on_report(&mut self, now: Duration, report: &Report) {
        self.goal.on_report(now, report);
        let names = OfReports(&self.names, &self.view);
        self.awaited.on_report(&self.scenario.expect, report, &names);
        self.script.on_report(now, report, &names);
    }

    /// Binds the name to the response on this stream once it is sent.
    pub(super) fn name_what_leaves(&mut self, stream: StreamId, name: &str) {
        self.to_name.insert(stream, name.to_owned());
    }

    fn count_request(&mut self, now: Duration) {
        self.requests += 1;
        self.goal.on_request(now, self.requests);
    }

    // ---- deadlines

    /// Returns the step due at `now`. `watches`: the open watches.
    pub(super) fn due_step(
        &mut self,
        now: Duration,
        watches: impl Iterator<Item = StreamId> + Clone,
    ) -> Option<usize> {
        // Computed only for an armed step: it may visit every watch.
        let Standing::Armed { .. } = self.script.standing() else {
            return None;
        };
        let synced = self.synced_since(watches.clone());
        let watches = self.newest_of_loop(watches).is_some();
        self.script.poll(now, watches, synced)
    }

    /// Time since which the client has a watch open and is in sync, if a step waits for that.
    fn synced_since(&self, watches: impl Iterator<Item = StreamId>) -> Option<Duration> {
        let asked = self.script.awaits_sync() && self.newest_of_loop(watches).is_some();
        asked
            .then(|| self.goal.synced_since(self.script.quiet_since()))
            .flatten()
    }

    /// Checks whether the run is over. Returns records to append.
    pub(super) fn advance(&mut self, now: Duration, watches: impl Iterator<Item = StreamId>) -> Vec<What> {
        if self.goal.can_end() {
            let watch = self.newest_of_loop(watches);
            let is_sound = watch.is_some_and(|watch| self.view.is_sound(watch));
            self.goal
                .on_rest(watch.map(|_| self.script.quiet_since()), is_sound);
        }
        self.goal.on_awaited(
            self.awaited
                .is_met(&self.scenario.expect, self.goal.hears_reports()),
        );
        self.goal.advance(now, &self.script)
    }

    /// When to look again, if nothing happens before.
    pub(super) fn poll_timeout(
        &self,
        now: Duration,
        watches: impl Iterator<Item = StreamId>,
    ) -> Option<Duration> {
        let goal = self.goal.poll_timeout(&self.script);
        // A step that is due and not run waits for an open watch, which no tick provides.
        let script = self
            .script
            .poll_timeout(self.synced_since(watches))
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
        bound.extend(self.learn_start(stream, asked, records));
        self.assume_reports(now, stream, asked, records);
        bound
    }
}

impl Run {
    /// Binds `$start` to the version of the first list that the loop under test was sent. Returns the record to append.
    fn learn_start(&mut self, stream: StreamId, asked: &Asked, records: &[Record]) -> Option<What> {
        if self.start == Start::Known || !self.is_of_loop(stream) {
            return None;
        }
        let is_versionless = read_of(asked).is_start_without_list();
        let version = records.iter().find_map(|record| {
            if let What::Page {
                resource_version,
                scripted: false,
                ..
            } = &record.what
            {
                return Some(Some(resource_version));
            }
            if let What::Frame { frame, .. } = &record.what
                && is_marker(&frame.kind)
                && frame.whole()
                && !frame.scripted
            {
                return frame.object.as_ref().map(|object| Some(&object.resource_version));
            }
            let is_accepted = matches!(record.what, What::Head { status: 200, .. });
            (is_versionless && is_accepted).then_some(None)
        })?;
        self.start = Start::Known;
        self.start_at(version?)
    }

    fn start_at(&mut self, version: &str) -> Option<What> {
        let is_new = self.names.version(START) != Some(version);
        is_new.then(|| self.bind(START, version.to_owned()))
    }

    /// Derives reports from sent records, if the client sends none.
    fn assume_reports(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) {
        let is_needed = !self.goal.hears_reports() && self.script.will_await_report();
        if !is_needed || !self.is_of_loop(stream) {
            return;
        }
        let names = OfReports(&self.names, &self.view);
        for report in self.assumed.after(stream, read_of(asked), records) {
            self.script.on_assumed_report(now, &report, &names);
        }
    }
}

fn read_of(asked: &Asked) -> Read<'_> {
    Read {
        verb: asked.verb,
        query: asked.request.query.pairs(),
    }
}
