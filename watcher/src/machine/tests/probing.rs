//! When the machine sends a probe, and what follows from its result.

use rstest::rstest;

use super::*;

/// Watches without events for more than ten minutes, and the probe that follows.
pub(super) const SILENT: [Do; 9] = [
    Pass(230),
    Eof,
    Opened,
    Pass(230),
    Eof,
    Opened,
    Pass(230),
    Eof,
    Pass(1),
];

#[rstest]
#[case::same_version(&[Page("10", "t", &["a"])], "W(10)")]
#[case::newer_version(&[Page("12", "t", &["b"])], "W(10)")]
#[case::older_version(&[Page("9", "t", &["a"]), Page("9", "", &["b"])], "L Init +b Done W(9)")]
#[case::one_item_is_the_snapshot(&[Page("12", "", &["b"])], "Init +b Done W(12)")]
#[case::an_empty_list_is_the_snapshot(&[Page("12", "", &[])], "Init Done W(12)")]
#[case::the_server_ignores_the_limit(&[Page("12", "", &["a", "b"])], "W(10)")]
#[case::the_one_item_does_not_decode(&[Poison, Page("12", "", &[])], "W(10)")]
#[case::one_of_two_does_not_decode(&[Poison, Page("12", "", &["b"])], "W(10)")]
#[case::a_list_without_version(&[Page("", "t", &["a"])], "W(10)")]
#[case::an_undecodable_item_is_ignored(&[Poison, Page("10", "t", &[])], "W(10)")]
#[case::the_server_rejects_it(&[Rejected(503)], "x !Rejected ~ W(10)")]
#[case::the_server_is_unavailable(&[Refused], "x !Transport ~ W(10)")]
#[case::the_probe_times_out(&[Silence], "x !Silence ~ W(10)")]
#[case::the_next_watch_is_followed_by_another_probe(
    &[Rejected(503), Opened, Pass(5), Eof, Page("10", "t", &[]), Opened, Pass(230), Eof],
    "x !Rejected ~ W(10) L W(10) W(10)"
)]
fn a_long_silence_triggers_a_probe(#[case] steps: &[Do], #[case] expected: &str) {
    let steps = [&SYNC[..], &SILENT, steps].concat();
    let expected = format!("{SYNCED} W(10) W(10) L {expected}");
    assert_eq!(Bench::play(Config::default(), &steps), expected);
}

#[rstest]
#[case::a_newer_bookmark(Some(600), &[Bookmark("11")], "W(11)")]
#[case::probes_disabled(None, &[], "W(10)")]
#[case::a_bookmark_at_the_version_confirms_nothing(Some(300), &[Bookmark("10")], "L")]
#[case::shorter_probe_interval(Some(300), &[], "L")]
fn no_probe_without_need(#[case] trust_seconds: Option<u64>, #[case] before_end: &[Do], #[case] next: &str) {
    let config = Config {
        staleness_probe_after: trust_seconds.map(Duration::from_secs),
        ..Config::default()
    };
    let steps = [
        &SYNC[..],
        &[Pass(230), Eof, Opened, Pass(230)],
        before_end,
        &[Eof],
    ]
    .concat();
    assert_eq!(Bench::play(config, &steps), format!("{SYNCED} W(10) {next}"));
}

#[rstest]
#[case::it_was_at_the_version(Page("10", "t", &["a"]), true)]
#[case::it_was_ahead(Page("12", "t", &["a"]), false)]
#[case::it_was_at_another_version_that_is_no_number(Page("v2", "t", &["a"]), false)]
fn ten_minutes_after_a_probe_comes_another_or_a_relist(#[case] probe: Do, #[case] is_probe: bool) {
    let mut bench = Bench::new(any());
    for step in [&SYNC[..], &SILENT, &[probe, Opened], &SILENT].concat() {
        bench.step(step);
    }
    let expected = "L(0) Init +a Done W(10) W(10) W(10) L W(10) W(10) W(10) L";
    assert_eq!(bench.seen.join(" "), expected);
    assert_eq!(matches!(bench.machine.state, State::Probing(_)), is_probe);
}

#[rstest]
#[case::an_event(Modified("a", "11"), "a W(11)")]
#[case::a_bookmark(Bookmark("11"), "W(11)")]
fn a_watch_that_advances_after_a_probe_is_trusted(#[case] progress: Do, #[case] expected: &str) {
    let advanced = [Opened, progress, Pass(230), Eof, Pass(1)];
    let steps = [&SYNC[..], &SILENT, &[Page("12", "t", &["a"])], &advanced].concat();
    let start = format!("{SYNCED} W(10) W(10) L W(10)");
    assert_eq!(
        Bench::play(Config::default(), &steps),
        format!("{start} {expected}")
    );
}

#[rstest]
#[case::ahead(Page("12", "t", &["a"]), "L")]
#[case::at_the_version(Page("10", "t", &["a"]), "W(10)")]
#[case::refused_too(Rejected(429), "x !Rejected ~ W(10)")]
fn watches_refused_for_ten_minutes_lead_to_a_probe(#[case] probe: Do, #[case] expected: &str) {
    let mut bench = Bench::new(Config::default());
    bench.step(SYNC[0]);
    while matches!(bench.machine.state, State::Listed(_)) {
        bench.step(Rejected(429));
    }
    assert!(bench.now > Duration::from_secs(600) && bench.now < Duration::from_secs(700));
    let seen = bench.seen.len();
    bench.step(probe);
    assert_eq!(bench.seen[seen..].join(" "), expected);
}
