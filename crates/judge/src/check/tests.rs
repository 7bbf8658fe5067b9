//! One row per expectation: a trace that meets it and one that does not.

use ::trace::record::What;
use rstest::rstest;
use scenario::{
    Covered, EmittedExpect, EmittedKind, EmittedMatch, EmittedNever, Expect, Expected, QueryMatch, Ref,
    RequestKind, RequestNever, RequestPattern, Step, Times, Trigger,
};

use super::*;
use crate::trace::sample::{Sample, scenario};
use crate::verdict::{Outcome, Verdict};

fn query(name: &str, value: Expected) -> Vec<QueryMatch> {
    vec![QueryMatch {
        name: name.to_owned(),
        value,
        at: Place { line: 7, column: 3 },
    }]
}

fn asked(kind: RequestKind, query: Vec<QueryMatch>) -> RequestPattern {
    RequestPattern { kind, query }
}

fn watch_from(value: Expected) -> RequestExpect {
    RequestExpect {
        any_of: vec![asked(RequestKind::Watch, query("resourceVersion", value))],
        or_relist: false,
        answered: None,
        headers: Vec::new(),
        at_least_after_ms: None,
        at_most_after_ms: None,
        name: None,
        requirements: Vec::new(),
        at: Place { line: 7, column: 3 },
    }
}

fn resume(value: Expected) -> RequestExpect {
    RequestExpect {
        or_relist: true,
        ..watch_from(value)
    }
}

fn list_named(name: &str) -> RequestExpect {
    RequestExpect {
        any_of: vec![asked(RequestKind::List, Vec::new())],
        or_relist: false,
        answered: None,
        headers: Vec::new(),
        at_least_after_ms: None,
        at_most_after_ms: None,
        name: Some(name.to_owned()),
        requirements: Vec::new(),
        at: Place { line: 6, column: 3 },
    }
}

fn event(kind: EmittedKind, name: &str) -> EmittedMatch {
    EmittedMatch {
        kind,
        name: Some(name.to_owned()),
        resource_version: None,
        code: None,
        message: None,
        nth: 1,
        at: Place { line: 9, column: 3 },
    }
}

fn reported(kind: EmittedKind, name: &str) -> EmittedExpect {
    EmittedExpect {
        event: event(kind, name),
        requirements: Vec::new(),
    }
}

fn is(text: &str) -> Expected {
    Expected::Is(text.to_owned())
}

/// A list at 10 with `a`, a watch that sends `b@11` after 2 s and ends, and a watch from 11.
fn run() -> Sample {
    let mut s = Sample::new();
    s.wrote("a", "5");
    s.push(What::Bound {
        name: "start".to_owned(),
        value: "5".to_owned(),
        continue_token: None,
    });
    s.list(&[("limit", "500")])
        .page("10", "", &[("a", "5")])
        .emit_init(&[("a", "5")]);
    s.watch("10")
        .after(2000)
        .wrote("b", "11")
        .added("b", "11")
        .emit_apply("b", "11");
    s.push(What::Step {
        step: 0,
        how: "cut".to_owned(),
    });
    s.eof().watch("11");
    s
}

#[rstest]
#[case::request_in_order(Expect { requests: vec![list_named("l"), watch_from(Expected::Ref(Ref::ResourceVersion("l".into())))], ..Expect::default() }, "")]
#[case::request_absent(Expect { requests: vec![watch_from(is("99"))], ..Expect::default() }, "the client never sent WATCH resourceVersion=99; what came nearest: WATCH resourceVersion=10 at 0.000s")]
#[case::order_matters(Expect { requests: vec![watch_from(is("11")), list_named("l")], ..Expect::default() }, "the client never sent LIST after WATCH resourceVersion=11 at 2.000s; what came nearest: no further request")]
#[case::named_watch_is_no_list(Expect { requests: vec![watch_from(Expected::Ref(Ref::Start))], ..Expect::default() }, "the client never sent WATCH resourceVersion=5 ($start); what came nearest: WATCH resourceVersion=10 at 0.000s")]
#[case::alternatives(Expect { requests: vec![RequestExpect { any_of: vec![asked(RequestKind::List, Vec::new()), asked(RequestKind::Watch, query("resourceVersion", is("10")))], ..watch_from(is("")) }], ..Expect::default() }, "")]
#[case::only(Expect { requests: vec![list_named("l"), watch_from(is("10"))], only: true, ..Expect::default() }, "the client sent a request too many: WATCH resourceVersion=11 at 2.000s")]
#[case::answered(Expect { requests: vec![RequestExpect { answered: Some(200), ..watch_from(is("10")) }], ..Expect::default() }, "")]
#[case::with_its_header(Expect { requests: vec![RequestExpect { headers: query("User-Agent", is("probe/1")), ..watch_from(is("10")) }], ..Expect::default() }, "")]
#[case::with_another_header(Expect { requests: vec![RequestExpect { headers: query("User-Agent", is("probe/2")), ..watch_from(is("10")) }], ..Expect::default() }, "the client never sent WATCH resourceVersion=10 with header User-Agent=probe/2; what came nearest: WATCH resourceVersion=10 at 0.000s, User-Agent=probe/1")]
#[case::without_the_header(Expect { requests: vec![RequestExpect { headers: query("Accept", Expected::Present), ..watch_from(is("10")) }], ..Expect::default() }, "the client never sent WATCH resourceVersion=10 with header Accept present; what came nearest: WATCH resourceVersion=10 at 0.000s, no Accept")]
#[case::answered_otherwise(Expect { requests: vec![RequestExpect { answered: Some(410), ..watch_from(is("10")) }], ..Expect::default() }, "the client never sent WATCH resourceVersion=10 answered with 410; what came nearest: WATCH resourceVersion=10 at 0.000s")]
#[case::too_early(Expect { requests: vec![watch_from(is("10")), RequestExpect { at_least_after_ms: Some(3000), ..watch_from(is("11")) }], ..Expect::default() }, "the client sent WATCH resourceVersion=11 too early: 2 s after the request before it, expected at least 3 s later")]
#[case::too_late(Expect { requests: vec![watch_from(is("10")), RequestExpect { at_most_after_ms: Some(1500), ..watch_from(is("11")) }], ..Expect::default() }, "the client sent WATCH resourceVersion=11 too late: 2 s after the request before it, expected at most 1500 ms later")]
#[case::in_time(Expect { requests: vec![watch_from(is("10")), RequestExpect { at_least_after_ms: Some(2000), at_most_after_ms: Some(2000), ..watch_from(is("11")) }], ..Expect::default() }, "")]
#[case::resumed(Expect { requests: vec![watch_from(is("10")), resume(is("11"))], only: true, ..Expect::default() }, "the client sent a request too many: LIST limit=500 at 0.000s")]
#[case::resumed_elsewhere(Expect { requests: vec![watch_from(is("10")), resume(is("10"))], ..Expect::default() }, "the client never sent WATCH resourceVersion=10 next, or a relist after WATCH resourceVersion=10 at 0.000s; what came nearest: WATCH resourceVersion=11 at 2.000s")]
#[case::relisted(Expect { requests: vec![resume(is("99")), resume(is("11"))], only: true, ..Expect::default() }, "")]
#[case::at_most(Expect { counts: vec![RequestCount { kind: RequestKind::Watch, query: Vec::new(), at_least: None, at_most: Some(1), requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "the client sent WATCH 2 times, expected at most 1")]
#[case::at_least(Expect { counts: vec![RequestCount { kind: RequestKind::List, query: Vec::new(), at_least: Some(2), at_most: None, requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "the client sent LIST 1 times, expected at least 2")]
#[case::never(Expect { never: vec![RequestNever { kind: RequestKind::Watch, query: query("resourceVersion", is("11")), after: None, requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "the client sent what it must not: WATCH resourceVersion=11 at 2.000s")]
#[case::never_after_a_step(Expect { never: vec![RequestNever { kind: RequestKind::Watch, query: query("resourceVersion", is("10")), after: Some("cut".into()), requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "")]
#[case::never_but_not(Expect { never: vec![RequestNever { kind: RequestKind::Watch, query: query("resourceVersion", Expected::Not(Box::new(is("11")))), after: Some("cut".into()), requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "")]
#[case::events(Expect { events: vec![reported(EmittedKind::InitApply, "a"), reported(EmittedKind::Apply, "ns1/b")], ..Expect::default() }, "")]
#[case::event_absent(Expect { events: vec![reported(EmittedKind::Apply, "b"), reported(EmittedKind::Delete, "a")], ..Expect::default() }, "the client never reported delete a after apply b@11 at 2.000s; it reported: nothing more was reported")]
#[case::never_emitted(Expect { never_emitted: vec![EmittedNever { event: event(EmittedKind::Apply, "b"), before: Some("cut".into()), after: None, requirements: Vec::new() }], ..Expect::default() }, "the client reported what it must not before step cut: apply b@11 at 2.000s")]
#[case::never_emitted_after(Expect { never_emitted: vec![EmittedNever { event: event(EmittedKind::Apply, "b"), before: None, after: Some("cut".into()), requirements: Vec::new() }], ..Expect::default() }, "")]
#[case::cache(Expect { cache: Some(vec!["a".into(), "ns1/b".into()]), ..Expect::default() }, "")]
#[case::cache_wrong(Expect { cache: Some(vec!["a".into(), "c".into()]), ..Expect::default() }, "the client's cache is wrong at the end: c is missing, b should not be there")]
fn expectation(#[case] expect: Expect, #[case] sentence: &str) {
    let mut scenario = scenario();
    scenario.steps.push(Step {
        at: Place { line: 5, column: 3 },
        name: Some("cut".to_owned()),
        when: Trigger::Now,
        optional: false,
        times: Times::Count(1),
        actions: Vec::new(),
        within_ms: None,
        requirements: Vec::new(),
    });
    scenario.expect = expect;
    let records = run().complete();
    let trace = Trace::new(&records);
    let found = unmet(&scenario, &trace);
    assert_eq!(
        found
            .iter()
            .map(|found| found.sentence.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        sentence
    );
    for contradiction in &found {
        assert!(
            !contradiction.evidence.is_empty(),
            "a contradiction names the records that prove it"
        );
    }
}

/// What is missing may be missing because the run took another course; what is too much is there.
#[rstest]
#[case::too_often(None, Some(1), true)]
#[case::too_rarely(Some(9), None, false)]
fn a_count_that_is_exceeded_proves_alone(
    #[case] at_least: Option<u32>,
    #[case] at_most: Option<u32>,
    #[case] proves: bool,
) {
    let mut scenario = scenario();
    scenario.expect.counts = vec![RequestCount {
        kind: RequestKind::Watch,
        query: Vec::new(),
        at_least,
        at_most,
        requirements: Vec::new(),
        at: Place::default(),
    }];
    let records = run().complete();
    let found = unmet(&scenario, &Trace::new(&records));
    let checks: Vec<(String, bool)> = { found.iter() }
        .map(|found| (found.check.to_string(), found.check.proves_alone()))
        .collect();
    assert_eq!(checks, [("expect.counts[0]".to_owned(), proves)]);
}

/// Each expectation fails, and is evidence against what it names alone.
#[rstest]
#[case::requests(|requirements| Expect { requests: vec![RequestExpect { requirements, ..watch_from(is("99")) }], ..Expect::default() })]
#[case::gap(|requirements| Expect { requests: vec![RequestExpect { requirements, at_least_after_ms: Some(1), ..watch_from(is("10")) }], ..Expect::default() })]
#[case::never(|requirements| Expect { never: vec![RequestNever { kind: RequestKind::Watch, query: Vec::new(), after: None, requirements, at: Place::default() }], ..Expect::default() })]
#[case::counts(|requirements| Expect { counts: vec![RequestCount { kind: RequestKind::Watch, query: Vec::new(), at_least: None, at_most: Some(0), requirements, at: Place::default() }], ..Expect::default() })]
#[case::events(|requirements| Expect { events: vec![EmittedExpect { event: event(EmittedKind::Delete, "a"), requirements }], ..Expect::default() })]
#[case::never_emitted(|requirements| Expect { never_emitted: vec![EmittedNever { event: event(EmittedKind::Apply, "b"), before: None, after: None, requirements }], ..Expect::default() })]
fn a_failed_expectation_breaks_what_it_is_about(#[case] expect: fn(Vec<String>) -> Expect) {
    let both = ["LIST-02", "WATCH-04"];
    let mut scenario = scenario();
    scenario.covers = both.map(covered).to_vec();
    let records = run().complete();
    let mut broken = |requirements: &[&str]| {
        scenario.expect = expect(requirements.iter().map(|id| (*id).to_owned()).collect());
        let verdict = Verdict {
            outcome: Outcome::Mismatch,
            contradictions: unmet(&scenario, &Trace::new(&records)),
        };
        assert_eq!(verdict.contradictions.len(), 1, "{verdict:?}");
        let broken: Vec<&str> = both.into_iter().filter(|id| verdict.breaks(id)).collect();
        assert_eq!(verdict.contradictions[0].requirements, broken);
        broken
    };
    assert!(broken(&[]).is_empty());
    assert_eq!(broken(&["WATCH-04"]), ["WATCH-04"]);
    assert_eq!(broken(&both), both);
}

fn covered(id: &str) -> Covered {
    Covered {
        id: id.to_owned(),
        at: Place::default(),
    }
}

#[test]
fn an_aborted_run_is_not_blamed_for_missing_requests() {
    let mut scenario = scenario();
    scenario.expect.requests = vec![watch_from(is("99"))];
    scenario.expect.events = vec![reported(EmittedKind::Delete, "a")];
    let records = run().records();
    assert_eq!(broken(&scenario, &Trace::new(&records)), []);
}

/// The same client, which is killed before it resumes and started again: a list at 11 and a watch from there.
fn restarted() -> Sample {
    let mut s = run_to_the_end_of_its_watch();
    s.push(What::ClientExited {
        code: Some(1),
        signal: None,
    });
    s.push(What::ClientRestarted { restart: 1 });
    s.after(500)
        .list(&[("limit", "500")])
        .page("11", "", &[("a", "5"), ("b", "11")]);
    s.watch("11");
    s
}

/// A list at 10 and a watch that sends `b@11` and ends.
fn run_to_the_end_of_its_watch() -> Sample {
    let mut s = Sample::new();
    s.list(&[("limit", "500")]).page("10", "", &[("a", "5")]);
    s.watch("10").after(2000).added("b", "11").eof();
    s
}

#[rstest]
#[case::a_relist_is_met(Expect { requests: vec![list_named("l"), watch_from(is("10")), list_named("m")], ..Expect::default() }, "")]
#[case::a_start_replaces_a_resume(Expect { requests: vec![watch_from(is("10")), watch_from(is("99"))], ..Expect::default() }, "")]
#[case::a_start_replaces_resume_or_relist(Expect { requests: vec![watch_from(is("10")), resume(is("99"))], only: true, ..Expect::default() }, "the client sent a request too many: LIST limit=500 at 0.000s")]
#[case::a_start_is_not_too_many(Expect { requests: vec![list_named("l"), watch_from(is("10"))], only: true, ..Expect::default() }, "")]
#[case::one_start_replaces_one_resume(Expect { requests: vec![watch_from(is("10")), watch_from(is("98")), watch_from(is("99"))], ..Expect::default() }, "the client never sent WATCH resourceVersion=99 after WATCH resourceVersion=11 at 2.500s; what came nearest: no further request")]
#[case::a_start_replaces_no_list_of_another_kind(Expect { requests: vec![watch_from(is("10")), RequestExpect { any_of: vec![asked(RequestKind::List, query("limit", is("7")))], ..list_named("l") }], ..Expect::default() }, "the client never sent LIST limit=7 after WATCH resourceVersion=10 at 0.000s; what came nearest: LIST limit=500 at 2.500s")]
#[case::at_most_in_one_process(Expect { counts: vec![RequestCount { kind: RequestKind::List, query: Vec::new(), at_least: None, at_most: Some(1), requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "")]
#[case::more_than_at_most_in_one_process(Expect { counts: vec![RequestCount { kind: RequestKind::Any, query: Vec::new(), at_least: None, at_most: Some(1), requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "the client sent any request 2 times, expected at most 1")]
#[case::at_least_in_all(Expect { counts: vec![RequestCount { kind: RequestKind::List, query: Vec::new(), at_least: Some(2), at_most: None, requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "")]
#[case::a_start_is_not_forbidden(Expect { never: vec![RequestNever { kind: RequestKind::Any, query: query("limit", Expected::Absent), after: None, requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "the client sent what it must not: WATCH resourceVersion=10 at 0.000s")]
#[case::a_list_after_a_restart(Expect { never: vec![RequestNever { kind: RequestKind::Watch, query: query("resourceVersion", is("11")), after: None, requirements: Vec::new(), at: Place::default() }], ..Expect::default() }, "")]
#[case::its_time_is_not_bounded(Expect { requests: vec![watch_from(is("10")), RequestExpect { at_most_after_ms: Some(1), ..list_named("l") }], ..Expect::default() }, "")]
fn expectation_on_a_restarted_client(#[case] expect: Expect, #[case] sentence: &str) {
    let mut scenario = scenario();
    scenario.expect = expect;
    let records = restarted().complete();
    let found = unmet(&scenario, &Trace::new(&records));
    let sentences: Vec<&str> = found.iter().map(|found| found.sentence.as_str()).collect();
    assert_eq!(sentences.join("\n"), sentence);
}
