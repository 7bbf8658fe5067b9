//! No state lasts as long as a failure does while another request would be answered: the server answers one kind of
//! request, and fails all others in the same way, for an hour.

use rstest::rstest;

use super::pace::within_budget;
use super::*;

/// Every failure that can repeat.
const FAILURES: [&[Do]; 18] = [
    &[Rejected(401)],
    &[Rejected(404)],
    &[Rejected(410)],
    &[Rejected(429)],
    &[Rejected(500)],
    &[Rejected(503)],
    &[Rejected(504)],
    &[TooLarge],
    &[Refused],
    &[Silence],
    &[Broken],
    &[Eof],
    &[Opened, Eof],
    &[Opened, Refused],
    &[Opened, Silence],
    &[Opened, Broken],
    &[Opened, Error(500, "")],
    &[Opened, ErrorTooLarge],
];

/// Failures that mean that the server has no streaming lists, at any version.
const REJECTIONS: [&[Do]; 4] = [
    &[Rejected(400)],
    &[Rejected(403)],
    &[Rejected(405)],
    &[Opened, Error(422, "")],
];

/// A kind of request: `S` or `L`, at a version or not, in pages or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stream,
    StreamAtVersion,
    List,
    ListAtVersion,
    /// A later page.
    Page,
    Unpaged,
    Watch,
}

impl Kind {
    /// Returns the kind of the last request.
    fn of(bench: &Bench) -> Self {
        let is_request = |word: &&String| word.starts_with(['L', 'S', 'W']);
        let word = bench.seen.iter().rfind(is_request).unwrap();
        match word.as_bytes() {
            [b'W', ..] => Self::Watch,
            [b'S', b'(', ..] => Self::StreamAtVersion,
            [b'S', ..] => Self::Stream,
            [b'L', b'+', ..] => Self::Page,
            [b'L', .., b'*'] => Self::Unpaged,
            [b'L', b'(', ..] => Self::ListAtVersion,
            _ => Self::List,
        }
    }

    /// The response of a server at version 12.
    fn answer(self) -> &'static [Do] {
        match self {
            Self::Stream | Self::StreamAtVersion => &[Opened, Added("a", "11"), Marker("12")],
            Self::List | Self::ListAtVersion => &[Page("12", "t", &["a"])],
            Self::Page => &[Page("12", "", &["b"])],
            Self::Unpaged => &[Page("12", "", &["a", "b"])],
            Self::Watch => &[Opened],
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// Plays until the machine has a snapshot at version 12, for up to an hour.
fn recovers(bench: &mut Bench, mut steps: impl FnMut(Kind) -> &'static [Do]) -> bool {
    let until = bench.now + HOUR;
    while bench.now < until {
        if bench
            .machine
            .synced()
            .is_some_and(|version| version.as_str() == "12")
        {
            return true;
        }
        let request = bench.request;
        for step in steps(Kind::of(bench)) {
            if bench.request == request {
                bench.step(*step);
            }
        }
    }
    false
}

/// Returns the steps that fail one kind of request and answer all others.
fn except(failing: Kind, failure: &'static [Do]) -> impl Fn(Kind) -> &'static [Do] {
    move |kind| if kind == failing { failure } else { kind.answer() }
}

fn streaming_any() -> Config {
    streaming().list_semantic(ListSemantic::Any)
}

#[rstest]
#[case::a_list(Config::default(), &[Kind::List])]
#[case::a_list_at_any_version(any(), &[Kind::List, Kind::ListAtVersion])]
#[case::a_streaming_list(streaming(), &[Kind::Stream, Kind::List])]
#[case::a_streaming_list_at_any_version(
    streaming_any(),
    &[Kind::Stream, Kind::StreamAtVersion, Kind::List, Kind::ListAtVersion]
)]
fn the_one_request_that_is_answered_is_sent(
    #[case] config: Config,
    #[case] answered: &[Kind],
    #[values(false, true)] is_relist: bool,
) {
    for (answered, failure) in answered.iter().flat_map(|kind| {
        FAILURES
            .iter()
            .chain(&REJECTIONS)
            .map(move |failure| (*kind, *failure))
    }) {
        let is_stream = matches!(answered, Kind::Stream | Kind::StreamAtVersion);
        let rejects = REJECTIONS.contains(&failure);
        if rejects && is_stream && config.list_semantic == ListSemantic::Any {
            continue;
        }
        let mut bench = Bench::new(config.clone());
        if is_relist {
            let is_streaming = config.initial_list_strategy == InitialListStrategy::StreamingList;
            let first = if is_streaming {
                &[Opened, Marker("10")]
            } else {
                &SYNC
            };
            for step in first.iter().chain(&[Error(410, "")]) {
                bench.step(*step);
            }
        }
        let recovered = recovers(&mut bench, |kind| {
            // Pages belong to their list.
            let is_answered = kind == answered || [Kind::Page, Kind::Watch].contains(&kind);
            if is_answered { kind.answer() } else { failure }
        });
        assert!(recovered, "{answered:?}, {failure:?}: {:?}", bench.seen);
        within_budget(&bench.sent);
    }
}

#[test]
fn later_pages_that_always_fail_end_in_a_list_without_pages() {
    for failure in FAILURES.iter().chain(&REJECTIONS) {
        let mut bench = Bench::new(Config::default());
        let recovered = recovers(&mut bench, except(Kind::Page, failure));
        assert!(recovered, "{failure:?}: {:?}", bench.seen);
    }
}

#[test]
fn lists_without_pages_that_always_fail_end_in_pages() {
    for failure in FAILURES.iter().chain(&REJECTIONS) {
        let mut bench = Bench::new(Config::default());
        for step in [
            Page("11", "t", &["a"]),
            Rejected(410),
            Page("11", "t", &["a"]),
            Rejected(410),
        ] {
            bench.step(step);
        }
        assert_eq!(Kind::of(&bench), Kind::Unpaged);
        let recovered = recovers(&mut bench, except(Kind::Unpaged, failure));
        assert!(recovered, "{failure:?}: {:?}", bench.seen);
    }
}

/// The watches show nothing, and lists show version 12.
#[rstest]
#[case::refused(&FAILURES)]
#[case::rejected(&REJECTIONS)]
#[case::open(&[
    &[Opened, Pass(230), Eof][..],
    &[Opened, Pass(230), Refused],
    &[Opened, Pass(60), Bookmark("10"), Pass(170), Eof],
    &[Opened, Pass(60), Bookmark("9"), Pass(170), Eof],
    &[Opened, Pass(230), Error(429, "")],
    &[Opened, Error(429, "")],
    &[Opened, Pass(100), Bytes, Pass(100), Bytes, Pass(100), Bytes, Silence],
    &[Opened, Pass(200), Bookmark("10"), Pass(200), Bookmark("10"), Silence],
    &[Opened, Poison],
    &[Opened, Modified("a", "9")],
    &[Opened, Unknown],
])]
fn what_watches_do_not_show_is_listed(#[case] failures: &[&'static [Do]]) {
    for failure in failures {
        let mut bench = Bench::new(Config::default());
        bench.step(Page("10", "", &["a"]));
        let recovered = recovers(&mut bench, except(Kind::Watch, failure));
        assert!(recovered, "{failure:?}: {:?}", bench.seen);
        within_budget(&bench.sent);
    }
}
