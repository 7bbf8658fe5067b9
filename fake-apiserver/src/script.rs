//! Where in the scenario we are: which step is armed, what it waits for, and whether what just happened meets it.
//!
//! The script decides *that* a step runs; what its actions do is the business of [`crate::server`]. It knows no HTTP
//! and no model: requests reach it as [`Asked`], time as an argument.
//!
//! ```text
//!   Armed{step} --met, times left--> Armed{step}          (a request trigger that takes several requests)
//!        |------met, last time----> Armed{step + 1} ... --> Done
//!        |------ordinal already past--> Missed
//!        `------waited too long-------> Stuck
//! ```

use std::time::Duration;

use crate::record::Verb;
use crate::report::Report;
use crate::scenario::{
    EmittedKind, EmittedMatch, Expected, QueryMatch, RequestKind, RequestTrigger, SharedScenario, Times,
    Trigger,
};

/// How long a client that reports nothing is given to take in what it was told, before the script goes on.
const TIME_TO_TAKE_IN: Duration = Duration::from_millis(250);

/// What a step's trigger may know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    /// LIST, WATCH or streaming list; others never reach the script.
    pub verb: Verb,
    /// Decoded query parameters.
    pub query: &'a [(String, String)],
}

impl Asked<'_> {
    /// The value of a query parameter; `None` when absent or empty.
    fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn continues(&self) -> bool {
        self.verb == Verb::List && self.param("continue").is_some()
    }
}

/// How many requests of each kind came since the client started.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// LISTs without a continue token.
    lists: u32,
    /// Pages of the latest list attempt, the first included.
    pages: u32,
    /// Watches, streaming lists included.
    watches: u32,
    /// All of them.
    requests: u32,
    /// The continue token of the latest page: asked for again, it is the same page.
    token: Option<String>,
}

impl Counts {
    fn count(&mut self, asked: &Asked<'_>) {
        self.requests += 1;
        match asked.verb {
            Verb::Watch | Verb::WatchList => self.watches += 1,
            Verb::List if asked.continues() => {
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

/// Where the script stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// A step waits for its trigger.
    Armed {
        /// Its index.
        step: usize,
        /// Since when.
        since: Duration,
    },
    /// A step can no longer be met.
    Missed {
        /// Its index.
        step: usize,
        /// Why, in words.
        because: String,
    },
    /// Every step is done.
    Done {
        /// Since when.
        since: Duration,
    },
}

/// A pure cursor through the steps of a scenario.
#[derive(Debug)]
pub struct Script {
    scenario: SharedScenario,
    standing: Standing,
    counts: Counts,
    /// Requests that met the armed step so far.
    met: u32,
    /// When the armed step was first met, for `Times::For`.
    first_met: Option<Duration>,
    /// Matching reports seen since the step was armed.
    emitted: u32,
    /// The last of them, where they were only assumed.
    assumed: Option<Duration>,
    /// When either side last did anything.
    active: Duration,
}

impl Script {
    /// A cursor before the first step.
    pub fn new(scenario: SharedScenario) -> Self {
        let mut script = Self {
            scenario,
            standing: Standing::Done {
                since: Duration::ZERO,
            },
            counts: Counts::default(),
            met: 0,
            first_met: None,
            emitted: 0,
            assumed: None,
            active: Duration::ZERO,
        };
        script.arm(0, Duration::ZERO);
        script
    }

    /// Where the script stands.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// When either side last did anything.
    pub fn quiet_since(&self) -> Duration {
        self.active
    }

    /// Either side did something (bookmarks do not count): the quiet begins anew.
    pub fn on_activity(&mut self, now: Duration) {
        self.active = now;
    }

    /// A request arrived. `Some(step)`: it meets that step, whose actions are due now, before the answer.
    /// `expand` says what a name of the file stands for.
    pub fn on_request(
        &mut self,
        now: Duration,
        asked: &Asked<'_>,
        expand: &dyn Fn(&Expected) -> Option<String>,
    ) -> Option<usize> {
        self.on_activity(now);
        self.counts.count(asked);
        let step = self.armed()?;
        let Trigger::Request(trigger) = &self.scenario.steps[step].when else {
            self.check_missed();
            return None;
        };
        if !request_meets(trigger, asked, &self.counts, self.met > 0, expand) {
            self.check_missed();
            return None;
        }
        self.met += 1;
        self.first_met.get_or_insert(now);
        match self.scenario.steps[step].times {
            Times::Count(times) if self.met >= times => self.arm(step + 1, now),
            Times::Count(_) | Times::For(_) => {}
        }
        Some(step)
    }

    /// The client reported something. What it makes due is for [`Script::poll`] to say.
    pub fn on_report(
        &mut self,
        now: Duration,
        report: &Report,
        expand: &dyn Fn(&Expected) -> Option<String>,
    ) {
        self.on_activity(now);
        if self.is_waited_for(report, expand) {
            self.emitted += 1;
        }
    }

    /// The bytes have left which make a client report this: taken for the report of a client that reports nothing.
    pub fn on_told(&mut self, now: Duration, report: &Report, expand: &dyn Fn(&Expected) -> Option<String>) {
        if self.is_waited_for(report, expand) {
            self.emitted += 1;
            self.assumed = Some(now);
        }
    }

    /// Does the armed step wait for reports?
    pub fn awaits_report(&self) -> bool {
        let step = self.armed().map(|step| &self.scenario.steps[step].when);
        matches!(step, Some(Trigger::Emitted(_)))
    }

    /// `Some(step)`: a step that waits for no request is due; call again until `None`.
    /// `has_watch`: is a watch open that stream actions could concern?
    pub fn poll(&mut self, now: Duration, has_watch: bool) -> Option<usize> {
        let Standing::Armed { step, since } = self.standing else {
            return None;
        };
        if let (Times::For(for_ms), Some(first)) = (self.scenario.steps[step].times, self.first_met)
            && now >= first + Duration::from_millis(for_ms)
        {
            self.arm(step + 1, now);
            return self.poll(now, has_watch);
        }
        let due = self.due_by_time(step, since)?;
        if now < due || (self.scenario.steps[step].needs_watch() && !has_watch) {
            return None;
        }
        self.arm(step + 1, now);
        Some(step)
    }

    /// When [`Script::poll`] is due if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let Standing::Armed { step, since } = self.standing else {
            return None;
        };
        match (self.scenario.steps[step].times, self.first_met) {
            (Times::For(for_ms), Some(first)) => Some(first + Duration::from_millis(for_ms)),
            (Times::For(_) | Times::Count(_), _) => self.due_by_time(step, since),
        }
    }

    /// What the armed step waits for, in words.
    pub fn waiting_for(&self) -> String {
        let Standing::Armed { step, .. } = self.standing else {
            return String::new();
        };
        let step = &self.scenario.steps[step];
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
        }
    }

    fn armed(&self) -> Option<usize> {
        match self.standing {
            Standing::Armed { step, .. } => Some(step),
            Standing::Missed { .. } | Standing::Done { .. } => None,
        }
    }

    fn is_waited_for(&self, report: &Report, expand: &dyn Fn(&Expected) -> Option<String>) -> bool {
        let step = self.armed().map(|step| &self.scenario.steps[step].when);
        matches!(step, Some(Trigger::Emitted(wanted)) if report_meets(wanted, report, expand))
    }

    fn due_by_time(&self, step: usize, since: Duration) -> Option<Duration> {
        match self.scenario.steps[step].when {
            Trigger::Now => Some(since),
            Trigger::After(ms) => Some(since + Duration::from_millis(ms)),
            Trigger::Quiet(ms) => Some(self.active.max(since) + Duration::from_millis(ms)),
            Trigger::Emitted(ref wanted) => (self.emitted >= wanted.nth)
                .then(|| self.assumed.map_or(since, |told| told + TIME_TO_TAKE_IN)),
            Trigger::Request(_) => None,
        }
    }

    fn arm(&mut self, step: usize, now: Duration) {
        (self.met, self.first_met) = (0, None);
        (self.emitted, self.assumed) = (0, None);
        if step == self.scenario.steps.len() {
            self.standing = Standing::Done { since: now };
            return;
        }
        self.standing = Standing::Armed { step, since: now };
        self.check_missed();
    }

    fn check_missed(&mut self) {
        let Standing::Armed { step, .. } = self.standing else {
            return;
        };
        let Trigger::Request(trigger) = &self.scenario.steps[step].when else {
            return;
        };
        if self.met == 0
            && let Some(because) = past(trigger, &self.counts)
        {
            self.standing = Standing::Missed { step, because };
        }
    }
}

fn request_meets(
    trigger: &RequestTrigger,
    asked: &Asked<'_>,
    counts: &Counts,
    again: bool,
    expand: &dyn Fn(&Expected) -> Option<String>,
) -> bool {
    let is_watch = matches!(asked.verb, Verb::Watch | Verb::WatchList);
    let (kind_meets, ordinal) = match trigger.kind {
        RequestKind::List => (asked.verb == Verb::List && !asked.continues(), counts.lists),
        RequestKind::Page { page } => (asked.continues() && counts.pages == page, counts.lists),
        RequestKind::Watch => (is_watch, counts.watches),
        RequestKind::Any => (asked.verb != Verb::Other, counts.requests),
    };
    // An ordinal names the first request of a step that takes several.
    let ordinal_meets = again || trigger.nth.is_none_or(|nth| nth == ordinal);
    kind_meets
        && ordinal_meets
        && trigger
            .query
            .iter()
            .all(|wanted| query_meets(wanted, asked, expand))
}

fn query_meets(wanted: &QueryMatch, asked: &Asked<'_>, expand: &dyn Fn(&Expected) -> Option<String>) -> bool {
    value_meets(&wanted.value, asked.param(&wanted.name), expand)
}

/// Does `value` (absent and empty are `None`) meet what is `wanted`?
pub fn value_meets(
    wanted: &Expected,
    value: Option<&str>,
    expand: &dyn Fn(&Expected) -> Option<String>,
) -> bool {
    match wanted {
        Expected::Is(_) | Expected::Ref(_) => match expand(wanted) {
            Some(text) => value.unwrap_or_default() == text,
            None => false,
        },
        Expected::Not(inner) => !value_meets(inner, value, expand),
        Expected::Absent => value.is_none(),
        Expected::Present => value.is_some(),
    }
}

/// Is this the report that is wanted, whatever its ordinal?
pub fn report_meets(
    wanted: &EmittedMatch,
    report: &Report,
    expand: &dyn Fn(&Expected) -> Option<String>,
) -> bool {
    let kind = match report {
        Report::Init => EmittedKind::Init,
        Report::InitApply(_) => EmittedKind::InitApply,
        Report::InitDone => EmittedKind::InitDone,
        Report::Apply(_) => EmittedKind::Apply,
        Report::Delete(_) => EmittedKind::Delete,
        Report::Error { .. } => EmittedKind::Error,
        Report::Ended | Report::Crashed { .. } => return false,
    };
    let object = report.object();
    let name_meets = wanted
        .name
        .as_ref()
        .is_none_or(|name| object.is_some_and(|object| object.name == *name || object.key() == *name));
    let version_meets = wanted.resource_version.as_ref().is_none_or(|wanted| {
        value_meets(
            wanted,
            object.and_then(|object| object.resource_version.as_deref()),
            expand,
        )
    });
    kind == wanted.kind && name_meets && version_meets
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

/// `the 2nd WATCH with resourceVersion=1003`.
pub fn words_for_request(trigger: &RequestTrigger) -> String {
    let what = match trigger.kind {
        RequestKind::List => "LIST".to_owned(),
        RequestKind::Page { page } => format!("page {page} of a LIST"),
        RequestKind::Watch => "WATCH".to_owned(),
        RequestKind::Any => "request".to_owned(),
    };
    let which = match (trigger.kind, trigger.nth) {
        (_, None) => format!("the next {what}"),
        (RequestKind::Page { page }, Some(nth)) => format!("page {page} of the {} LIST", ordinal(nth)),
        (_, Some(nth)) => format!("the {} {what}", ordinal(nth)),
    };
    let query: Vec<String> = trigger
        .query
        .iter()
        .map(|wanted| format!("{} {}", wanted.name, words_for_expected(&wanted.value)))
        .collect();
    if query.is_empty() {
        which
    } else {
        format!("{which} with {}", query.join(", "))
    }
}

/// `the client to report apply b`.
pub fn words_for_emitted(wanted: &EmittedMatch) -> String {
    let name = wanted
        .name
        .as_ref()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let version = wanted
        .resource_version
        .as_ref()
        .map(|version| format!(" with resourceVersion {}", words_for_expected(version)))
        .unwrap_or_default();
    let times = if wanted.nth > 1 {
        format!(" for the {} time", ordinal(wanted.nth))
    } else {
        String::new()
    };
    format!(
        "the client to report {}{name}{version}{times}",
        wanted.kind.word()
    )
}

/// `= "1003"`, `absent`, `= $b`.
pub fn words_for_expected(value: &Expected) -> String {
    match value {
        Expected::Is(text) => format!("= {text:?}"),
        Expected::Not(inner) => format!("not {}", words_for_expected(inner)),
        Expected::Absent => "absent".to_owned(),
        Expected::Present => "present".to_owned(),
        Expected::Ref(name) => format!("= {name}"),
    }
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests;
