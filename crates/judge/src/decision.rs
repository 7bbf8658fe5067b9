//! Computes the verdict of a run from its scenario and records alone, so that newer checks can judge an old trace.

use std::collections::BTreeSet;

use ::trace::record::{Record, RunEnd, Verb, What};
use ::trace::report::Report;
use apimachinery::kind::qualified;
use apimachinery::path::decoded_path;
use scenario::{ClientView, Contract, Named, Scenario, Trigger, catalogue};

use crate::trace::{Moment, Trace};
use crate::verdict::{Check, Contradiction, Outcome, Verdict};
use crate::{check, invariants, words};

/// A set of checks on a trace.
type Reading = fn(&Scenario, &Trace<'_>) -> Vec<Contradiction>;

/// Evidence for a verdict.
enum Evidence {
    /// The wire and the client's reports.
    Reports,
    /// The wire only; violations of invariants were found before.
    Wire {
        found: Vec<Contradiction>,
        /// Collections the client read that are not the scenario's target.
        elsewhere: BTreeSet<String>,
    },
}

/// Returns the verdict on a run.
pub fn judge(scenario: &Scenario, records: &[Record]) -> Verdict {
    judge_by(scenario, records, Evidence::Reports)
}

/// Returns the verdict on a run of a client without reports: the scenario's expectations on requests, the end of the
/// run, and the violations of invariants in `found` (see [`crate::wire`]). Only requests of the loop under test count.
pub fn judge_wire(scenario: &Scenario, records: &[Record], found: Vec<Contradiction>) -> Verdict {
    let view = ClientView::after(scenario, records);
    let of_loop: Vec<Record> = records
        .iter()
        .filter(|record| record.what.stream().is_none_or(|stream| view.is_of_loop(stream)))
        .cloned()
        .collect();
    let elsewhere = if of_loop
        .iter()
        .any(|record| matches!(record.what, What::Request { .. }))
    {
        BTreeSet::new()
    } else {
        collections(records)
    };
    judge_by(scenario, &of_loop, Evidence::Wire { found, elsewhere })
}

/// Returns the collections that were listed and watched.
fn collections(records: &[Record]) -> BTreeSet<String> {
    let read = records.iter().filter_map(|record| {
        let What::Request { path, verb, .. } = &record.what else {
            return None;
        };
        let path = decoded_path(path);
        let named = Named::by(&path);
        (*verb != Verb::Other).then(|| qualified(named.plural, named.group))
    });
    read.collect()
}

#[expect(clippy::too_many_lines, reason = "one arm for each way in which a run ends")]
fn judge_by(scenario: &Scenario, records: &[Record], evidence: Evidence) -> Verdict {
    let trace = Trace::new(records);
    let Some((ended, end)) = trace.ended else {
        return harness(&trace, "the harness broke: the trace has no end".to_owned());
    };
    if let RunEnd::Harness { message } = end {
        return harness(&trace, format!("the harness broke: {message}"));
    }
    let reports = matches!(evidence, Evidence::Reports);
    let (mut contradictions, elsewhere) = match evidence {
        Evidence::Reports => (invariants::violated(scenario, &trace), BTreeSet::new()),
        Evidence::Wire { found, elsewhere } => (found, elsewhere),
    };
    let last = if trace.exchanges.is_empty() && !elsewhere.is_empty() {
        let read: Vec<String> = elsewhere.into_iter().collect();
        let target = &scenario.target;
        format!(
            "it read {}, and this scenario is about {}",
            words::few(&read, 3, String::clone),
            target.resource()
        )
    } else {
        words::last_of_client(scenario, &trace, ended.seq)
    };
    let (unmet, broken): (Reading, Reading) = if reports {
        (check::unmet, check::broken)
    } else {
        (check::unmet_on_the_wire, check::broken_on_the_wire)
    };
    let mut outcome = Outcome::Pass;
    let expect = &scenario.expect;
    if let Some((at, message)) = crash(&trace) {
        outcome = Outcome::Crash;
        let crashed = run(
            format!("the client crashed: {message}"),
            "the client goes on",
            message,
            vec![at.seq],
        );
        contradictions.insert(0, against(&expect.survives, crashed));
    }
    match end {
        RunEnd::Complete | RunEnd::NotConverged { .. } => {
            contradictions.extend(unmet(scenario, &trace));
            // Fallback if the cache never equalled the store and no other check found the reason.
            if let RunEnd::NotConverged { waited_ms } = end
                && contradictions.is_empty()
                && expect.not_converged_because.is_none()
            {
                let quiet = words::span(*waited_ms);
                let contract = scenario.client.contract;
                let (sentence, expected, actual) = if contract != Contract::Informer {
                    (
                        format!(
                            "the client did not report within {quiet} that its {} was over; {last}",
                            contract.word()
                        ),
                        "the end is reported",
                        "it is not",
                    )
                } else if reports {
                    (
                        format!("the client did not hold what the server holds after {quiet} without faults"),
                        "the cache equals the store",
                        "it does not",
                    )
                } else {
                    (
                        format!(
                            "the client had no open watch, or kept sending requests, after {quiet} without faults"
                        ),
                        "an open watch and no further requests",
                        "none",
                    )
                };
                let unconverged = run(sentence, expected, actual, vec![ended.seq]);
                contradictions.push(against(&expect.converges, unconverged));
            }
        }
        RunEnd::Stuck {
            step,
            waited_ms,
            waiting_for,
        } => {
            contradictions.extend(broken(scenario, &trace));
            if outcome == Outcome::Pass {
                outcome = Outcome::Stuck;
                let stuck = stuck(scenario, &trace, ended, *step, (*waited_ms, waiting_for), last);
                let requirements = of_step(scenario, *step, &expect.converges);
                contradictions.insert(0, against(requirements, stuck));
            }
        }
        RunEnd::Missed { step, because } => {
            contradictions.extend(broken(scenario, &trace));
            if outcome == Outcome::Pass {
                outcome = Outcome::Stuck;
                let mut missed = run(
                    format!(
                        "the client took another way: {} can no longer happen, because {because}",
                        step_words(scenario, *step)
                    ),
                    &step_words(scenario, *step),
                    because,
                    vec![ended.seq],
                );
                missed.place = scenario.steps.get(*step).map(|step| step.at);
                contradictions.insert(0, missed);
            }
        }
        RunEnd::ClientGone => {
            contradictions.extend(broken(scenario, &trace));
            if outcome == Outcome::Pass {
                let waiting = trace.steps.last().map_or(0, |(_, done)| done + 1);
                let gone = run(
                    format!("the client gave up for good before the scenario was over; {last}"),
                    "the client keeps trying until it is stopped",
                    "its stream ended",
                    vec![ended.seq],
                );
                let mut gone = against(of_step(scenario, waiting, &expect.goes_on), gone);
                if reports
                    && !is_end_explained(&trace)
                    && !gone.requirements.iter().any(|id| id == "RETRY-11")
                {
                    gone.requirements.push("RETRY-11".to_owned());
                }
                contradictions.insert(0, gone);
            }
        }
        RunEnd::Runaway { requests } => {
            contradictions.extend(broken(scenario, &trace));
            if !contradictions.iter().any(|found| found.check.is("INV-16")) {
                let runaway = run(
                    format!("retry storm: {requests} requests in {}", words::time(ended.at)),
                    "retries that keep to the budget",
                    &format!("{requests} requests"),
                    vec![ended.seq],
                );
                contradictions.insert(0, runaway);
            }
        }
        RunEnd::Harness { .. } => {}
    }
    if outcome == Outcome::Pass && !contradictions.is_empty() {
        outcome = Outcome::Mismatch;
    }
    without_consequences(&mut contradictions);
    tracing::debug!(scenario = %scenario.id, outcome = outcome.word(), contradictions = contradictions.len(), "judged");
    Verdict {
        outcome,
        contradictions,
    }
}

fn crash<'a>(trace: &Trace<'a>) -> Option<(Moment, &'a str)> {
    trace.reports.iter().find_map(|reported| match reported.report {
        Report::Crashed { message } => Some((reported.at, message.as_str())),
        Report::Init
        | Report::InitApply(_)
        | Report::InitDone
        | Report::Apply(_)
        | Report::Delete(_)
        | Report::Error { .. }
        | Report::Ended => None,
    })
}

/// Drops requirements that depend on another one which the run contradicts too: it does not show them.
fn without_consequences(contradictions: &mut [Contradiction]) {
    let named = contradictions.iter().flat_map(|found| &found.requirements);
    let broken: BTreeSet<String> = named.cloned().collect();
    let is_consequence = |id: &str| {
        let requirement = catalogue::requirement(id);
        requirement.is_some_and(|one| one.depends_on.iter().any(|other| broken.contains(other)))
    };
    for found in contradictions {
        found.requirements.retain(|id| !is_consequence(id));
    }
}

/// Returns the requirements of the step that was waiting, or the scenario's if it has none.
fn of_step<'s>(scenario: &'s Scenario, step: usize, of_scenario: &'s [String]) -> &'s [String] {
    let of_step = scenario.steps.get(step).map(|step| step.requirements.as_slice());
    of_step.filter(|ids| !ids.is_empty()).unwrap_or(of_scenario)
}

/// Names the requirements that a contradiction is evidence against.
fn against(requirements: &[String], found: Contradiction) -> Contradiction {
    Contradiction {
        requirements: requirements.to_vec(),
        ..found
    }
}

/// Whether the client reported an error as the last thing before its stream ended: its user knows that it gave up
/// (RETRY-11).
fn is_end_explained(trace: &Trace<'_>) -> bool {
    let mut last = trace.reports.iter().rev().map(|reported| reported.report);
    let before = last.find(|report| !matches!(report, Report::Ended));
    matches!(before, Some(Report::Error { .. }))
}

fn stuck(
    scenario: &Scenario,
    trace: &Trace<'_>,
    ended: Moment,
    step: usize,
    (waited_ms, waiting_for): (u64, &str),
    last: String,
) -> Contradiction {
    let waited = words::span(waited_ms);
    let waiting = scenario.steps.get(step).map(|step| &step.when);
    let last = match waiting {
        // A step counts only events reported while it waits; the author may have meant it to run earlier.
        Some(Trigger::Emitted(event)) => match check::came_before(scenario, trace, event) {
            Some(at) => format!(
                "it had done so at {}, before the step waited; {last}",
                words::time(at.at)
            ),
            None => last,
        },
        Some(
            Trigger::Now | Trigger::Request(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced,
        )
        | None => last,
    };
    let mut stuck = run(
        format!(
            "the client never did it: {} waited {waited} for {waiting_for}; {last}",
            step_words(scenario, step)
        ),
        waiting_for,
        &format!("nothing of the kind in {waited}; {last}"),
        vec![ended.seq],
    );
    stuck.place = scenario.steps.get(step).map(|step| step.at);
    stuck
}

fn step_words(scenario: &Scenario, step: usize) -> String {
    match scenario.steps.get(step) {
        Some(found) => format!("step {} (line {})", step + 1, found.at.line),
        None => format!("step {}", step + 1),
    }
}

fn run(sentence: String, expected: &str, actual: &str, evidence: Vec<u64>) -> Contradiction {
    Contradiction {
        check: Check::Run,
        requirements: Vec::new(),
        sentence,
        place: None,
        evidence,
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    }
}

fn harness(trace: &Trace<'_>, sentence: String) -> Verdict {
    let evidence = trace.last().map(|last| last.seq).into_iter().collect();
    let found = run(sentence.clone(), "a run that ends by itself", &sentence, evidence);
    Verdict {
        outcome: Outcome::HarnessError,
        contradictions: vec![found],
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use scenario::{Place, Step, Times};

    use super::*;
    use crate::trace::sample::{Sample, scenario};

    fn ended(end: RunEnd) -> Vec<Record> {
        let mut s = Sample::new();
        s.wrote("a", "5")
            .list(&[("limit", "2")])
            .page("10", "", &[("a", "5")])
            .emit_init(&[("a", "5")]);
        s.after(800).push(What::RunEnded(end)).records()
    }

    #[rstest]
    #[case::complete(RunEnd::Complete, Outcome::Pass, "")]
    #[case::not_converged(
        RunEnd::NotConverged { waited_ms: 180_000 },
        Outcome::Mismatch,
        "the client did not hold what the server holds after 3 min without faults"
    )]
    #[case::stuck(
        RunEnd::Stuck { step: 0, waited_ms: 300_000, waiting_for: "a WATCH".to_owned() },
        Outcome::Stuck,
        "the client never did it: step 1 (line 12) waited 5 min for a WATCH; its last act was init_done at 0.000s"
    )]
    #[case::missed(
        RunEnd::Missed { step: 0, because: "the 3rd WATCH came".to_owned() },
        Outcome::Stuck,
        "the client took another way: step 1 (line 12) can no longer happen, because the 3rd WATCH came"
    )]
    #[case::gone(
        RunEnd::ClientGone,
        Outcome::Mismatch,
        "the client gave up for good before the scenario was over; its last act was init_done at 0.000s"
    )]
    #[case::runaway(
        RunEnd::Runaway { requests: 9000 },
        Outcome::Mismatch,
        "retry storm: 9000 requests in 0.800s"
    )]
    #[case::harness(
        RunEnd::Harness { message: "no socket".to_owned() },
        Outcome::HarnessError,
        "the harness broke: no socket"
    )]
    fn the_end_of_a_run_decides_the_outcome(
        #[case] end: RunEnd,
        #[case] outcome: Outcome,
        #[case] sentence: &str,
    ) {
        let mut scenario = scenario();
        scenario.steps.push(Step {
            at: Place { line: 12, column: 3 },
            name: None,
            when: Trigger::Now,
            optional: false,
            times: Times::Count(1),
            actions: Vec::new(),
            within_ms: None,
            requirements: Vec::new(),
        });
        let verdict = judge(&scenario, &ended(end));
        assert_eq!((verdict.outcome, verdict.message()), (outcome, sentence));
    }

    #[test]
    fn a_crash_takes_precedence_over_its_consequences() {
        let mut s = Sample::new();
        s.list(&[]).emit(Report::Crashed {
            message: "index out of bounds".to_owned(),
        });
        let records = s.push(What::RunEnded(RunEnd::ClientGone)).records();
        let verdict = judge(&scenario(), &records);
        assert_eq!(
            (verdict.outcome, verdict.message()),
            (Outcome::Crash, "the client crashed: index out of bounds")
        );
    }

    #[test]
    fn a_trace_without_an_end_is_a_harness_error() {
        let mut s = Sample::new();
        s.watch("10");
        assert_eq!(judge(&scenario(), &s.records()).outcome, Outcome::HarnessError);
    }
}
