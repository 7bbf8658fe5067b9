//! Expected requests and events that have not come yet: a run waits for them before it ends.
//!
//! It only decides how long a run lasts. What an expectation means is decided from the whole trace, by the judge: where the
//! two could differ (the status of the response, a name that only the judge resolves), nothing is awaited.

use trace::report::Report;

use super::matching::{Names, Read, continues_start, report_meets, starts_instead};
use super::rule::kind_meets;
use super::{EmittedExpect, Expect, Expected, QueryMatch, RequestExpect, RequestPattern, matching};

/// Progress through the expected requests and events of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Awaited {
    has_begun: bool,
    requests: usize,
    events: usize,
    /// How often the next expected event came.
    times: u32,
}

impl Awaited {
    /// Processes a request of the loop under test.
    pub fn on_read(&mut self, expect: &Expect, read: Read<'_>, names: &dyn Names) {
        let Some(expected) = expect.requests.get(self.requests) else {
            return;
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let continues = |pattern: &RequestPattern| continues_start(pattern.kind, &pattern.query, read, names);
        let starts = is_first && expected.any_of.iter().any(continues);
        if !starts && !meets(expected, read, names) {
            return;
        }
        self.requests += 1;
        // A watch that is a start is the list and the watch after it.
        let is_both = expected
            .any_of
            .iter()
            .any(|pattern| starts_instead(pattern.kind, &pattern.query, read, names));
        if is_both
            && let Some(next) = expect.requests.get(self.requests)
            && next
                .any_of
                .iter()
                .any(|pattern| continues_start(pattern.kind, &pattern.query, read, names))
        {
            self.requests += 1;
        }
    }

    /// Processes a report of the client.
    pub fn on_report(&mut self, expect: &Expect, report: &Report, names: &dyn Names) {
        let Some(EmittedExpect { event: expected, .. }) = expect.events.get(self.events) else {
            return;
        };
        let is_unknown =
            matches!(&expected.resource_version, Some(Expected::Ref(of)) if names.value(of).is_none());
        self.times += u32::from(is_unknown || report_meets(expected, report, names));
        if self.times >= expected.nth.max(1) {
            (self.events, self.times) = (self.events + 1, 0);
        }
    }

    /// Returns whether nothing is missing. `reports`: whether the client reports its events.
    pub fn is_met(&self, expect: &Expect, reports: bool) -> bool {
        self.requests >= expect.requests.len() && (!reports || self.events >= expect.events.len())
    }
}

/// Returns whether a request can be the expected one. The watch that ends a `resume` is it whatever it starts at: nothing
/// later can meet it.
fn meets(expected: &RequestExpect, read: Read<'_>, names: &dyn Names) -> bool {
    if expected.or_relist {
        return read.is_watch();
    }
    expected.any_of.iter().any(|pattern| {
        let is_meant =
            kind_meets(pattern.kind, read.verb, read.query) && may_meet(&pattern.query, read, names);
        is_meant || starts_instead(pattern.kind, &pattern.query, read, names)
    })
}

fn may_meet(wanted: &[QueryMatch], read: Read<'_>, names: &dyn Names) -> bool {
    let is_unknown = |wanted: &QueryMatch| match &wanted.value {
        Expected::Ref(reference) => names.value(reference).is_none(),
        Expected::Is(_) | Expected::Not(_) | Expected::Absent | Expected::Present => false,
    };
    wanted.iter().all(|wanted| {
        is_unknown(wanted) || matching::value_meets(&wanted.value, read.param(&wanted.name), names)
    })
}
