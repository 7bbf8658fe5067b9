//! Table tests of the machine: each row has the server's actions and the expected transcript.
//!
//! Transcript: `L` a LIST (`L+t` with continue token t, `L(0)` from any state, `L(>=7)` not older than 7, a trailing
//! `*` without a limit), `W(7)` a WATCH, `S` a streaming list, `x` a cancelled request, `~` a delay; `Init`, `+a`
//! (`InitApply`), `Done`, `a` (`Apply`), `-a` (`Delete`); `!Kind` an error. The clock jumps over delays.

use rstest::rstest;

use super::*;
use crate::config::{InitialListStrategy, ListSemantic};
use crate::error::{DecodeError, Malformed, TransportError};
use crate::object::{Identity, ObjectId};
use crate::request::{At, ListFrom};
use crate::status::{Status, StatusCause};

/// An action of the server, or of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The bookmark that ends the initial events.
    Marker(&'static str),
    /// An `ERROR` event: code, reason.
    Error(u16, &'static str),
    /// An `ERROR` event, or an error response, for a resourceVersion that is too large.
    ErrorTooLarge,
    TooLarge,
    /// An error response: HTTP status.
    Rejected(u16),
    Broken,
    Unknown,
    Refused,
    Eof,
    /// `ADDED` for the request before the current one.
    Late(&'static str, &'static str),
    /// Bytes that do not complete an event.
    Bytes,
    /// The head of an error response.
    Refusing,
    /// The consumer is busy for this many seconds.
    Busy(u64),
    /// Silence until the machine's timeout.
    Silence,
    /// Advances the clock by this many seconds.
    Pass(u64),
}
use Do::*;

/// A machine and its transcript.
struct Bench {
    machine: Machine<Named>,
    now: Duration,
    request: RequestId,
    seen: Vec<String>,
    sent: Vec<Duration>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let mut bench = Self {
            machine: Machine::new(config, 1, Named::identity),
            now: Duration::ZERO,
            request: RequestId(0),
            seen: Vec::new(),
            sent: Vec::new(),
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
        let rejected = |http, status| ResponsePart::Rejected {
            http,
            status,
            retry_after: None,
        };
        let bookmark = |rv: &'static str, initial_events_end| ResponsePart::Bookmark {
            resource_version: rv.into(),
            initial_events_end,
        };
        let answer = match step {
            Page(rv, token, items) => {
                for item in items {
                    self.step(Item(item));
                }
                ResponsePart::PageEnd(PageMeta {
                    resource_version: rv.into(),
                    continue_token: token.into(),
                })
            }
            Item(name) => ResponsePart::Item {
                payload: Named { name, rv: "" },
            },
            Poison => ResponsePart::Undecodable {
                object: ObjectId::default(),
                error: DecodeError {
                    reason: String::new(),
                    column: 0,
                },
            },
            Opened => ResponsePart::Opened,
            Added(name, rv) => changed(Change::Added, name, rv),
            Modified(name, rv) => changed(Change::Modified, name, rv),
            Deleted(name, rv) => changed(Change::Deleted, name, rv),
            Bookmark(rv) => bookmark(rv, false),
            Marker(rv) => bookmark(rv, true),
            Error(code, reason) => ResponsePart::ErrorEvent(error(code, reason)),
            ErrorTooLarge => ResponsePart::ErrorEvent(too_large()),
            TooLarge => rejected(504, too_large()),
            Rejected(http) => rejected(http, error(http, "")),
            Broken => ResponsePart::Malformed(Malformed::NotJson),
            Bytes => ResponsePart::Progress,
            Refusing => ResponsePart::Refusing,
            Busy(seconds) => {
                let time = Duration::from_secs(seconds);
                self.now += time;
                self.machine.handle(self.now, Input::Unattended(time));
                return;
            }
            Unknown => ResponsePart::Malformed(Malformed::UnknownEventType("FOO".to_owned())),
            Refused => ResponsePart::TransportError(TransportError::new("refused")),
            Eof => ResponsePart::Eof,
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
                    self.sent.push(self.now);
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

fn changed(change: Change, name: &'static str, rv: &'static str) -> ResponsePart<'static, Named> {
    ResponsePart::Changed {
        change,
        payload: Named { name, rv },
    }
}

/// An object with identity only.
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
#[case::an_empty_collection_is_complete(&[Page("10", "", &[])], "L Init Done W(10)")]
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
#[case::a_transient_failure_requests_the_page_again(
    &[Page("10", "t1", &["a"]), Rejected(503), Refused, Page("10", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 !Transport ~ L+t1 +b Done W(10)"
)]
#[case::then_the_list_is_requested_again(
    &[Page("10", "t1", &["a"]), Rejected(503), Rejected(503), Rejected(503), Rejected(503), Page("12", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L Init +b Done W(12)"
)]
#[case::a_repeated_token_is_noticed(
    &[Page("10", "t1", &["a"]), Page("10", "t2", &["b"]), Page("10", "t1", &["c"]), Page("11", "", &["a"])],
    "L Init +a L+t1 +b L+t2 +c !EndlessList ~ L* Init +a Done W(11)"
)]
#[case::a_failing_list_emits_only_its_error(
    &[Rejected(500), Rejected(403), Broken, Page("10", "", &["a"])],
    "L !Rejected ~ L !Rejected ~ L x !Malformed ~ L Init +a Done W(10)"
)]
#[case::a_page_too_new_for_the_watch_cache_is_requested_again(
    &[Page("10", "t1", &["a"]), TooLarge, Page("10", "", &["b"])],
    "L Init +a L+t1 !Rejected ~ L+t1 +b Done W(10)"
)]
#[case::finally_the_list_is_not_paged(
    &[
        Page("10", "t1", &["a"]), TooLarge, TooLarge, TooLarge, TooLarge,
        Page("10", "t2", &["a"]), TooLarge, TooLarge, TooLarge, TooLarge, Page("10", "", &["a"]),
    ],
    "L Init +a L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ L+t1 !Rejected ~ \
     L Init +a L+t2 !Rejected ~ L+t2 !Rejected ~ L+t2 !Rejected ~ L+t2 !Rejected ~ L* Init +a Done W(10)"
)]
#[case::a_silent_list_times_out(&[Silence, Page("10", "", &["a"])], "L x !Silence ~ L Init +a Done W(10)")]
#[case::an_undecodable_item_is_reported_and_the_list_never_completes(
    &[Item("a"), Poison, Page("10", "", &["b"]), Page("11", "", &["a"])],
    "L Init +a !Undecodable +b ~ L Init +a Done W(11)"
)]
#[case::a_list_without_version_is_rejected(
    &[Page("", "", &["a"]), Page("0", "", &["a"]), Page("10", "", &["a"])],
    "L Init +a !NoResourceVersion ~ L* Init +a !NoResourceVersion ~ L* Init +a Done W(10)"
)]
fn a_snapshot_is_read_by_list(#[case] steps: &[Do], #[case] expected: &str) {
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
#[case::a_non_numeric_version_is_used_verbatim(&[Modified("a", "v2:b"), Pass(5), Eof], "a W(v2:b)")]
#[case::a_cut_resumes(&[Modified("a", "11"), Pass(5), Refused], "a ~ W(11)")]
#[case::silence_resumes(&[Modified("a", "11"), Silence], "a x ~ W(11)")]
#[case::an_expired_event_relists(
    &[Modified("a", "11"), Error(410, "Expired"), Late("z", "99"), Page("50", "", &["a"])],
    "a x ~ L Init +a Done W(50)"
)]
#[case::by_its_reason_alone(&[Error(0, "Expired"), Page("50", "", &[])], "x ~ L Init Done W(50)")]
#[case::by_the_reason_gone(&[Error(200, "Gone"), Page("50", "", &[])], "x ~ L Init Done W(50)")]
#[case::events_after_an_error_event_are_dropped(&[Error(500, ""), Late("z", "99")], "x !ErrorEvent ~ W(10)")]
#[case::an_internal_error_resumes_then_relists(
    &[Error(500, ""), Opened, Error(500, ""), Opened, Error(500, ""), Page("12", "", &[])],
    "x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ L Init Done W(12)"
)]
#[case::a_busy_server_does_not_relist(
    &[Error(429, ""), Opened, Error(429, ""), Opened, Error(429, ""), Opened, Error(429, ""), Opened],
    "x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10) x !ErrorEvent ~ W(10)"
)]
#[case::an_unsafe_delete_relists_immediately(
    &[Error(500, "StorageReadError"), Page("12", "", &[])],
    "x !ErrorEvent ~ L Init Done W(12)"
)]
#[case::too_large_lists(&[ErrorTooLarge, Page("5", "", &[])], "x !ErrorEvent ~ L Init Done W(5)")]
#[case::an_object_without_version_relists(
    &[Modified("a", ""), Page("12", "", &["a"])],
    "x !NoResourceVersion ~ L Init +a Done W(12)"
)]
#[case::an_undecodable_object_relists(&[Poison, Page("12", "", &["a"])], "x !Undecodable ~ L Init +a Done W(12)")]
#[case::an_unknown_type_resumes_then_relists(
    &[Unknown, Opened, Broken, Opened, Unknown, Page("12", "", &[])],
    "x !Malformed ~ W(10) x !Malformed ~ W(10) x !Malformed ~ L Init Done W(12)"
)]
#[case::progress_resets_failed_resumes(
    &[Unknown, Opened, Unknown, Opened, Modified("a", "11"), Unknown, Opened, Unknown, Opened],
    "x !Malformed ~ W(10) x !Malformed ~ W(10) a x !Malformed ~ W(11) x !Malformed ~ W(11)"
)]
#[case::three_immediate_ends_relist(
    &[Eof, Opened, Eof, Opened, Eof, Page("50", "", &[])],
    "~ W(10) !EndsAtOnce ~ W(10) !EndsAtOnce ~ L Init Done W(50)"
)]
#[case::an_older_event_relists(
    &[Modified("a", "20"), Modified("a", "15"), Page("20", "", &["a"])],
    "a x !BackInTime ~ L Init +a Done W(20)"
)]
#[case::older_events_relist_until_versions_are_treated_as_unordered(
    &[
        Modified("a", "9"), Page("10", "", &[]), Opened, Modified("a", "9"), Page("10", "", &[]), Opened,
        Modified("a", "9"), Page("10", "", &[]), Opened, Modified("a", "9"), Pass(5), Eof,
    ],
    "x !BackInTime ~ L Init Done W(10) x !BackInTime ~ L Init Done W(10) x !BackInTime ~ L Init Done W(10) a W(9)"
)]
#[case::a_repeated_event_is_emitted_again(&[Modified("a", "12"), Modified("a", "12"), Pass(5), Eof], "a a W(12)")]
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
#[case::a_persistent_rejection_relists(
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
fn ten_server_errors_at_one_version_cause_a_relist() {
    let steps = [&SYNC[..1], &[Rejected(500); 10]].concat();
    let seen = Bench::play(Config::default(), &steps);
    assert_eq!(seen.matches("W(10)").count(), 10);
    assert!(seen.ends_with("~ L"), "{seen}");
}

#[rstest]
#[case::version_zero_is_requested_once(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("12", "", &[])],
    "L(0) Init Done W(10) x ~ L(>=10) Init Done W(12)"
)]
#[case::an_expired_list_is_requested_without_version(
    &[Page("10", "", &[]), Opened, Error(410, ""), Rejected(410), Page("12", "", &[])],
    "L(0) Init Done W(10) x ~ L(>=10) !Rejected ~ L Init Done W(12)"
)]
#[case::so_is_a_too_large_version(
    &[Page("90", "", &[]), Opened, Error(410, ""), TooLarge, Page("40", "", &[])],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40)"
)]
#[case::so_is_a_version_rejected_as_bad_request(
    &[Page("90", "", &[]), Opened, Error(410, ""), Rejected(400), Page("40", "", &[])],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40)"
)]
#[case::an_expired_version_is_not_watched_again(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("10", "", &["a"]), Page("60", "", &["a"])],
    "L(0) Init Done W(10) x ~ L(>=10) Init +a ~ L* Init +a Done W(60)"
)]
#[case::an_older_list_than_pinned_is_rejected(
    &[Page("10", "", &[]), Opened, Error(410, ""), Page("5", "", &["old"]), Page("12", "", &["a"])],
    "L(0) Init Done W(10) x ~ L(>=10) Init +old !OldList ~ L Init +a Done W(12)"
)]
#[case::an_older_unpinned_list_is_accepted(
    &[Page("90", "", &[]), Opened, Error(410, ""), Rejected(410), Page("40", "", &[]), Opened, Error(410, "")],
    "L(0) Init Done W(90) x ~ L(>=90) !Rejected ~ L Init Done W(40) x !ErrorEvent ~ L(>=40)"
)]
#[case::after_an_interrupted_list_no_older_state_follows(
    &[Item("a"), Refused, Page("10", "", &["a"])],
    "L(0) Init +a !Transport ~ L Init +a Done W(10)"
)]
#[case::after_its_first_page_the_next_list_is_pinned_to_its_version(
    &[Page("10", "t1", &["a"]), Rejected(410), Page("10", "", &["a"])],
    "L(0) Init +a L+t1 ~ L(>=10) Init +a Done W(10)"
)]
#[case::a_list_that_emitted_nothing_does_not_pin(&[Refused, Page("10", "", &[])], "L(0) !Transport ~ L(0) Init Done W(10)")]
fn any_semantic_never_goes_back_in_time(#[case] steps: &[Do], #[case] expected: &str) {
    assert_eq!(Bench::play(any(), steps), expected);
}

#[rstest]
#[case::the_stream_continues_as_a_watch(
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
#[case::three_unmarked_lists_fall_back(
    &[Opened, Eof, Opened, Refused, Opened, Eof, Page("10", "", &["a"])],
    "S ~ S !Transport ~ S ~ L Init +a Done W(10)"
)]
#[case::a_full_lifetime_without_marker_falls_back(
    &[Opened, Added("a", "7"), Pass(290), Eof, Page("10", "", &["a"])],
    "S !NoInitialEventsEnd ~ L Init +a Done W(10)"
)]
#[case::an_end_missed_by_a_busy_consumer_does_not(
    &[Opened, Busy(290), Eof, Opened, Marker("9")],
    "S ~ S Init Done"
)]
#[case::a_missing_marker_times_out(
    &[Opened, Added("a", "7"), Bookmark("8"), Silence, Page("10", "", &["a"])],
    "S x !NoInitialEventsEnd ~ L Init +a Done W(10)"
)]
#[case::rejected_with_422(&[Rejected(422), Page("10", "", &[]), Opened, Error(410, "")], "S L Init Done W(10) x ~ L")]
#[case::rejected_with_400(&[Rejected(400), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::rejected_with_403(&[Rejected(403), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::rejected_with_405(&[Rejected(405), Page("10", "", &[])], "S L Init Done W(10)")]
#[case::rejected_by_an_error_event(&[Opened, Error(422, "Invalid"), Page("10", "", &[])], "S x ~ L Init Done W(10)")]
#[case::failed_otherwise(&[Rejected(500), Page("10", "", &[])], "S !Rejected ~ L Init Done W(10)")]
#[case::busy_is_retried(&[Rejected(429), Rejected(429), Opened], "S !Rejected ~ S !Rejected ~ S")]
#[case::unavailable_is_retried(&[Refused, Refused, Opened], "S !Transport ~ S !Transport ~ S")]
#[case::an_undecodable_object_prevents_completion(
    &[Opened, Added("a", "7"), Poison, Opened, Added("a", "7"), Marker("9")],
    "S x !Undecodable ~ S Init +a Done"
)]
#[case::a_marker_without_version_is_ignored(
    &[Opened, Marker(""), Opened, Marker("9")],
    "S x !NoResourceVersion ~ S Init Done"
)]
fn a_streaming_list(#[case] steps: &[Do], #[case] expected: &str) {
    assert_eq!(Bench::play(streaming(), steps), expected);
}

#[rstest]
#[case::an_event(Error(410, ""), "S(0) Init Done S? x ~ S(>=50) x !Rejected ~ S")]
#[case::too_large(ErrorTooLarge, "S(0) Init Done S? x ~ S(>=50) x !Rejected ~ S")]
fn an_expired_streaming_list_is_retried_without_a_version(#[case] refusal: Do, #[case] expected: &str) {
    let config = Config {
        list_semantic: ListSemantic::Any,
        ..streaming()
    };
    let steps = [Opened, Marker("50"), Error(410, ""), Opened, refusal];
    assert_eq!(Bench::play(config, &steps), expected.replace(" S?", ""));
}

#[test]
fn after_a_partly_emitted_streaming_list_no_older_state_follows() {
    let config = Config {
        list_semantic: ListSemantic::Any,
        ..streaming()
    };
    let untold = [Opened, Added("a", "1"), Eof];
    assert_eq!(Bench::play(config.clone(), &untold), "S(0) ~ S(0)");
    let large = [
        Opened,
        Added("a", "1"),
        Added("b", "2"),
        Added("c", "3"),
        Added("d", "4"),
        Added("e", "5"),
        Eof,
    ];
    assert_eq!(Bench::play(config, &large), "S(0) Init +a +b +c +d +e ~ S");
}

#[test]
fn a_large_streaming_list_is_emitted_as_it_arrives_and_a_delete_causes_a_relist() {
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
fn answers_to_an_abandoned_request_are_dropped() {
    let mut bench = Bench::new(Config::default());
    for step in SYNC {
        bench.step(step);
    }
    let abandoned = bench.request;
    bench.step(Error(410, ""));
    let seen = bench.seen.clone();
    for answer in [
        changed(Change::Added, "z", "99"),
        ResponsePart::Eof,
        ResponsePart::Opened,
    ] {
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

mod lasting;
mod pace;
mod probing;
mod time;
