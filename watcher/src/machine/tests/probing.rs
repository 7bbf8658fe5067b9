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
#[case::a_bookmark_at_the_version(Some(600), &[Bookmark("10")], "")]
#[case::probes_disabled(None, &[], "")]
#[case::shorter_probe_interval(Some(300), &[], "L")]
fn no_probe_without_need(
    #[case] trust_seconds: Option<u64>,
    #[case] before_end: &[Do],
    #[case] question: &str,
) {
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
    let end = if question.is_empty() { "W(10)" } else { question };
    assert_eq!(Bench::play(config, &steps), format!("{SYNCED} W(10) {end}"));
}
