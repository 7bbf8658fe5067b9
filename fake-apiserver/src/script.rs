//! Position in a scenario: which step is armed, what it waits for, and whether an input meets it.
//!
//! The script decides *that* a step runs; the server runs its actions. No HTTP and no model: requests arrive as [`Read`],
//! time as an argument.
//!
//! ```text
//!   Armed{step} --met, times left--> Armed{step}          (a request trigger that takes several requests)
//!        |------met, last time----> Armed{step + 1} ... --> Done
//!        |------ordinal already past--> Missed
//!        `------waited too long-------> Stuck
//! ```
//!
//! An optional step is armed together with the steps after it, up to the first that is not optional: the first of them to be
//! met runs, and those before it are skipped.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use scenario::matching::{Names, Read, query_meets, report_meets, words_for_emitted, words_for_request};
use scenario::rule::kind_meets;
use scenario::{RequestKind, RequestTrigger, SharedScenario, Times, Trigger};
use trace::record::Verb;
use trace::report::Report;

/// Pause after an assumed report, in which the client handles the event.
const TIME_TO_TAKE_IN: Duration = Duration::from_millis(250);

/// Requests since the client started, by kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// LISTs without a continue token.
    lists: u32,
    /// Pages of the latest list attempt, the first included.
    pages: u32,
    /// Watches, streaming lists included.
    watches: u32,
    /// All requests.
    requests: u32,
    /// Continue token of the latest page: a request that repeats it counts as the same page.
    token: Option<String>,
}

impl Counts {
    fn count(&mut self, asked: Read<'_>) {
        self.requests += 1;
        match asked.verb {
            Verb::Watch | Verb::WatchList => self.watches += 1,
            Verb::List if continues(asked) => {
                let token = asked.param("continue").map(str::to_owned);
                if self.token != token {
                    self.pages += 1;
                    self.token = token;
                }
            }
            Verb::List => {
                self.lists += 1;
                self.pages = 1;
                self.token = None;
            }
            Verb::Other => {}
        }
    }
}

/// Position of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A step waits for its trigger.
    Armed {
        /// Index of the step.
        step: usize,
        /// Time since which.
        since: Duration,
    },
    /// A step can no longer be met.
    Missed {
        /// Index of the step.
        step: usize,
        /// Reason.
        because: String,
    },
    /// Every step is done.
    Done {
        /// Time since which.
        since: Duration,
    },
}

/// Pure cursor through the steps of a scenario.
#[derive(Debug)]
pub struct Script {
    scenario: SharedScenario,
    standing: Standing,
    counts: Counts,
    /// Requests that met the armed step so far.
    met: u32,
    /// Time at which the armed step was first met, for `Times::For`.
    first_met: Option<Duration>,
    /// Matching reports seen since the step was armed, by the step that waits for them.
    emitted: BTreeMap<usize, u32>,
    /// Time of the last of them, if it was assumed.
    assumed: Option<Duration>,
    /// Time of the last activity of either side.
    active: Duration,
    /// The step that must be met next is due, and has no open watch to act on.
    lacks_watch: bool,
}

impl Script {
    /// Returns a cursor before the first step.
    pub fn new(scenario: SharedScenario) -> Self {
        let mut script = Self {
            scenario,
            standing: Standing::Done {
                since: Duration::ZERO,
            },
            counts: Counts::default(),
            met: 0,
            first_met: None,
            emitted: BTreeMap::new(),
            assumed: None,
            active: Duration::ZERO,
            lacks_watch: false,
        };
        script.arm(0, Duration::ZERO);
        script
    }

    /// Position of the script.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Time of the last activity of either side.
    pub fn quiet_since(&self) -> Duration {
        self.active
    }

    /// Either side was active (bookmarks do not count): restarts the quiet period.
    pub fn on_activity(&mut self, now: Duration) {
        self.active = now;
    }

    /// A request arrived. `Some(step)`: it meets that step, whose actions run now, before the response.
    /// `names`: values of the file.
    pub fn on_request(&mut self, now: Duration, asked: Read<'_>, names: &dyn Names) -> Option<usize> {
        self.on_activity(now);
        self.counts.count(asked);
        let first = self.armed()?;
        let met = self
            .candidates()
            .find(|step| match &self.scenario.steps[*step].when {
                Trigger::Request(trigger) => {
                    let again = *step == first && self.met > 0;
                    request_meets(trigger, asked, &self.counts, again, names)
                }
                Trigger::Now
                | Trigger::Emitted(_)
                | Trigger::After(_)
                | Trigger::Quiet(_)
                | Trigger::Synced => false,
            });
        let Some(step) = met else {
            self.check_missed();
            return None;
        };
        if step != first {
            self.arm_unchecked(step, now);
        }
        self.met += 1;
        self.first_met.get_or_insert(now);
        match self.scenario.steps[step].times {
            Times::Count(times) if self.met >= times => self.arm(step + 1, now),
            Times::Count(_) | Times::For(_) => {}
        }
        Some(step)
    }

    /// The client reported an event. [`Script::poll`] returns the steps that it makes due.
    pub fn on_report(&mut self, now: Duration, report: &Report, names: &dyn Names) {
        self.on_activity(now);
        self.count_report(report, names);
    }

    /// The bytes of this event were sent: counts as the report of a client without an adapter.
    pub fn on_assumed_report(&mut self, now: Duration, report: &Report, names: &dyn Names) {
        if self.count_report(report, names) {
            self.assumed = Some(now);
        }
    }

    /// Whether the armed step or a later one waits for reports.
    pub fn will_await_report(&self) -> bool {
        let armed = self.armed().unwrap_or(self.scenario.steps.len());
        let mut steps = self.scenario.steps[armed..].iter();
        steps.any(|step| matches!(step.when, Trigger::Emitted(_)))
    }

    /// Whether an armed step waits for the client's cache.
    pub fn awaits_sync(&self) -> bool {
        self.candidates()
            .any(|step| self.scenario.steps[step].when == Trigger::Synced)
    }

    /// Index of the step that must be met next: the armed one, or the first after it that is not optional.
    pub fn required(&self) -> Option<usize> {
        self.candidates().last()
    }

    /// Returns a step that is due without a request; call again until `None`.
    /// `has_watch`: whether a watch is open that stream actions can apply to; `synced`: time since which the client is in sync;
    /// `None`: it is not.
    pub fn poll(&mut self, now: Duration, has_watch: bool, synced: Option<Duration>) -> Option<usize> {
        let Standing::Armed { step, since } = self.standing else {
            return None;
        };
        if let (Times::For(for_ms), Some(first)) = (self.scenario.steps[step].times, self.first_met)
            && now >= first + Duration::from_millis(for_ms)
        {
            self.arm(step + 1, now);
            return self.poll(now, has_watch, synced);
        }
        let is_due = |step: &usize| {
            let due = self.due_by_time(*step, since, synced);
            due.is_some_and(|due| now >= due)
        };
        let lacks_watch = |step: &usize| !has_watch && self.scenario.steps[*step].needs_watch();
        let step = self.candidates().find(|step| is_due(step) && !lacks_watch(step));
        self.lacks_watch = self
            .required()
            .is_some_and(|step| is_due(&step) && lacks_watch(&step));
        let step = step?;
        self.arm(step + 1, now);
        Some(step)
    }

    /// Next deadline of [`Script::poll`].
    pub fn poll_timeout(&self, synced: Option<Duration>) -> Option<Duration> {
        let Standing::Armed { step, since } = self.standing else {
            return None;
        };
        match (self.scenario.steps[step].times, self.first_met) {
            (Times::For(for_ms), Some(first)) => Some(first + Duration::from_millis(for_ms)),
            (Times::For(_) | Times::Count(_), _) => self
                .candidates()
                .filter_map(|step| self.due_by_time(step, since, synced))
                .min(),
        }
    }

    /// Description of the trigger of the armed step; of optional steps, that of the first required one after them.
    pub fn waiting_for(&self) -> String {
        let Some(step) = self.required() else {
            return String::new();
        };
        let step = &self.scenario.steps[step];
        if self.lacks_watch {
            return "an open watch to act on".to_owned();
        }
        match &step.when {
            Trigger::Request(trigger) => {
                let times = match step.times {
                    Times::Count(times) if times > 1 => format!(" ({} of {times} came)", self.met),
                    Times::Count(_) | Times::For(_) => String::new(),
                };
                format!("{}{times}", words_for_request(trigger))
            }
            Trigger::Emitted(wanted) => words_for_emitted(wanted),
            Trigger::Now => "an open watch to act on".to_owned(),
            Trigger::After(ms) => format!("{ms} ms to pass"),
            Trigger::Quiet(ms) => format!("{ms} ms in which neither side does anything"),
            Trigger::Synced => "the client to hold a watch and a cache that equals the store".to_owned(),
        }
    }

    fn armed(&self) -> Option<usize> {
        match self.standing {
            Standing::Armed { step, .. } => Some(step),
            Standing::Missed { .. } | Standing::Done { .. } => None,
        }
    }

    /// The armed step and, while it is optional, those that may run in its place; empty if no step is armed.
    fn candidates(&self) -> RangeInclusive<usize> {
        let Some(first) = self.armed() else {
            #[expect(clippy::reversed_empty_ranges, reason = "there is none")]
            return 1..=0;
        };
        let steps = &self.scenario.steps[first..];
        let optional = steps.iter().take_while(|step| step.optional).count();
        // The last step of a file is never optional.
        first..=(first + optional).min(self.scenario.steps.len() - 1)
    }

    /// Counts a report for the steps that wait for it. Returns false if none does.
    fn count_report(&mut self, report: &Report, names: &dyn Names) -> bool {
        let mut counted = false;
        for step in self.candidates() {
            if let Trigger::Emitted(wanted) = &self.scenario.steps[step].when
                && report_meets(wanted, report, names)
            {
                *self.emitted.entry(step).or_default() += 1;
                counted = true;
            }
        }
        counted
    }

    fn due_by_time(&self, step: usize, since: Duration, synced: Option<Duration>) -> Option<Duration> {
        match self.scenario.steps[step].when {
            Trigger::Now => Some(since),
            Trigger::After(ms) => Some(since + Duration::from_millis(ms)),
            Trigger::Quiet(ms) => Some(self.active.max(since) + Duration::from_millis(ms)),
            Trigger::Synced => synced.map(|synced| synced.max(since)),
            Trigger::Emitted(ref wanted) => (self.emitted.get(&step).is_some_and(|seen| *seen >= wanted.nth))
                .then(|| self.assumed.map_or(since, |assumed| assumed + TIME_TO_TAKE_IN)),
            Trigger::Request(_) => None,
        }
    }

    fn arm(&mut self, step: usize, now: Duration) {
        self.arm_unchecked(step, now);
        self.check_missed();
    }

    fn arm_unchecked(&mut self, step: usize, now: Duration) {
        (self.met, self.first_met) = (0, None);
        (self.emitted, self.assumed) = (BTreeMap::new(), None);
        self.lacks_watch = false;
        self.standing = if step == self.scenario.steps.len() {
            Standing::Done { since: now }
        } else {
            Standing::Armed { step, since: now }
        };
    }

    fn check_missed(&mut self) {
        // An optional step need not be met.
        let Some(step) = self.required() else {
            return;
        };
        let is_met = self.met > 0 && self.armed() == Some(step);
        let Trigger::Request(trigger) = &self.scenario.steps[step].when else {
            return;
        };
        if !is_met && let Some(because) = past(trigger, &self.counts) {
            self.standing = Standing::Missed { step, because };
        }
    }
}

fn request_meets(
    trigger: &RequestTrigger,
    asked: Read<'_>,
    counts: &Counts,
    again: bool,
    names: &dyn Names,
) -> bool {
    let ordinal = match trigger.kind {
        RequestKind::List | RequestKind::Page { .. } => counts.lists,
        RequestKind::Watch => counts.watches,
        RequestKind::Any => counts.requests,
    };
    let is_page = match trigger.kind {
        RequestKind::Page { page } => counts.pages == page,
        RequestKind::List | RequestKind::Watch | RequestKind::Any => true,
    };
    // An ordinal selects the first request of a step for several.
    let ordinal_meets = again || trigger.nth.is_none_or(|nth| nth == ordinal);
    kind_meets(trigger.kind, asked.verb, asked.query)
        && is_page
        && ordinal_meets
        && query_meets(&trigger.query, asked, names)
}

/// Returns whether it is a later page of a LIST.
fn continues(asked: Read<'_>) -> bool {
    asked.verb == Verb::List && !asked.is_start()
}

fn past(trigger: &RequestTrigger, counts: &Counts) -> Option<String> {
    let nth = trigger.nth?;
    match trigger.kind {
        RequestKind::List if counts.lists >= nth => Some(format!("LIST {} has come already", counts.lists)),
        RequestKind::Page { page } if counts.lists > nth || (counts.lists == nth && counts.pages >= page) => {
            Some(format!(
                "page {} of LIST {} has come already",
                counts.pages, counts.lists
            ))
        }
        RequestKind::Watch if counts.watches >= nth => {
            Some(format!("WATCH {} has come already", counts.watches))
        }
        RequestKind::Any if counts.requests >= nth => {
            Some(format!("request {} has come already", counts.requests))
        }
        RequestKind::List | RequestKind::Page { .. } | RequestKind::Watch | RequestKind::Any => None,
    }
}

#[cfg(test)]
mod tests;
