//! When a server is asked where it is, and what follows on its answer.

use rstest::rstest;

use super::*;

/// Watches that bring nothing for more than ten minutes, and the question that follows.
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
#[case::it_is_where_it_was(&[Page("10", "t", &["a"])], "W(10)")]
#[case::it_went_on(&[Page("12", "t", &["b"])], "W(10)")]
#[case::it_went_back(&[Page("9", "t", &["a"]), Page("9", "", &["b"])], "L Init +b Done W(9)")]
#[case::one_item_is_the_set(&[Page("12", "", &["b"])], "Init +b Done W(12)")]
#[case::none_is_too(&[Page("12", "", &[])], "Init Done W(12)")]
#[case::it_ignores_the_limit(&[Page("12", "", &["a", "b"])], "W(10)")]
#[case::the_one_item_does_not_decode(&[Poison, Page("12", "", &[])], "W(10)")]
#[case::one_of_two_does_not_decode(&[Poison, Page("12", "", &["b"])], "W(10)")]
#[case::it_does_not_say(&[Page("", "t", &["a"])], "W(10)")]
#[case::an_item_that_does_not_decode_is_no_matter(&[Poison, Page("10", "t", &[])], "W(10)")]
#[case::it_refuses(&[Rejected(503)], "x !Rejected ~ W(10)")]
#[case::it_is_away(&[Refused], "x !Transport ~ W(10)")]
#[case::it_says_nothing(&[Silence], "x !Silence ~ W(10)")]
#[case::and_it_is_asked_again_after_the_next_watch(
    &[Rejected(503), Opened, Pass(5), Eof, Page("10", "t", &[]), Opened, Pass(230), Eof],
    "x !Rejected ~ W(10) L W(10) W(10)"
)]
fn a_server_is_asked_where_it_is_after_a_long_silence(#[case] steps: &[Do], #[case] expected: &str) {
    let steps = [&SYNC[..], &SILENT, steps].concat();
    let expected = format!("{SYNCED} W(10) W(10) L {expected}");
    assert_eq!(Bench::play(Config::default(), &steps), expected);
}

#[rstest]
#[case::a_bookmark_at_the_version(Some(600), &[Bookmark("10")], "")]
#[case::never_asked(None, &[], "")]
#[case::asked_sooner(Some(300), &[], "L")]
fn a_server_is_not_asked_without_need(
    #[case] trust_seconds: Option<u64>,
    #[case] said: &[Do],
    #[case] question: &str,
) {
    let config = Config {
        staleness_probe_after: trust_seconds.map(Duration::from_secs),
        ..Config::default()
    };
    let steps = [&SYNC[..], &[Pass(230), Eof, Opened, Pass(230)], said, &[Eof]].concat();
    let end = if question.is_empty() { "W(10)" } else { question };
    assert_eq!(Bench::play(config, &steps), format!("{SYNCED} W(10) {end}"));
}
