//! Checks the expectations of a scenario against the trace.
//!
//! Two sets of checks: [`unmet`] for a run that completed, and [`broken`] for one that did not, in which missing
//! requests and events prove nothing and only forbidden ones count.

use ::trace::record::RunEnd;
use scenario::{
    ClientView, Contract, EmittedExpect, EmittedMatch, EmittedNever, Place, RequestCount, RequestExpect,
    RequestKind, Scenario,
};

use crate::cache::Cache;
use crate::trace::{Exchange, Moment, Reported, Trace};
use crate::verdict::{Check, Contradiction};
use crate::words;

mod matching;
mod restarts;

use matching::{
    Names, any_of, continues_start, emitted, emitted_words, header_values, header_words, is_exactly, matches,
    of_kind, query_words, resumed, same_name, starts_instead,
};
use restarts::{is_same_process, is_start, most_of_a_process, started_instead};

/// Returns the expectations that are not met, and the forbidden requests and events in the trace.
pub fn unmet(scenario: &Scenario, trace: &Trace<'_>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let check = Checker::new(scenario, trace);
    check.requests(&mut found);
    check.counts(&mut found, true);
    check.never(&mut found);
    check.events(&mut found);
    check.never_emitted(&mut found);
    check.cache(&mut found);
    found
}

/// Returns the forbidden requests and events in the trace. For runs that stopped early.
pub fn broken(scenario: &Scenario, trace: &Trace<'_>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let check = Checker::new(scenario, trace);
    check.counts(&mut found, false);
    check.never(&mut found);
    check.never_emitted(&mut found);
    found
}

/// Returns the part of [`unmet`] about requests, which needs no reports.
pub fn unmet_on_the_wire(scenario: &Scenario, trace: &Trace<'_>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let check = Checker::of_program(scenario, trace);
    check.requests(&mut found);
    check.counts(&mut found, true);
    check.never(&mut found);
    found
}

/// Returns the part of [`broken`] that needs no reports.
pub fn broken_on_the_wire(scenario: &Scenario, trace: &Trace<'_>) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let check = Checker::of_program(scenario, trace);
    check.counts(&mut found, false);
    check.never(&mut found);
    found
}

/// Returns when the event that a stuck step waits for was reported before the step was armed, if it was.
pub fn came_before(scenario: &Scenario, trace: &Trace<'_>, expected: &EmittedMatch) -> Option<Moment> {
    let view = view_of(scenario, trace);
    let names = Names::new(trace, &view);
    trace
        .reports
        .iter()
        .find(|reported| emitted(&names, expected, reported))
        .map(|reported| reported.at)
}

/// Returns what the client has received and written. Only a client that writes receives versions that no scenario can name.
fn view_of(scenario: &Scenario, trace: &Trace<'_>) -> ClientView {
    if trace.writes.iter().all(|wrote| wrote.write.by.is_none()) {
        return ClientView::of(scenario);
    }
    ClientView::after(scenario, trace.records())
}

/// An expectation that is not met.
struct Expectation<'s> {
    check: Check,
    /// Requirements that the failure is evidence against.
    requirements: &'s [String],
    place: Option<Place>,
}

struct Checker<'t, 'a> {
    scenario: &'t Scenario,
    trace: &'t Trace<'a>,
    view: ClientView,
}

impl<'t, 'a> Checker<'t, 'a> {
    fn new(scenario: &'t Scenario, trace: &'t Trace<'a>) -> Self {
        Self {
            scenario,
            trace,
            view: view_of(scenario, trace),
        }
    }

    /// Checks a whole program, which may also do what its informer does not.
    fn of_program(scenario: &'t Scenario, trace: &'t Trace<'a>) -> Self {
        Self {
            scenario,
            trace,
            view: ClientView::after(scenario, trace.records()),
        }
    }

    /// Returns whether a request can meet an expectation, and proves nothing against the client.
    fn is_excused(&self, exchange: &Exchange<'a>) -> bool {
        is_start(self.trace, exchange) || self.view.is_beside(exchange.stream)
    }

    fn requests(&self, found: &mut Vec<Contradiction>) {
        let expect = &self.scenario.expect;
        let reads: Vec<&Exchange<'a>> = self.trace.reads().collect();
        let mut names = Names::new(self.trace, &self.view);
        let mut used = vec![false; reads.len()];
        let mut from = 0;
        let mut before: Option<&Exchange<'a>> = None;
        // A WATCH that stood for a LIST, and may stand for the WATCH after it; or the first request, if no LIST is expected.
        let is_informer = self.scenario.client.contract == Contract::Informer;
        let mut next_start: Option<usize> = (is_informer && !reads.is_empty()).then_some(0);
        for (index, expected) in expect.requests.iter().enumerate() {
            let check = Check::Expected(format!("requests[{index}]"));
            let start = next_start.take();
            let hit = if let Some(at) = start.filter(|at| continues_start(&names, expected, reads[*at])) {
                Some(at)
            } else if expected.or_relist {
                resumed(&names, expected, &reads, from)
            } else {
                (from..reads.len()).find(|at| any_of(&names, expected, reads[*at]))
            };
            let hit = hit.or_else(|| started_instead(self.trace, expected, &reads, from, before));
            let Some(hit) = hit else {
                found.push(self.missing_request(check, &names, expected, &reads[from..], before));
                // Later mismatches are consequences: one cause, one contradiction.
                return;
            };
            self.gap(found, check, expected, before, reads[hit]);
            if let Some(name) = &expected.name {
                names.bind(name, reads[hit]);
            }
            // The pages of a relist belong to it.
            let first = if expected.or_relist { from.min(hit) } else { hit };
            used[first..=hit].fill(true);
            before = Some(reads[hit]);
            from = hit + 1;
            let lists = expected
                .any_of
                .iter()
                .any(|request| request.kind == RequestKind::List);
            next_start = (lists && reads[hit].is_watch()).then_some(hit);
        }
        for (used, read) in used.iter_mut().zip(&reads) {
            *used |= self.is_excused(read);
        }
        if expect.only
            && let Some(at) = used.iter().position(|used| !used)
        {
            let extra = reads[at];
            let others = used.iter().filter(|used| !**used).count() - 1;
            let more = if others > 0 {
                format!(" (and {others} more)")
            } else {
                String::new()
            };
            let covers = self.scenario.covers.iter();
            let first: Vec<String> = covers.take(1).map(|first| first.id.clone()).collect();
            found.push(self.contradiction(
                Expectation {
                    check: Check::Expected("only".to_owned()),
                    requirements: &first,
                    place: expect.requests.last().map(|last| last.at),
                },
                format!(
                    "the client sent a request too many: {} at {}{more}",
                    words::request(extra),
                    words::time(extra.asked.at)
                ),
                format!("only the {} requests listed", expect.requests.len()),
                format!("{}{more}", words::request(extra)),
                vec![extra.asked.seq],
            ));
        }
    }

    fn missing_request(
        &self,
        check: Check,
        names: &Names<'_, 'a>,
        expected: &RequestExpect,
        rest: &[&Exchange<'a>],
        before: Option<&Exchange<'a>>,
    ) -> Contradiction {
        let seq = before.map_or(0, |before| before.asked.seq);
        let wanted = expected
            .any_of
            .iter()
            .map(|request| query_words(names, request.kind, &request.query, u64::MAX))
            .collect::<Vec<_>>()
            .join(", or ");
        let relisted = if expected.or_relist {
            " next, or a relist"
        } else {
            ""
        };
        let answered = expected.answered.map(|status| format!(" answered with {status}"));
        let headers = header_words(names, &expected.headers);
        let wanted = wanted + relisted + &answered.unwrap_or_default() + &headers;
        let after = match before {
            Some(before) => format!(
                " after {} at {}",
                words::request(before),
                words::time(before.asked.at)
            ),
            None => String::new(),
        };
        let nearest = rest
            .iter()
            .find(|exchange| {
                let mut alternatives = expected.any_of.iter();
                alternatives.any(|request| of_kind(exchange, request.kind))
            })
            .or(rest.first());
        let actual = match nearest {
            Some(nearest) => format!(
                "{} at {}{}",
                words::request(nearest),
                words::time(nearest.asked.at),
                header_values(&expected.headers, nearest)
            ),
            None => "no further request".to_owned(),
        };
        let evidence = nearest.map_or(vec![seq], |nearest| vec![nearest.asked.seq]);
        self.contradiction(
            Expectation {
                check,
                requirements: &expected.requirements,
                place: Some(expected.at),
            },
            format!("the client never sent {wanted}{after}; what came nearest: {actual}"),
            wanted,
            actual,
            evidence,
        )
    }

    fn gap(
        &self,
        found: &mut Vec<Contradiction>,
        check: Check,
        expected: &RequestExpect,
        before: Option<&Exchange<'a>>,
        hit: &Exchange<'a>,
    ) {
        // One watch stands for the LIST and the WATCH.
        if before.is_some_and(|before| before.stream == hit.stream) {
            return;
        }
        let since = before.map_or(
            Moment {
                seq: 0,
                at: std::time::Duration::ZERO,
            },
            |before| before.asked,
        );
        // A new process does not know when the last one sent its request, and a poll does not wait for the informer.
        if before.is_some_and(|before| !is_same_process(self.trace, before, hit))
            || self.view.is_beside(hit.stream)
        {
            return;
        }
        let gap_ms = hit.asked.at.saturating_sub(since.at).as_millis() as u64;
        let bound = match (expected.at_least_after_ms, expected.at_most_after_ms) {
            (Some(least), _) if gap_ms < least => format!("at least {} later", words::span(least)),
            (_, Some(most)) if gap_ms > most => format!("at most {} later", words::span(most)),
            (Some(_) | None, Some(_) | None) => return,
        };
        let early = expected.at_least_after_ms.is_some_and(|least| gap_ms < least);
        found.push(self.contradiction(
            Expectation {
                check,
                requirements: &expected.requirements,
                place: Some(expected.at),
            },
            format!(
                "the client sent {} too {}: {} after the request before it, expected {bound}",
                words::request(hit),
                if early { "early" } else { "late" },
                words::span(gap_ms),
            ),
            bound,
            format!("{} later", words::span(gap_ms)),
            vec![since.seq, hit.asked.seq],
        ));
    }

    fn counts(&self, found: &mut Vec<Contradiction>, whole: bool) {
        let names = Names::new(self.trace, &self.view);
        for (index, count) in self.scenario.expect.counts.iter().enumerate() {
            let RequestCount {
                kind,
                query,
                at_least,
                at_most,
                requirements,
                at,
            } = count;
            let of_kind = self.trace.reads().filter(|exchange| of_kind(exchange, *kind));
            let exact: Vec<&Exchange<'a>> = of_kind
                .clone()
                .filter(|exchange| is_exactly(&names, query, exchange))
                .filter(|exchange| !self.view.is_beside(exchange.stream))
                .collect();
            let starts = self
                .trace
                .reads()
                .filter(|exchange| starts_instead(&names, *kind, query, exchange));
            let at_all: Vec<&Exchange<'a>> = of_kind
                .filter(|exchange| matches(&names, query, exchange))
                .chain(starts)
                .collect();
            let most_exact = most_of_a_process(self.trace, &exact);
            let key = format!("counts[{index}]");
            let (check, bound, hits) = match (at_least, at_most) {
                (_, Some(most)) if most_exact.len() > *most as usize => {
                    (Check::Forbidden(key), format!("at most {most}"), most_exact)
                }
                (Some(least), _) if whole && at_all.len() < *least as usize => {
                    (Check::Expected(key), format!("at least {least}"), at_all)
                }
                (Some(_) | None, Some(_) | None) => continue,
            };
            let number = hits.len();
            let what = query_words(&names, *kind, query, u64::MAX);
            found.push(self.contradiction(
                Expectation {
                    check,
                    requirements,
                    place: Some(*at),
                },
                format!("the client sent {what} {number} times, expected {bound}"),
                format!("{bound} × {what}"),
                format!("{number} × {what}"),
                hits.iter().map(|hit| hit.asked.seq).collect(),
            ));
        }
    }

    fn never(&self, found: &mut Vec<Contradiction>) {
        let names = Names::new(self.trace, &self.view);
        for (index, never) in self.scenario.expect.never.iter().enumerate() {
            let Some(from) = self.forbidden_from(never.after.as_deref()) else {
                continue;
            };
            let hit = self.trace.reads().find(|exchange| {
                exchange.asked.seq >= from
                    && of_kind(exchange, never.kind)
                    && is_exactly(&names, &never.query, exchange)
                    && !self.is_excused(exchange)
            });
            let Some(hit) = hit else { continue };
            let what = query_words(&names, never.kind, &never.query, hit.asked.seq);
            let after = never
                .after
                .as_ref()
                .map(|step| format!(" after step {step}"))
                .unwrap_or_default();
            found.push(self.contradiction(
                Expectation {
                    check: Check::Forbidden(format!("never[{index}]")),
                    requirements: &never.requirements,
                    place: Some(never.at),
                },
                format!(
                    "the client sent what it must not{after}: {} at {}",
                    words::request(hit),
                    words::time(hit.asked.at)
                ),
                format!("never {what}{after}"),
                words::request(hit),
                vec![hit.asked.seq],
            ));
        }
    }

    fn events(&self, found: &mut Vec<Contradiction>) {
        let names = Names::new(self.trace, &self.view);
        let mut from = 0;
        let mut before: Option<&Reported<'a>> = None;
        for (index, expected) in self.scenario.expect.events.iter().enumerate() {
            let mut left = expected.event.nth.max(1);
            let hit = self.trace.reports[from..].iter().position(|reported| {
                left -= u32::from(emitted(&names, &expected.event, reported));
                left == 0
            });
            match hit {
                Some(at) => {
                    before = Some(&self.trace.reports[from + at]);
                    from += at + 1;
                }
                None => {
                    found.push(self.missing_event(index, &names, expected, from, before));
                    return;
                }
            }
        }
    }

    fn missing_event(
        &self,
        index: usize,
        names: &Names<'_, 'a>,
        expected: &EmittedExpect,
        from: usize,
        before: Option<&Reported<'a>>,
    ) -> Contradiction {
        let EmittedExpect { event, requirements } = expected;
        let rest = &self.trace.reports[from..];
        let wanted = emitted_words(names, event, u64::MAX);
        let after = match before {
            Some(before) => {
                format!(
                    " after {} at {}",
                    words::report(self.scenario, before),
                    words::time(before.at.at)
                )
            }
            None => String::new(),
        };
        let actual = if rest.is_empty() {
            "nothing more was reported".to_owned()
        } else {
            words::few(rest, 6, |reported| words::report(self.scenario, reported))
        };
        self.contradiction(
            Expectation {
                check: Check::Expected(format!("events[{index}]")),
                requirements,
                place: Some(event.at),
            },
            format!("the client never reported {wanted}{after}; it reported: {actual}"),
            wanted,
            actual,
            rest.iter()
                .take(6)
                .map(|reported| reported.at.seq)
                .chain(before.map(|before| before.at.seq))
                .collect(),
        )
    }

    fn never_emitted(&self, found: &mut Vec<Contradiction>) {
        let names = Names::new(self.trace, &self.view);
        for (index, never) in self.scenario.expect.never_emitted.iter().enumerate() {
            let EmittedNever {
                event,
                before,
                after,
                requirements,
            } = never;
            let Some(from) = self.forbidden_from(after.as_deref()) else {
                continue;
            };
            let until = before
                .as_deref()
                .and_then(|step| self.done(step))
                .unwrap_or(u64::MAX);
            let mut left = event.nth.max(1);
            let hit = self
                .trace
                .reports
                .iter()
                .filter(|r| r.at.seq >= from && r.at.seq < until)
                .find(|reported| {
                    left -= u32::from(emitted(&names, event, reported));
                    left == 0
                });
            let Some(hit) = hit else { continue };
            let when = match (before, after) {
                (Some(step), _) => format!(" before step {step}"),
                (None, Some(step)) => format!(" after step {step}"),
                (None, None) => String::new(),
            };
            found.push(self.contradiction(
                Expectation {
                    check: Check::Forbidden(format!("never_emitted[{index}]")),
                    requirements,
                    place: Some(event.at),
                },
                format!(
                    "the client reported what it must not{when}: {} at {}",
                    words::report(self.scenario, hit),
                    words::time(hit.at.at)
                ),
                format!("never {}{when}", emitted_words(&names, event, hit.at.seq)),
                words::report(self.scenario, hit),
                vec![hit.at.seq],
            ));
        }
    }

    fn cache(&self, found: &mut Vec<Contradiction>) {
        let Some(wanted) = &self.scenario.expect.cache else {
            return;
        };
        let cache = Cache::after(&self.trace.reports);
        let held: Vec<&str> = cache.live().keys().copied().collect();
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|name| !held.iter().any(|key| same_name(name, key)))
            .collect();
        let extra: Vec<&str> = held
            .iter()
            .copied()
            .filter(|key| !wanted.iter().any(|name| same_name(name, key)))
            .collect();
        if missing.is_empty() && extra.is_empty() {
            return;
        }
        let mut wrong = Vec::new();
        if !missing.is_empty() {
            wrong.push(format!(
                "{} is missing",
                words::few(&missing, 6, |name| (*name).clone())
            ));
        }
        if !extra.is_empty() {
            let name = |key: &&str| words::name(self.scenario, key).to_owned();
            wrong.push(format!("{} should not be there", words::few(&extra, 6, name)));
        }
        let evidence = extra
            .iter()
            .filter_map(|key| cache.live().get(key).map(|entry| entry.at.seq))
            .chain(self.trace.ended.map(|(ended, _): (Moment, &RunEnd)| ended.seq))
            .collect();
        found.push(self.contradiction(
            Expectation {
                check: Check::Expected("cache".to_owned()),
                requirements: &self.scenario.expect.converges,
                place: None,
            },
            format!("the client's cache is wrong at the end: {}", wrong.join(", ")),
            format!("{{{}}}", wanted.join(", ")),
            format!(
                "{{{}}}",
                words::few(&held, 12, |key| words::name(self.scenario, key).to_owned())
            ),
            evidence,
        ));
    }

    /// Returns the record from which something is forbidden: the start, or the end of a step. `None`: never.
    fn forbidden_from(&self, after: Option<&str>) -> Option<u64> {
        match after {
            None => Some(0),
            Some(step) => self.done(step).map(|seq| seq + 1),
        }
    }

    /// Returns the record with which the step of that name was done.
    fn done(&self, name: &str) -> Option<u64> {
        let index = self
            .scenario
            .steps
            .iter()
            .position(|step| step.name.as_deref() == Some(name))?;
        self.trace
            .steps
            .iter()
            .rev()
            .find(|(_, step)| *step == index)
            .map(|(at, _)| at.seq)
    }

    fn contradiction(
        &self,
        expectation: Expectation<'_>,
        sentence: String,
        expected: String,
        actual: String,
        evidence: Vec<u64>,
    ) -> Contradiction {
        let Expectation {
            check,
            requirements,
            place,
        } = expectation;
        Contradiction {
            check,
            requirements: requirements.to_vec(),
            sentence,
            place,
            evidence,
            expected,
            actual,
        }
    }
}

#[cfg(test)]
mod tests;
