//! The machine's rules, one row each: what the server does, and the transcript of what the machine did about it.
//!
//! A transcript reads: `L` a LIST (`L+t` with token t, `L(0)` from any state, `L(>=7)` not older than 7, a trailing `*`
//! without a limit), `W(7)` a WATCH, `S` a streaming list, `x` a cancelled request, `~` a pause; `Init`, `+a` (`InitApply`),
//! `Done`, `a` (`Apply`), `-a` (`Delete`); `!Kind` an error. Pauses are jumped over.

use rstest::rstest;

use super::*;
use crate::config::{InitialListStrategy, ListSemantic};
use crate::error::{DecodeError, Malformed, TransportError};
use crate::object::{Identity, ObjectId};
use crate::request::{At, ListFrom};
use crate::status::{Status, StatusCause};

/// What the server does, or the clock.
#[derive(Clone, Copy)]
enum Do {
    /// A page: resourceVersion, continue, names of its items.
    Page(&'static str, &'static str, &'static [&'static str]),
    Item(&'static str),
    Poison,
    Opened,
    /// `ADDED`, `MODIFIED`, `DELETED`: name and resourceVersion.
    Added(&'static str, &'static str),
    Modified(&'static str, &'static str),
    Deleted(&'static str, &'static str),
    Bookmark(&'static str),
    /// The bookmark that ends initial events.
    Marker(&'static str),
    /// An `ERROR` event: code, reason.
    Error(u16, &'static str),
    /// An `ERROR` event, or a refusal, that says the resourceVersion is too large.
    ErrorTooLarge,
    TooLarge,
    /// A refusal: HTTP status.
    Rejected(u16),
    Broken,
    Unknown,
    Refused,
    Eof,
    /// `ADDED` for the request before the current one.
    Late(&'static str, &'static str),
    /// Bytes that are nothing whole yet.
    Bytes,
    /// The head of a refusal.
    Refusing,
    /// The consumer is busy for so many seconds.
    Busy(u64),
    /// Nothing until the machine's time comes.
    Silence,
    /// The time goes on.
    Pass(u64),
}
use Do::*;

/// A machine, and what it was seen to do.
struct Bench {
    machine: Machine<Named>,
    now: Duration,
    request: RequestId,
    seen: Vec<String>,
    asked: Vec<Duration>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let mut bench = Self {
            machine: Machine::new(config, 1, Named::identity),
            now: Duration::ZERO,
            request: RequestId(0),
            seen: Vec::new(),
            asked: Vec::new(),
        };
        bench.drain();
        bench
    }

    fn play(config: Config, steps: &[Do]) -> String {
        let mut bench = Self::new(config);
        for step in steps {
            bench.step(*step);
        }
        bench.seen.join(" ")
    }

    fn step(&mut self, step: Do) {
        let error = |code, reason: &str| Status {
            code,
            reason: reason.to_owned(),
            ..Status::default()
        };
        let too_large = || Status {
            code: 504,
            causes: vec![StatusCause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: String::new(),
            }],
            ..Status::default()
        };
        let rejected = |http, status| Answer::Rejected {
            http,
            status,
            retry_after: None,
        };
        let bookmark = |rv: &'static str, initial_events_end| Answer::Bookmark {
            resource_version: rv.into(),
            initial_events_end,
        };
        let answer = match step {
            Page(rv, token, items) => {
                for item in items {
                    self.step(Item(item));
                }
                Answer::PageEnd(PageMeta {
                    resource_version: rv.into(),
                    continue_token: token.into(),
                })
            }
            Item(name) => Answer::Item {
                payload: Named { name, rv: "" },
            },
            Poison => Answer::Undecodable {
                object: ObjectId::default(),
                error: DecodeError {
                    reason: String::new(),
                    column: 0,
                },
            },
            Opened => Answer::Opened,
            Added(name, rv) => changed(Change::Added, name, rv),
            Modified(name, rv) => changed(Change::Modified, name, rv),
            Deleted(name, rv) => changed(Change::Deleted, name, rv),
            Bookmark(rv) => bookmark(rv, false),
            Marker(rv) => bookmark(rv, true),
            Error(code, reason) => Answer::ErrorEvent(error(code, reason)),
            ErrorTooLarge => Answer::ErrorEvent(too_large()),
            TooLarge => rejected(504, too_large()),
            Rejected(http) => rejected(http, error(http, "")),
            Broken => Answer::Malformed(Malformed::NotJson),
            Bytes => Answer::Progress,
            Refusing => Answer::Refusing,
            Busy(seconds) => {
                let time = Duration::from_secs(seconds);
                self.now += time;
                self.machine.handle(self.now, Input::Unattended(time));
                return;
            }
            Unknown => Answer::Malformed(Malformed::UnknownEventType("FOO".to_owned())),
            Refused => Answer::TransportError(TransportError::new("refused")),
            Eof => Answer::Eof,
            Late(name, rv) => {
                let request = RequestId(self.request.0 - 1);
                let answer = changed(Change::Added, name, rv);
                self.machine.handle(self.now, Input::Answer { request, answer });
                return self.drain();
            }
            Silence => {
                self.now = self.machine.poll_timeout().unwrap();
                self.machine.handle(self.now, Input::Timeout);
                return self.drain();
            }
            Pass(seconds) => {
                self.now += Duration::from_secs(seconds);
                return;
            }
        };
        self.machine.handle(
            self.now,
            Input::Answer {
                request: self.request,
                answer,
            },
        );
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            while let Some(output) = self.machine.poll_output() {
                if let Output::Request { id, .. } = &output {
                    self.request = *id;
                    self.asked.push(self.now);
                }
                self.seen.push(word(&output));
            }
            match &self.machine.state {
                State::Empty | State::BackingOff { .. } => {
                    self.now = self.now.max(self.machine.poll_timeout().unwrap());
                    self.machine.handle(self.now, Input::Timeout);
                }
                State::Listing(_)
                | State::InitialWatch(_)
                | State::Listed(_)
                | State::Watching(_)
                | State::Probing(_) => return,
            }
        }
    }
}

fn changed(change: Change, name: &'static str, rv: &'static str) -> Answer<'static, Named> {
    Answer::Changed {
        change,
        payload: Named { name, rv },
    }
}

/// An object with nothing to it.
#[derive(Debug)]
struct Named {
    name: &'static str,
    rv: &'static str,
}

impl Named {
    fn identity(&self) -> Identity<'_> {
        Identity {
            name: self.name.into(),
            resource_version: self.rv.into(),
            ..Identity::default()
        }
    }
}

fn word(output: &Output<Named>) -> String {
    let at = |at: &At| match at {
        At::MostRecent => String::new(),
        At::Any => "(0)".to_owned(),
        At::NotOlderThan(rv) => format!("(>={rv})"),
    };
    match output {
        Output::Request { request, .. } => match request {
            Request::List { limit, from } => {
                let from = match from {
                    ListFrom::Start(from) => at(from),
                    ListFrom::Continue(token) => format!("+{token}"),
                };
                format!("L{from}{}", if limit.is_none() { "*" } else { "" })
            }
            Request::Watch { resource_version, .. } => format!("W({resource_version})"),
            Request::StreamingList { at: from, .. } => format!("S{}", at(from)),
        },
        Output::Cancel(_) => "x".to_owned(),
        Output::Wait { .. } => "~".to_owned(),
        Output::Event(Event::Init) => "Init".to_owned(),
        Output::Event(Event::InitApply(object)) => format!("+{}", object.name),
        Output::Event(Event::InitDone) => "Done".to_owned(),
        Output::Event(Event::Apply(object)) => object.name.to_owned(),
        Output::Event(Event::Delete(object)) => format!("-{}", object.name),
        Output::Error(error) => {
            let debug = format!("{error:?}");
            format!("!{}", debug.split([' ', '{']).next().unwrap_or_default())
        }
    }
}

fn any() -> Config {
    Config::default().list_semantic(ListSemantic::Any)
}

fn streaming() -> Config {
    Config {
        initial_list_strategy: InitialListStrategy::StreamingList,
        ..Config::default()
    }
}

/// A list at 10 with `a`, and its watch.
const SYNCED: &str = "L Init +a Done W(10)";
const SYNC: [Do; 2] = [Page("10", "", &["a"]), Opened];

#[rstest]
#[case::an_empty_collection_is_a_set(&[Page("10", "", &[])], "L Init Done W(10)")]
#[case::pages_are_followed_until_no_token(
    &[Page("10", "t1", &["a"]), Page("10", "t2", &[]), Page("10", "", &["b"])],
    "L Init +a L+t1 L+t2 +b Done W(10)"
)]
#[case::the_watch_begins_at_the_first_pages_version(
    &[Page("100", "t1", &["a"]), Page("120", "", &["b"])],
    "L Init +a L+t1 +b Done W(100)"
)]
#[case::a_dead_token_is_not_sent_again(
    &[Page("10", "t1", &["a"]), Rejected(410), Page("12", "", &["b"])],
    "L Init +a L+t1 ~ L Init +b Done W(12)"
)]
#[case::the_third_attempt_is_not_paged(
    &[Page("10", "t1", &["a"]), Rejected(410), Page("11", "t2", &["a"]), Rejected(410), Page("12", "", &["b"])],
    "L Init +a L+t1 ~ L Init +a L+t2 !Rejected ~ L* Init +b Done W(12)"
)]
#[case::a_transient_failure_asks_for_the_page_again(
    &[Page("10", "t1", &["a"]), Rejected(503), Refused, Page("10", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 !Transport ~ L+t1 +b Done W(10)"
)]
#[case::and_then_for_the_list(
    &[Page("10", "t1", &["a"]), Rejected(503), Rejected(503), Rejected(503), Rejected(503), Page("12", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L Init +b Done W(12)"
)]
#[case::a_repeated_token_is_noticed(
    &[Page("10", "t1", &["a"]), Page("10", "t2", &["b"]), Page("10", "t1", &["c"]), Page("11", "", &["a"])],
    "L Init +a L+t1 +b L+t2 +c !EndlessList ~ L* Init +a Done W(11)"
)]
#[case::a_failing_list_tells_nothing_but_its_error(
    &[Rejected(500), Rejected(403), Broken, Page("10", "", &["a"])],
    "L !Rejected ~ L !Rejected ~ L x !Malformed ~ L Init +a Done W(10)"
)]
#[case::a_page_too_new_for_the_watch_cache_is_asked_for_again(
    &[Page("10", "t1", &["a"]), TooLarge, Page("10", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 +b Done W(10)"
)]
#[case::and_in_the_end_the_list_is_not_paged(
    &[
        Page("10", "t1", &["a"]), TooLarge, TooLarge, TooLarge, TooLarge,
        Page("10", "t2", &["a"]), TooLarge, TooLarge, TooLarge, TooLarge, Page("10", "", &["a"]),
    ],
    "L Init +a L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ \
     L Init +a L+t2 !Rejected ~ L+t2 !Rejected ~ L+t2 !Rejected ~ L+t2 !Rejected ~ L* Init +a Done W(10)"
)]
#[case::a_silent_list_is_given_up(&[Silence, Page("10", "", &["a"])], "L x !Silence ~ L Init +a Done W(10)")]
#[case::a_poison_item_is_named_and_the_set_never_declared_complete(
    &[Item("a"), Poison, Page("10", "", &["b"]), Page("11", "", &["a"])],
    "L Init +a !Undecodable +b ~ L Init +a Done W(11)"
)]
#[case::a_list_without_version_is_no_set(
    &[Page("", "", &["a"]), Page("0", "", &["a"]), Page("10", "", &["a"])],
    "L Init +a !NoResourceVersion ~ L* Init +a !NoResourceVersion ~ L* Init +a Done W(10)"
)]
fn a_set_is_read(#[case] steps: &[Do], #[case] expected: &str) {
    assert_eq!(Bench::play(Config::default(), steps), expected);
}

#[rstest]
#[case::a_clean_end_resumes_at_the_last_event(
    &[Modified("a", "11"), Added("b", "12"), Pass(5), Eof],
    "a b W(12)"
)]
#[case::a_bookmark_moves_the_resume_point(&[Bookmark("50"), Pass(5), Eof], "W(50)")]
#[case::an_empty_or_older_bookmark_does_not(
    &[Modified("a", "30"), Bookmark(""), Bookmark("20"), Bookmark("0"), Pass(5), Eof],
    "a W(30)"
)]
#[case::a_marker_on_a_plain_watch_is_a_bookmark(&[Marker("50"), Pass(5), Eof], "W(50)")]
#[case::a_deletion_resumes_at_its_own_version(&[Deleted("a", "30"), Pass(5), Eof], "-a W(30)")]
#[case::a_version_that_is_no_number_is_carried(&[Modified("a", "v2:b"), Pass(5), Eof], "a W(v2:b)")]
#[case::a_cut_resumes(&[Modified("a", "11"), Pass(5), Refused], "a ~ W(11)")]
#[case::silence_resumes(&[Modified("a", "11"), Silence], "a x ~ W(11)")]
#[case::an_expired_event_lists_anew(
    &[Modified("a", "11"), Error(410, "Expired"), Late("z", "99"), Page("50", "", &["a"])],
    "a x ~ L Init +a Done W(50)"
)]
#[case::by_its_reason_alone(&[Error(0, "Expired"), Page("50", "", &[])], "x ~ L Init Done W(50)")]
#[case::by_the_reason_gone(&[Error(200, "Gone"), Page("50", "", &[])], "x ~ L Init Done W(50)")]
#[case::nothing_after_an_error_event_is_told(&[Error(500, ""), Late("z", "99")], "x !ErrorEvent ~ W(10)")]
#[case::an_internal_error_resumes_and_then_lists(
    &[Error(500, ""), Opened, Error(500, ""), Opened, Error(500, ""), Page("12", "", &[])],
    "x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ L Init Done W(12)"
)]
#[case::a_busy_server_is_not_listed(
    &[Error(429, ""), Opened, Error(429, ""), Opened, Error(429, ""), Opened, Error(429, ""), Opened],
    "x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10)"
)]
#[case::an_unsafe_delete_lists_at_once(
    &[Error(500, "StorageReadError"), Page("12", "", &[])],
    "x !ErrorEvent ~ L Init Done W(12)"
)]
#[case::too_large_lists(&[ErrorTooLarge, Page("5", "", &[])], "x !ErrorEvent ~ L Init Done W(5)")]
#[case::an_object_without_version_lists(
    &[Modified("a", ""), Page("12", "", &["a"])],
    "x !NoResourceVersion ~ L Init +a Done W(12)"
)]
#[case::an_undecodable_object_lists(&[Poison, Page("12", "", &["a"])], "x !Undecodable ~ L Init +a Done W(12)")]
#[case::an_unknown_type_resumes_before_it_and_then_lists(
    &[Unknown, Opened, Broken, Opened, Unknown, Page("12", "", &[])],
    "x !Malformed ~ W(10) x !Malformed ~ W(10) x !Malformed ~ L Init Done W(12)"
)]
#[case::progress_forgets_the_setbacks(
    &[Unknown, Opened, Unknown, Opened, Modified("a", "11"), Unknown, Opened, Unknown, Opened],
    "x !Malformed ~ W(10) x !Malformed ~ W(10) a x !Malformed ~ W(11) x !Malformed ~ W(11)"
)]
#[case::ends_at_once_three_times_lists(
    &[Eof, Opened, Eof, Opened, Eof, Page("50", "", &[])],
    "~ W(10) !EndsAtOnce ~ W(10) !EndsAtOnce ~ L Init Done W(50)"
)]
#[case::an_older_event_lists(
    &[Modified("a", "20"), Modified("a", "15"), Page("20", "", &["a"])],
    "a x !BackInTime ~ L Init +a Done W(20)"
)]
#[case::an_older_event_lists_until_versions_are_known_to_be_unordered(
    &[
        Modified("a", "9"), Page("10", "", &[]), Opened, Modified("a", "9"), Page("10", "", &[]), Opened,
        Modified("a", "9"), Page("10", "", &[]), Opened, Modified("a", "9"), Pass(5), Eof,
    ],
    "x !BackInTime ~ L Init Done W(10) x !BackInTime ~ L Init Done W(10) x !BackInTime ~ L Init Done W(10) a W(9)"
)]
#[case::a_repeated_event_is_told_as_it_is(&[Modified("a", "12"), Modified("a", "12"), Pass(5), Eof], "a a W(12)")]
fn a_watch_is_followed(#[case] steps: &[Do], #[case] expected: &str) {
    let steps = [&SYNC, steps].concat();
    assert_eq!(
        Bench::play(Config::default(), &steps),
        format!("{SYNCED} {expected}")
    );
}

#[rstest]
#[case::http_410(&[Rejected(410), Page("50", "", &[])], "~ L Init Done W(50)")]
#[case::busy(&[Rejected(429), Rejected(429), Rejected(429), Rejected(429)],
    "!Rejected ~ W(10) !Rejected ~ W(10) !Rejected ~ W(10) !Rejected ~ W(10)")]
#[case::away(&[Refused, Refused, Refused, Refused],
    "!Transport ~ W(10) !Transport ~ W(10) !Transport ~ W(10) !Transport ~ W(10)")]
#[case::server_errors_do_not_list(&[Rejected(503), Rejected(500), Rejected(502), Opened],
    "!Rejected ~ W(10) !Rejected ~ W(10) !Rejected ~ W(10)")]
#[case::a_persistent_refusal_lists(
    &[Rejected(403), Rejected(403), Rejected(403), Page("12", "", &[])],
    "!Rejected ~ W(10) !Rejected ~ W(10) !Rejected ~ L Init Done W(12)"
)]
#[case::too_large_lists(&[TooLarge, Page("5", "", &[])], "!Rejected ~ L Init Done W(5)")]
#[case::no_head_at_all(&[Silence, Opened], "x !Silence ~ W(10)")]
#[case::a_body_that_is_none(&[Broken, Opened], "x !Malformed ~ W(10)")]
fn a_watch_that_does_not_start(#[case] steps: &[Do], #[case] expected: &str) {
    let steps = [&SYNC[..1], steps].concat();
    assert_eq!(
        Bench::play(Config::default(), &steps),
        format!("{SYNCED} {expected}")
    );
}

#[test]
fn ten_server_errors_on_one_version_list_anew() {
    let steps = [&SYNC[..1], &[Rejected(500); 10]].concat();
    let seen = Bench::play(Config::default(), &steps);
    assert_eq!(seen.matches("W(10)").count(), 10);
    assert!(seen.ends_with("~ L"), "{seen}");
}

#[rstest]
#[case::zero_is_asked_for_once(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("12", "", &[])],
    "L(0) Init Done W(10) x ~ L(>=10) Init Done W(12)"
)]
#[case::an_expired_list_is_asked_for_without_version(
    &[Page("10", "", &[]), Opened, Error(410, ""), Rejected(410), Page("12", "", &[])],
    "L(0) Init Done W(10) x ~ L(>=10) !Rejected ~ L Init Done W(12)"
)]
#[case::and_so_is_one_that_is_too_large(
    &[Page("90", "", &[]), Opened, Error(410, ""), TooLarge, Page("40", "", &[])],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40)"
)]
#[case::or_refused_for_its_version(
    &[Page("90", "", &[]), Opened, Error(410, ""), Rejected(400), Page("40", "", &[])],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40)"
)]
#[case::the_version_that_expired_is_not_watched_again(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("10", "", &["a"]), Page("60", "", &["a"])],
    "L(0) Init Done W(10) x ~ L(>=10) Init +a ~ L* Init +a Done W(60)"
)]
#[case::an_older_list_is_not_accepted(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("5", "", &["old"]), Page("12", "", &["a"])],
    "L(0) Init Done W(10) x ~ L(>=10) Init +old !OldList ~ L Init +a Done W(12)"
)]
#[case::but_one_that_was_not_pinned_is(
    &[Page("90", "", &[]), Opened, Error(410, ""), Rejected(410), Page("40", "", &[]), Opened, Error(410, "")],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40) x !ErrorEvent ~ L(>=40)"
)]
#[case::objects_of_a_list_that_breaks_off_were_told(
    &[Item("a"), Refused, Page("10", "", &["a"])],
    "L(0) Init +a !Transport ~ L Init +a Done W(10)"
)]
#[case::and_from_its_first_page_on_they_have_a_version(
    &[Page("10", "t1", &["a"]), Rejected(410), Page("10", "", &["a"])],
    "L(0) Init +a L+t1 ~ L(>=10) Init +a Done W(10)"
)]
#[case::a_list_that_told_nothing_may_be_as_old(&[Refused, Page("10", "", &[])], "L(0) !Transport ~ L(0) Init Done W(10)")]
fn any_state_is_never_an_older_one(#[case] steps: &[Do], #[case] expected: &str) {
    assert_eq!(Bench::play(any(), steps), expected);
}

#[rstest]
#[case::the_stream_goes_on_as_a_watch(
    &[Opened, Added("a", "90"), Bookmark("5"), Marker("100"), Modified("a", "101"), Pass(5), Eof],
    "S Init +a Done a W(101)"
)]
#[case::the_version_is_the_markers(&[Opened, Added("a", "90"), Marker("100"), Pass(5), Eof], "S Init +a Done W(100)")]
#[case::changes_before_the_marker_are_applied(
    &[Opened, Added("p1", "1"), Added("p3", "4"), Modified("p1", "3"), Deleted("p3", "5"), Marker("5")],
    "S Init +p1 Done"
)]
#[case::an_end_before_the_marker_starts_clean(
    &[Opened, Added("a", "7"), Pass(5), Eof, Opened, Added("b", "8"), Marker("9")],
    "S ~ S Init +b Done"
)]
#[case::never_marked_three_times_is_listed(
    &[Opened, Eof, Opened, Refused, Opened, Eof, Page("10", "", &["a"])],
    "S ~ S !Transport ~ S ~ L Init +a Done W(10)"
)]
#[case::a_whole_life_without_a_marker_is_listed(
    &[Opened, Added("a", "7"), Pass(290), Eof, Page("10", "", &["a"])],
    "S !NoInitialEventsEnd ~ L Init +a Done W(10)"
)]
#[case::an_end_that_a_busy_consumer_missed_is_not(
    &[Opened, Busy(290), Eof, Opened, Marker("9")],
    "S ~ S Init Done"
)]
#[case::a_marker_that_does_not_come_is_not_waited_for(
    &[Opened, Added("a", "7"), Bookmark("8"), Silence, Page("10", "", &["a"])],
    "S x !NoInitialEventsEnd ~ L Init +a Done W(10)"
)]
#[case::refused_with_422(&[Rejected(422), Page("10", "", &[]), Opened, Error(410, "")], "S L Init Done W(10) x ~ L")]
#[case::refused_with_400(&[Rejected(400), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::refused_with_403(&[Rejected(403), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::refused_with_405(&[Rejected(405), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::refused_by_an_error_event(&[Opened, Error(422, "Invalid"), Page("10", "", &[])], "S x ~ L Init Done W(10)")]
#[case::failed_otherwise(&[Rejected(500), Page("10", "", &[])], "S !Rejected ~ L Init Done W(10)")]
#[case::busy_is_asked_again(&[Rejected(429), Rejected(429), Opened], "S !Rejected ~ S !Rejected ~ S")]
#[case::away_is_asked_again(&[Refused, Refused, Opened], "S !Transport ~ S !Transport ~ S")]
#[case::a_hole_is_no_set(
    &[Opened, Added("a", "7"), Poison, Opened, Added("a", "7"), Marker("9")],
    "S x !Undecodable ~ S Init +a Done"
)]
#[case::a_marker_without_version_marks_nothing(
    &[Opened, Marker(""), Opened, Marker("9")],
    "S x !NoResourceVersion ~ S Init Done"
)]
fn a_streaming_list(#[case] steps: &[Do], #[case] expected: &str) {
    assert_eq!(Bench::play(streaming(), steps), expected);
}

#[rstest]
#[case::an_event(Error(410, ""), "S(0) Init Done S? x ~ S(>=50) x !Rejected ~ S")]
#[case::too_large(ErrorTooLarge, "S(0) Init Done S? x ~ S(>=50) x !Rejected ~ S")]
fn an_expired_streaming_list_is_asked_for_without_version(#[case] refusal: Do, #[case] expected: &str) {
    let config = Config {
        list_semantic: ListSemantic::Any,
        ..streaming()
    };
    let steps = [Opened, Marker("50"), Error(410, ""), Opened, refusal];
    assert_eq!(Bench::play(config, &steps), expected.replace(" S?", ""));
}

#[test]
fn a_streaming_list_of_any_state_that_was_told_in_part_is_not_followed_by_an_older_one() {
    let config = Config {
        list_semantic: ListSemantic::Any,
        ..streaming()
    };
    let untold = [Opened, Added("a", "1"), Eof];
    assert_eq!(Bench::play(config.clone(), &untold), "S(0) ~ S(0)");
    let told = [
        Opened,
        Added("a", "1"),
        Added("b", "2"),
        Added("c", "3"),
        Added("d", "4"),
        Added("e", "5"),
        Eof,
    ];
    assert_eq!(Bench::play(config, &told), "S(0) Init +a +b +c +d +e ~ S");
}

#[test]
fn a_large_streaming_list_is_told_while_it_arrives_and_a_delete_starts_it_anew() {
    let mut bench = Bench::new(streaming());
    bench.step(Opened);
    for name in ["a", "c", "d", "e", "a"] {
        bench.step(Added(name, "1"));
    }
    assert_eq!(bench.seen, ["S"]);
    bench.step(Added("b", "2"));
    assert_eq!(bench.seen.len(), 1 + 1 + 5);
    bench.step(Deleted("a", "3"));
    assert_eq!(bench.seen[7..], ["x", "~", "S"]);
}

#[test]
fn what_belongs_to_an_abandoned_request_is_dropped() {
    let mut bench = Bench::new(Config::default());
    for step in SYNC {
        bench.step(step);
    }
    let abandoned = bench.request;
    bench.step(Error(410, ""));
    let seen = bench.seen.clone();
    for answer in [changed(Change::Added, "z", "99"), Answer::Eof, Answer::Opened] {
        bench.machine.handle(
            bench.now,
            Input::Answer {
                request: abandoned,
                answer,
            },
        );
        bench.drain();
    }
    assert_eq!(bench.seen, seen);
}

#[test]
fn an_early_timeout_does_nothing() {
    let mut bench = Bench::new(Config::default());
    bench.machine.handle(Duration::from_secs(64), Input::Timeout);
    assert!(bench.machine.poll_output().is_none());
    assert_eq!(bench.machine.poll_timeout(), Some(Duration::from_secs(65)));
}

mod pace;
mod probing;
mod time;
