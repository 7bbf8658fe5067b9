//! One row a rule: what meets a step, what misses it, what it waits for.

use std::sync::Arc;

use rstest::rstest;
use scenario::Expected;
use scenario::matching::{NoNames, ordinal, value_meets};
use scenario::{
    Action, ClientSettings, EmittedKind, EmittedMatch, Expect, Place, Scenario, ServerSettings, Step,
    StoreAction, StreamAction, Target,
};
use trace::fault::Ending;
use trace::report::ReportedObject;

use super::*;

fn script(steps: Vec<Step>) -> Script {
    Script::new(Arc::new(Scenario {
        id: "script/test".to_owned(),
        path: "test.yaml".into(),
        title: String::new(),
        why: String::new(),
        covers: Vec::new(),
        provoked_by: None,
        tags: Vec::new(),
        refs: Vec::new(),
        target: Target {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("default".to_owned()),
        },
        server: ServerSettings::default(),
        client: ClientSettings::default(),
        objects: Vec::new(),
        steps,
        expect: Expect::default(),
    }))
}

fn step(when: Trigger) -> Step {
    Step {
        at: Place::default(),
        name: None,
        when,
        optional: false,
        times: Times::Count(1),
        actions: vec![Action::Store(StoreAction::Compact)],
        within_ms: None,
        requirements: Vec::new(),
    }
}

fn on(kind: RequestKind, nth: Option<u32>) -> Step {
    step(Trigger::Request(RequestTrigger {
        kind,
        nth,
        query: Vec::new(),
    }))
}

fn emitted(kind: EmittedKind, name: &str, nth: u32) -> Step {
    let name = Some(name.to_owned());
    step(Trigger::Emitted(EmittedMatch {
        kind,
        name,
        resource_version: None,
        code: None,
        message: None,
        nth,
        at: Place::default(),
    }))
}

fn apply(name: &str) -> Report {
    Report::Apply(ReportedObject {
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: None,
        resource_version: Some("5".to_owned()),
        content: None,
    })
}

/// Hands in `l` LIST, `p` page, `q` the same page again, `w` WATCH, `s` streaming list; returns the one that met the step.
fn ask(script: &mut Script, requests: &str) -> String {
    let mut token = 0;
    requests
        .chars()
        .map(|what| {
            token += u32::from(what == 'p');
            let query = vec![(
                "continue".to_owned(),
                if "pq".contains(what) {
                    token.to_string()
                } else {
                    String::new()
                },
            )];
            let verb = match what {
                'w' => Verb::Watch,
                's' => Verb::WatchList,
                _ => Verb::List,
            };
            let met = script.on_request(Duration::ZERO, Read { verb, query: &query }, &NoNames);
            if met.is_some() {
                what.to_ascii_uppercase()
            } else {
                what
            }
        })
        .collect()
}

#[rstest]
#[case::the_next(RequestKind::List, None, "wplw", "wpLw")]
#[case::the_second_list_counts_attempts(RequestKind::List, Some(2), "lppl", "lppL")]
#[case::streaming_lists_are_watches(RequestKind::Watch, Some(2), "wls", "wlS")]
#[case::any(RequestKind::Any, Some(3), "lpw", "lpW")]
#[case::page_two(RequestKind::Page { page: 2 }, None, "lwp", "lwP")]
#[case::page_two_of_the_second_list(RequestKind::Page { page: 2 }, Some(2), "lplp", "lplP")]
#[case::the_same_token_is_the_same_page(RequestKind::Page { page: 3 }, None, "lpqp", "lpqP")]
fn a_request_meets_its_step(
    #[case] kind: RequestKind,
    #[case] nth: Option<u32>,
    #[case] requests: &str,
    #[case] met: &str,
) {
    let mut script = script(vec![on(kind, nth)]);
    assert_eq!(ask(&mut script, requests), met);
    assert!(matches!(script.standing(), Standing::Done { .. }));
}

#[rstest]
#[case::list(RequestKind::List, 1, "LIST 1 has come already")]
#[case::page(RequestKind::Page { page: 2 }, 1, "page 2 of LIST 1 has come already")]
#[case::watch(RequestKind::Watch, 1, "WATCH 1 has come already")]
#[case::any(RequestKind::Any, 2, "request 3 has come already")]
fn an_ordinal_that_is_past_is_missed(#[case] kind: RequestKind, #[case] nth: u32, #[case] because: &str) {
    let mut script = script(vec![on(RequestKind::Any, Some(3)), on(kind, Some(nth))]);
    assert_eq!(ask(&mut script, "lpw"), "lpW");
    let because = because.to_owned();
    assert_eq!(script.standing(), &Standing::Missed { step: 1, because });
}

#[test]
fn a_step_may_take_several_requests() {
    let mut times = on(RequestKind::Watch, Some(2));
    times.times = Times::Count(2);
    assert_eq!(ask(&mut script(vec![times]), "wwlww"), "wWlWw");
}

#[test]
fn a_step_may_take_all_requests_for_a_while() {
    let mut always = on(RequestKind::Watch, None);
    always.times = Times::For(500);
    let mut script = script(vec![always, on(RequestKind::Watch, None)]);
    assert_eq!(
        script.poll_timeout(None),
        None,
        "the while begins with the first request"
    );
    assert_eq!(ask(&mut script, "ww"), "WW");
    assert_eq!(script.poll_timeout(None), Some(Duration::from_millis(500)));
    assert_eq!(script.poll(Duration::from_millis(500), false, None), None);
    assert!(matches!(script.standing(), Standing::Armed { step: 1, .. }));
}

#[test]
fn reports_are_counted_from_when_the_step_is_armed() {
    let mut script = script(vec![
        on(RequestKind::Watch, None),
        emitted(EmittedKind::Apply, "a", 2),
    ]);
    script.on_report(Duration::ZERO, &apply("a"), &NoNames);
    assert_eq!(ask(&mut script, "w"), "W");
    for (name, due) in [("a", None), ("b", None), ("a", Some(1))] {
        script.on_report(Duration::ZERO, &apply(name), &NoNames);
        assert_eq!(script.poll(Duration::ZERO, false, None), due, "{name}");
    }
}

#[test]
fn what_is_only_assumed_to_be_reported_is_given_time() {
    let mut script = script(vec![emitted(EmittedKind::Apply, "a", 1)]);
    assert!(script.will_await_report());
    script.on_assumed_report(Duration::from_secs(1), &apply("b"), &NoNames);
    assert_eq!(script.poll_timeout(None), None);
    script.on_assumed_report(Duration::from_secs(1), &apply("a"), &NoNames);
    assert_eq!(script.poll(Duration::from_millis(1_249), false, None), None);
    assert_eq!(script.poll_timeout(None), Some(Duration::from_millis(1_250)));
    assert_eq!(script.poll(Duration::from_millis(1_250), false, None), Some(0));
}

#[test]
fn a_step_about_a_watch_waits_for_one() {
    let mut about_a_watch = emitted(EmittedKind::Apply, "a", 1);
    about_a_watch.actions = vec![Action::Stream(scenario::StreamAction::Send(Vec::new()))];
    let mut script = script(vec![about_a_watch]);
    script.on_report(Duration::ZERO, &apply("a"), &NoNames);
    assert_eq!(script.poll(Duration::ZERO, false, None), None);
    assert_eq!(script.poll(Duration::ZERO, true, None), Some(0));
}

#[rstest]
#[case::now(Trigger::Now, 0, 0)]
#[case::after(Trigger::After(40), 0, 40)]
#[case::quiet_counts_from_the_last_deed(Trigger::Quiet(40), 30, 70)]
fn time_meets_a_step(#[case] when: Trigger, #[case] active_ms: u64, #[case] due_ms: u64) {
    let mut script = script(vec![step(when)]);
    script.on_activity(Duration::from_millis(active_ms));
    let due = Duration::from_millis(due_ms);
    assert_eq!(script.poll_timeout(None), Some(due));
    if let Some(before) = due.checked_sub(Duration::from_millis(1)) {
        assert_eq!(script.poll(before, false, None), None);
    }
    assert_eq!(script.poll(due, false, None), Some(0));
}

#[rstest]
#[case::is(Expected::Is("5".to_owned()), Some("5"), true)]
#[case::is_another(Expected::Is("5".to_owned()), Some("6"), false)]
#[case::is_not_there(Expected::Is("5".to_owned()), None, false)]
#[case::empty_is_absent(Expected::Is(String::new()), None, true)]
#[case::not(Expected::Not(Box::new(Expected::Is("5".to_owned()))), Some("6"), true)]
#[case::not_there_is_not_five(Expected::Not(Box::new(Expected::Is("5".to_owned()))), None, true)]
#[case::absent(Expected::Absent, None, true)]
#[case::present(Expected::Present, Some("x"), true)]
#[case::an_unbound_name_meets_nothing(Expected::Ref(scenario::Ref::Start), Some("5"), false)]
fn values_meet_conditions(#[case] wanted: Expected, #[case] value: Option<&str>, #[case] meets: bool) {
    assert_eq!(value_meets(&wanted, value, &NoNames), meets);
}

#[rstest]
#[case(1, "1st")]
#[case(2, "2nd")]
#[case(3, "3rd")]
#[case(4, "4th")]
#[case(11, "11th")]
#[case(12, "12th")]
#[case(21, "21st")]
#[case(113, "113th")]
fn ordinals_read_well(#[case] n: u32, #[case] text: &str) {
    assert_eq!(ordinal(n), text);
}

/// `page 2`, if it comes, then `after 40 ms`, `the next WATCH`, or `synced`.
fn maybe_page_two(then: Step) -> Script {
    let mut page = on(RequestKind::Page { page: 2 }, None);
    page.optional = true;
    script(vec![page, then])
}

#[test]
fn an_optional_step_is_met_or_skipped_by_the_next() {
    let mut it = maybe_page_two(on(RequestKind::Watch, None));
    assert_eq!(ask(&mut it, "lpw"), "lPW");
    assert!(matches!(it.standing(), Standing::Done { .. }));
    let mut it = maybe_page_two(on(RequestKind::Watch, None));
    assert_eq!(it.waiting_for(), "the next WATCH");
    assert_eq!(ask(&mut it, "lwp"), "lWp");
    assert!(matches!(it.standing(), Standing::Done { .. }));
}

#[test]
fn a_step_that_is_due_waits_for_an_open_watch() {
    let mut on_watch = step(Trigger::After(40));
    on_watch.actions = vec![Action::Stream(StreamAction::End(Ending::Eof))];
    let mut it = script(vec![on_watch]);
    assert_eq!(it.poll(Duration::from_millis(39), false, None), None);
    assert_eq!(it.waiting_for(), "40 ms to pass");
    assert_eq!(it.poll(Duration::from_millis(40), false, None), None);
    assert_eq!(it.waiting_for(), "an open watch to act on");
    assert_eq!(it.poll(Duration::from_millis(50), true, None), Some(0));
}

#[test]
fn an_optional_step_is_skipped_by_time_and_by_reports() {
    let mut it = maybe_page_two(step(Trigger::After(40)));
    assert_eq!(it.poll(Duration::from_millis(39), false, None), None);
    assert_eq!(it.poll(Duration::from_millis(40), false, None), Some(1));
    let mut it = maybe_page_two(emitted(EmittedKind::Apply, "a", 2));
    assert!(it.will_await_report());
    for due in [None, Some(1)] {
        it.on_report(Duration::ZERO, &apply("a"), &NoNames);
        assert_eq!(it.poll(Duration::ZERO, false, None), due);
    }
}

#[test]
fn an_optional_step_is_never_missed_and_the_next_one_is() {
    let mut second = on(RequestKind::List, Some(1));
    second.optional = true;
    let mut it = script(vec![
        on(RequestKind::Watch, None),
        second,
        on(RequestKind::Watch, None),
    ]);
    assert_eq!(ask(&mut it, "lwlw"), "lWlW");
    let mut page = on(RequestKind::Page { page: 2 }, None);
    page.optional = true;
    let mut it = script(vec![
        on(RequestKind::Watch, None),
        page,
        on(RequestKind::List, Some(1)),
    ]);
    assert_eq!(ask(&mut it, "lw"), "lW");
    assert!(matches!(it.standing(), Standing::Missed { step: 2, .. }));
}

#[test]
fn a_step_waits_for_the_cache_to_follow_the_truth() {
    let mut it = script(vec![step(Trigger::Synced)]);
    assert!(it.awaits_sync());
    let at = Duration::from_millis;
    assert_eq!((it.poll(at(5), false, None), it.poll_timeout(None)), (None, None));
    assert_eq!(it.poll_timeout(Some(at(9))), Some(at(9)));
    assert_eq!(it.poll(at(8), false, Some(at(9))), None);
    assert_eq!(it.poll(at(9), false, Some(at(9))), Some(0));
}
