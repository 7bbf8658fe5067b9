//! Every timer of the table in the machine's documentation: its start, the time it counts, what resets it, and when
//! it is stopped.

use rstest::rstest;

use super::probing::SILENT;
use super::*;

/// `timeoutSeconds` of 100, hence an idle timeout of 115 s.
fn config() -> Config {
    Config::default().timeout(100)
}

/// An idle timeout of 50 s.
fn idle() -> Config {
    config().idle_timeout(Duration::from_secs(50))
}

fn streams() -> Config {
    streaming().timeout(100)
}

const LISTED: [Do; 1] = [Page("10", "", &[])];
const TOLD: &[Do] = &[Opened, Added("a", "1")];

/// Returns in how many seconds the machine's timeout is due without other input.
#[rstest]
#[case::a_page_starts_with_its_request(config(), &[], &[Pass(5)], Some(60))]
#[case::bytes_reset_a_page(config(), &[], &[Pass(60), Bytes], Some(65))]
#[case::an_item_resets_a_page(config(), &[], &[Pass(60), Item("a")], Some(65))]
#[case::a_page_counts_no_busy_time(config(), &[], &[Pass(5), Busy(100), Pass(5)], Some(55))]
#[case::a_rejection_head_stops_a_page(config(), &[], &[Pass(60), Refusing, Pass(100)], None)]
#[case::the_next_page_starts_with_its_own_request(config(), &[], &[Pass(60), Page("10", "t", &[])], Some(65))]
#[case::a_watch_starts_with_its_request(config(), &LISTED, &[Pass(5)], Some(110))]
#[case::a_watch_start_counts_no_busy_time(config(), &LISTED, &[Busy(1000), Pass(5)], Some(110))]
#[case::a_rejection_head_stops_a_watch_start(config(), &LISTED, &[Pass(100), Refusing], None)]
#[case::its_head_resets_a_watch(config(), &LISTED, &[Pass(100), Opened], Some(115))]
#[case::bytes_reset_a_watch(idle(), &LISTED, &[Opened, Pass(40), Bytes], Some(50))]
#[case::bytes_do_not_reset_its_end(config(), &LISTED, &[Opened, Pass(100), Bytes], Some(15))]
#[case::nor_does_a_bookmark_at_its_version(config(), &LISTED, &[Opened, Pass(100), Bookmark("10")], Some(15))]
#[case::a_newer_bookmark_does(config(), &LISTED, &[Opened, Pass(100), Bookmark("11")], Some(115))]
#[case::its_end_is_not_before_the_idle_timeout(
    config().idle_timeout(Duration::from_secs(500)), &LISTED, &[Opened, Pass(100), Bytes], Some(400)
)]
#[case::an_event_resets_a_watch(config(), &LISTED, &[Opened, Pass(100), Added("a", "11")], Some(115))]
#[case::a_watch_counts_no_busy_time(config(), &LISTED, &[Opened, Pass(5), Busy(1000)], Some(110))]
#[case::a_streaming_list_starts_with_its_request(streams(), &[], &[Pass(5)], Some(110))]
#[case::a_streaming_list_counts_no_busy_time(streams(), &[], &[Busy(1000)], Some(115))]
#[case::a_rejection_head_stops_a_streaming_list(streams(), &[], &[Refusing], None)]
#[case::an_initial_event_is_due_after_the_head(streams(), &[], &[Pass(100), Opened], Some(60))]
#[case::an_initial_event_resets_it(streams(), TOLD, &[Pass(50), Added("b", "2"), Pass(1)], Some(59))]
#[case::bytes_do_not(streams(), TOLD, &[Pass(50), Bytes], Some(10))]
#[case::a_bookmark_does_not(streams(), TOLD, &[Pass(50), Bookmark("2")], Some(10))]
#[case::it_counts_no_busy_time(streams(), TOLD, &[Pass(50), Busy(1000)], Some(10))]
#[case::the_marker_is_due_after_the_head(streaming().timeout(2), &[Pass(10)], &[Opened], Some(17))]
#[case::no_event_resets_that(streaming().timeout(2), TOLD, &[Pass(10), Added("b", "2")], Some(7))]
#[case::the_marker_counts_no_busy_time(streaming().timeout(2), TOLD, &[Busy(1000), Added("b", "2")], Some(17))]
fn deadlines_count_listened_time(
    #[case] config: Config,
    #[case] before: &[Do],
    #[case] steps: &[Do],
    #[case] due: Option<u64>,
) {
    let mut bench = Bench::new(config);
    for step in [before, steps].concat() {
        bench.step(step);
    }
    let left = bench.machine.poll_timeout().map(|at| at - bench.now);
    assert_eq!(left, due.map(Duration::from_secs));
}

#[test]
fn the_probe_deadline_counts_listened_time() {
    let mut bench = Bench::new(Config::default());
    for step in [&SYNC[..], &SILENT, &[Pass(5), Busy(1000)]].concat() {
        bench.step(step);
    }
    assert!(matches!(bench.machine.state, State::Probing(_)));
    let left = |bench: &Bench| bench.machine.poll_timeout().map(|at| at - bench.now);
    assert_eq!(left(&bench), Some(Duration::from_secs(59)));
    bench.step(Bytes);
    assert_eq!(left(&bench), Some(Duration::from_secs(65)));
    bench.step(Refusing);
    assert_eq!(left(&bench), None);
}

#[rstest]
#[case::what_was_listened(Pass(700), "L")]
#[case::and_no_busy_time(Busy(700), "W(10)")]
fn silence_triggers_a_probe(#[case] time: Do, #[case] next: &str) {
    let steps = [&SYNC[..], &[time, Eof]].concat();
    assert_eq!(Bench::play(Config::default(), &steps), format!("{SYNCED} {next}"));
}

#[test]
fn delays_count_elapsed_time() {
    let mut bench = Bench::new(Config::default());
    let answer = ResponsePart::Rejected {
        http: 503,
        status: Status::default(),
        retry_after: Some(Duration::from_secs(60)),
    };
    let request = bench.request;
    bench.machine.handle(bench.now, Input::Answer { request, answer });
    let busy = Duration::from_secs(40);
    bench.machine.handle(busy, Input::Unattended(busy));
    assert_eq!(bench.machine.poll_timeout(), Some(Duration::from_secs(60)));
    bench.machine.handle(Duration::from_secs(60), Input::Timeout);
    assert!(matches!(bench.machine.state, State::Listing(_)));
}

#[rstest]
#[case::an_end_during_busy_time_counts_as_lasting(&[Busy(5), Eof], "W(10)")]
#[case::an_immediate_end_while_polled_does_not(&[Eof], "~ W(10)")]
fn busy_time_does_not_fail_a_watch(#[case] steps: &[Do], #[case] next: &str) {
    let steps = [&SYNC[..], steps].concat();
    assert_eq!(Bench::play(Config::default(), &steps), format!("{SYNCED} {next}"));
}

/// A busy period after a watch opened resets the backoff.
#[test]
fn busy_time_counts_as_healthy() {
    let mut bench = Bench::new(Config::default());
    for _ in 0..8 {
        bench.step(Rejected(500));
    }
    for step in [Page("10", "", &[]), Opened, Busy(180), Error(410, "")] {
        bench.step(step);
    }
    let sent = &bench.sent;
    let pause = sent[sent.len() - 1] - sent[sent.len() - 2] - Duration::from_secs(180);
    assert!(pause < Duration::from_secs(2), "{pause:?}");
}

#[test]
fn late_answers_are_not_counted_as_failures() {
    let mut bench = Bench::new(config());
    // Each answer arrives in the last second before its deadline, while the consumer is busy half of the time.
    let late = [Pass(64), Busy(64)];
    for step in [
        &late[..],
        &[Page("10", "t", &["a"])],
        &late,
        &[Page("10", "", &["b"])],
    ]
    .concat()
    {
        bench.step(step);
    }
    for _ in 0..3 {
        for step in [Pass(114), Busy(114), Opened, Pass(114), Busy(114), Eof] {
            bench.step(step);
        }
    }
    assert_eq!(bench.seen.join(" "), "L Init +a L+t +b Done W(10) W(10) W(10) L");
}
