//! Request rate under failures: budgets, delays, caps, and resets.

use rstest::rstest;

use super::*;

/// Every failure that can repeat forever: after the fifth request at most 1.5 requests/s over any 30 s (BUDGET), and
/// delays grow until their cap.
#[rstest]
#[case::lists_fail(Config::default(), &[Rejected(500)])]
#[case::lists_reset(Config::default(), &[Refused])]
#[case::second_pages_fail(Config::default(), &[Page("10", "t", &[]), Rejected(410)])]
#[case::every_watch_expires(Config::default(), &[Page("10", "", &[]), Opened, Error(410, "")])]
#[case::every_watch_start_expires(Config::default(), &[Page("10", "", &[]), Rejected(410)])]
#[case::lists_are_poisoned(Config::default(), &[Poison, Page("10", "", &[])])]
#[case::streaming_lists_end(streaming(), &[Opened, Eof])]
#[case::streaming_lists_expire(streaming(), &[Opened, Error(410, "")])]
fn repeated_failures_slow_down(#[case] config: Config, #[case] round: &[Do]) {
    let mut bench = Bench::new(config);
    for _ in 0..6 {
        for step in round {
            bench.step(*step);
        }
    }
    let gaps: Vec<_> = bench
        .sent
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|gap| !gap.is_zero())
        .collect();
    assert!(gaps.last().unwrap() > &(gaps[0] * 4), "{gaps:?}");
    within_budget(&bench.sent);
}

#[rstest]
#[case::ends_at_once(&[Opened, Eof])]
#[case::ends_after_a_second(&[Opened, Pass(1), Eof])]
#[case::is_cut_after_a_second(&[Opened, Pass(1), Refused])]
fn ending_streams_do_not_cause_a_busy_loop(#[case] round: &[Do]) {
    let mut bench = Bench::new(Config::default());
    bench.step(Page("1", "", &[]));
    for _ in 0..60 {
        if matches!(bench.machine.state, State::Listing(_)) {
            bench.step(Page("1", "", &[]));
        }
        for step in round {
            bench.step(*step);
        }
    }
    within_budget(&bench.sent);
}

/// A slow consumer meets the start and the end of a watch together, long after both.
#[test]
fn watches_that_lasted_before_they_were_polled_have_not_failed() {
    let mut bench = Bench::new(Config::default());
    bench.step(Page("10", "", &[]));
    for _ in 0..10 {
        for step in [Pass(50), Opened, Eof] {
            bench.step(step);
        }
    }
    let seen = &bench.seen;
    assert!(!seen.iter().any(|output| output.starts_with('!')), "{seen:?}");
    assert!(matches!(bench.machine.state, State::Listed(_)));
}

#[test]
fn streams_of_one_bookmark_neither_spin_nor_escalate_the_backoff() {
    const VERSIONS: [&str; 8] = ["11", "12", "13", "14", "15", "16", "17", "18"];
    let mut bench = Bench::new(Config::default());
    bench.step(Page("10", "", &[]));
    for version in VERSIONS {
        for step in [Opened, Bookmark(version), Eof] {
            bench.step(step);
        }
    }
    let waited = *bench.sent.last().unwrap();
    assert!(
        waited >= Duration::from_millis(800) * 8 && waited <= Duration::from_millis(1600) * 8,
        "{waited:?}"
    );
    assert!(bench.seen.ends_with(&["~".to_owned(), "W(18)".to_owned()]));
}

pub(super) fn within_budget(sent: &[Duration]) {
    let sent = &sent[5.min(sent.len())..];
    for (first, start) in sent.iter().enumerate() {
        let within = sent[first..]
            .iter()
            .take_while(|at| **at - *start < Duration::from_secs(30))
            .count();
        assert!(within <= 46, "{within} requests in 30 s: {sent:?}");
    }
}

#[test]
fn health_resets_the_backoff_and_success_alone_does_not() {
    let gap_after = |healthy| {
        let mut bench = Bench::new(Config::default());
        for _ in 0..8 {
            bench.step(Rejected(500));
        }
        for step in [Page("10", "", &[]), Opened, Pass(healthy), Error(410, "")] {
            bench.step(step);
        }
        let sent = &bench.sent;
        sent[sent.len() - 1] - sent[sent.len() - 2] - Duration::from_secs(healthy)
    };
    assert!(gap_after(60) >= Duration::from_secs(30));
    assert!(gap_after(180) < Duration::from_secs(2));
}

#[rstest]
#[case::seven(7, 7)]
#[case::a_day_is_capped(86_400, 600)]
fn retry_after_is_obeyed_up_to_a_cap(#[case] asked_for: u64, #[case] waited: u64) {
    let mut bench = Bench::new(Config::default());
    let answer = ResponsePart::Rejected {
        http: 429,
        status: Status {
            code: 429,
            ..Status::default()
        },
        retry_after: Some(Duration::from_secs(asked_for)),
    };
    bench.machine.handle(
        bench.now,
        Input::Answer {
            request: bench.request,
            answer,
        },
    );
    bench.drain();
    assert_eq!(bench.sent[1] - bench.sent[0], Duration::from_secs(waited));
}

#[test]
fn watchers_use_different_timeouts() {
    let timeouts: std::collections::BTreeSet<u32> = (0..40)
        .map(|seed| {
            let mut machine =
                Machine::<()>::new(Config::default(), seed, |()| crate::object::Identity::default());
            machine.handle(Duration::ZERO, Input::Timeout);
            let answer = ResponsePart::PageEnd(PageMeta {
                resource_version: "10".into(),
                continue_token: "".into(),
            });
            machine.handle(
                Duration::ZERO,
                Input::Answer {
                    request: RequestId(1),
                    answer,
                },
            );
            let mut timeout = 0;
            while let Some(output) = machine.poll_output() {
                if let Output::Request {
                    request: Request::Watch { timeout_seconds, .. },
                    ..
                } = output
                {
                    timeout = timeout_seconds;
                }
            }
            timeout
        })
        .collect();
    assert!(
        timeouts.len() >= 10 && timeouts.iter().all(|timeout| (232..=290).contains(timeout)),
        "{timeouts:?}"
    );
}
