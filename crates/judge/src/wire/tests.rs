//! Sequences of client actions as records: which violations are found, when, and for which client.

use std::sync::Arc;

use ::trace::fault::Ending;
use ::trace::record::{Frame, FrameType, ObjectRef, StoreWrite, WriteOp};
use rstest::rstest;

use super::*;

/// Appends actions of clients and server, and passes the records to the judge.
struct Story {
    judge: WireJudge,
    seq: u64,
    at: Duration,
    streams: u64,
    found: Vec<String>,
}

impl Story {
    fn new(loops: Loops) -> Self {
        Self {
            judge: WireJudge::new(loops),
            seq: 0,
            at: Duration::ZERO,
            streams: 0,
            found: Vec::new(),
        }
    }

    fn push(&mut self, what: What) -> &mut Self {
        let record = Record {
            seq: self.seq,
            at: self.at,
            what,
        };
        self.seq += 1;
        let found = self.judge.take(&record);
        self.note(&found);
        self
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.at += Duration::from_millis(ms);
        let found = self.judge.pass_time(self.at);
        self.note(&found);
        self
    }

    fn note(&mut self, found: &[Violation]) {
        let words = found
            .iter()
            .map(|found| format!("{} {}", found.client, found.found.check));
        self.found.extend(words);
    }

    fn ask(&mut self, agent: &str, conn: u64, verb: Verb, query: &[(&str, &str)]) -> &mut Self {
        self.streams += 1;
        let stream = StreamId(self.streams);
        self.push(What::Request {
            stream,
            conn: ConnId(conn),
            verb,
            method: if verb == Verb::Other { "PUT" } else { "GET" }.to_owned(),
            path: "/api/v1/namespaces/default/pods".to_owned(),
            query: query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            accept: None,
            user_agent: (!agent.is_empty()).then(|| agent.to_owned()),
            replica: Default::default(),
            violations: Vec::new(),
        })
    }

    fn head(&mut self, status: u16) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::Head {
            stream,
            status,
            retry_after: None,
            scripted: false,
        })
    }

    /// A complete list at `version`.
    fn list(&mut self, agent: &str, conn: u64, version: &str) -> &mut Self {
        self.list_at(agent, conn, &[], version)
    }

    fn list_at(&mut self, agent: &str, conn: u64, query: &[(&str, &str)], version: &str) -> &mut Self {
        self.ask(agent, conn, Verb::List, query).head(200);
        self.paged(version, "").eof()
    }

    /// A page of a list at 10 on connection 1.
    fn page(&mut self, agent: &str, query: &[(&str, &str)], token: &str) -> &mut Self {
        self.ask(agent, 1, Verb::List, query).head(200);
        self.paged("10", token).eof()
    }

    fn paged(&mut self, version: &str, token: &str) -> &mut Self {
        self.paged_as(version, token, false)
    }

    fn paged_as(&mut self, version: &str, token: &str, scripted: bool) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::Page {
            stream,
            resource_version: version.to_owned(),
            continue_token: token.to_owned(),
            remaining: None,
            items: Vec::new(),
            scripted,
        })
    }

    /// A Status without a token.
    fn body(&mut self) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::Body {
            stream,
            bytes: 100,
            reason: Some("Expired".to_owned()),
            message: None,
            continue_token: None,
        })
    }

    /// A 410 as last line of a watch.
    fn expired(&mut self) -> &mut Self {
        let kind = FrameType::Error {
            code: 410,
            reason: "Expired".to_owned(),
        };
        self.line(kind, None).eof()
    }

    fn throttled(&mut self, seconds: u64) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::Head {
            stream,
            status: 429,
            retry_after: Some(seconds.to_string()),
            scripted: false,
        })
        .eof()
    }

    /// A streaming list up to its marker, which stays open.
    fn streaming_list(&mut self, agent: &str, conn: u64, version: &str) -> &mut Self {
        let query = [("watch", "1"), ("sendInitialEvents", "true")];
        let kind = FrameType::Bookmark {
            initial_events_end: Some("true".to_owned()),
        };
        self.ask(agent, conn, Verb::WatchList, &query)
            .head(200)
            .line(kind, Some(version))
    }

    /// A write with its response.
    fn put(&mut self, agent: &str, conn: u64, key: &str, version: &str) -> &mut Self {
        self.ask(agent, conn, Verb::Other, &[]);
        self.wrote(key, version).head(200).eof()
    }

    fn wrote(&mut self, key: &str, version: &str) -> &mut Self {
        self.push(What::Wrote(StoreWrite {
            resource: "pods".to_owned(),
            object: ObjectRef {
                key: key.to_owned(),
                uid: "u".to_owned(),
                resource_version: version.to_owned(),
            },
            op: WriteOp::Update,
            selected: true,
            by: None,
            content: None,
        }))
    }

    fn watch(&mut self, agent: &str, conn: u64, from: &str) -> &mut Self {
        let query = [("watch", "1"), ("resourceVersion", from)];
        self.ask(agent, conn, Verb::Watch, &query).head(200)
    }

    fn modified(&mut self, version: u64) -> &mut Self {
        self.line(FrameType::Modified, Some(&version.to_string()))
    }

    /// An event that the script sends.
    fn scripted(&mut self, version: &str) -> &mut Self {
        self.line_as(FrameType::Modified, Some(version), true)
    }

    fn line(&mut self, kind: FrameType, version: Option<&str>) -> &mut Self {
        self.line_as(kind, version, false)
    }

    fn line_as(&mut self, kind: FrameType, version: Option<&str>, scripted: bool) -> &mut Self {
        let stream = StreamId(self.streams);
        let object = version.map(|version| {
            Arc::new(ObjectRef {
                key: "default/a".to_owned(),
                uid: "u".to_owned(),
                resource_version: version.to_owned(),
            })
        });
        self.push(What::Frame {
            stream,
            frame: Frame {
                kind,
                object,
                bytes: 100,
                sent: 100,
                scripted,
            },
        })
    }

    fn eof(&mut self) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::End {
            stream,
            how: Ending::Eof,
            by: Side::Server,
        })
    }

    fn gone(&mut self, conn: u64, by: Side) -> &mut Self {
        self.push(What::Disconnected {
            conn: ConnId(conn),
            by,
        })
    }
}

/// Two loops of one name that received the same.
fn two_loops(story: &mut Story) -> &mut Story {
    for conn in 1..=2 {
        story.list("k", conn, "10").watch("k", conn, "10").modified(11);
    }
    story
}

#[rstest]
#[case::as_it_should(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "11"); })]
#[case::goes_back(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "10"); })]
#[case::goes_back_after_a_scripted_page(&[], |s: &mut Story| { s.ask("k", 1, Verb::List, &[]).head(200).paged_as("10", "", true).eof().watch("k", 1, "10").modified(11).eof().watch("k", 1, "10"); })]
#[case::invents_a_version(&["k INV-01"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "77"); })]
#[case::watches_without_a_list(&["k INV-03"], |s: &mut Story| { s.watch("k", 1, "10"); })]
#[case::polls_the_cache(&[], |s: &mut Story| { s.list("k", 1, "10").ask("k", 1, Verb::List, &[("resourceVersion", "0")]); })]
#[case::rewinds_after_410(&["k INV-05"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired().list_at("k", 1, &[("resourceVersion", "0")], "12").watch("k", 1, "12"); })]
#[case::begins_from_zero_as_another_loop_does(&[], |s: &mut Story| { s.list_at("k", 1, &[("resourceVersion", "0")], "10").watch("k", 1, "10").expired().list_at("k", 1, &[("resourceVersion", "0")], "12").watch("k", 1, "12"); })]
#[case::another_process_starts_from_zero(&[], |s: &mut Story| { s.list("k", 1, "10").gone(1, Side::Client).ask("k", 2, Verb::List, &[("resourceVersion", "0")]); })]
#[case::was_cut_off_and_another_starts_from_zero(&[], |s: &mut Story| { s.list("k", 1, "10").gone(1, Side::Server).ask("k", 2, Verb::List, &[("resourceVersion", "0")]); })]
#[case::two_watches_on_one_connection_without_a_list_between(&["k INV-17"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").watch("k", 1, "10").after(3000); })]
#[case::two_watches_of_one_list(&["k INV-17"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").watch("k", 2, "10").after(3000); })]
#[case::two_processes_of_one_name(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").list("k", 2, "10").watch("k", 2, "10").after(3000); })]
#[case::two_processes_that_begin_together(&[], |s: &mut Story| { s.list("k", 1, "10").list("k", 2, "10").watch("k", 1, "10").watch("k", 2, "10").after(3000); })]
#[case::two_names(&["a INV-02"], |s: &mut Story| { s.list("a", 1, "10").list("b", 2, "12").watch("b", 2, "12").eof().watch("a", 1, "10").modified(11).eof().watch("b", 2, "12").eof().watch("a", 1, "10"); })]
#[case::two_names_of_which_one_is_where_the_other_was(&[], |s: &mut Story| { s.list("a", 1, "10").list("b", 2, "10").watch("b", 2, "10").eof().watch("a", 1, "10").modified(11).eof().watch("b", 2, "10").eof().watch("a", 1, "10"); })]
#[case::lists_under_one_name_and_watches_under_another(&[], |s: &mut Story| { s.list("client", 1, "10").watch("undici", 2, "10").modified(11).eof().watch("undici", 3, "11").expired().list("client", 1, "15").watch("undici", 4, "15").after(3000); })]
#[case::changes_its_name_with_every_request(&[], |s: &mut Story| { s.list("a", 1, "10").watch("b", 2, "10").modified(11).eof().watch("c", 3, "11").modified(12).gone(3, Side::Server).watch("d", 4, "12").after(3000); })]
#[case::leaves_its_name_out_of_one_request(&[], |s: &mut Story| { s.list("a", 1, "10").watch("", 2, "10").modified(11).eof().watch("a", 3, "11").after(3000); })]
#[case::reads_pages_under_other_names(&[], |s: &mut Story| { s.page("a", &[("limit", "1")], "t1").page("b", &[("limit", "1"), ("continue", "t1")], "t2").page("c", &[("limit", "1"), ("continue", "t2")], "").watch("d", 1, "10").after(3000); })]
#[case::changes_its_name_and_invents_a_version(&["b INV-03"], |s: &mut Story| { s.list("a", 1, "10").watch("b", 2, "77").after(3000); })]
#[case::gives_a_watch_up_under_another_name(&[], |s: &mut Story| { s.list("a", 1, "10").watch("a", 1, "10").modified(11).watch("b", 2, "11").after(1000).gone(1, Side::Client).after(3000); })]
#[case::two_loops_are_cut_and_resume(&[], |s: &mut Story| { two_loops(s).gone(1, Side::Server).gone(2, Side::Server).watch("k", 3, "11").watch("k", 4, "11").after(3000); })]
#[case::a_third_that_had_no_set(&["k INV-17"], |s: &mut Story| { two_loops(s).gone(1, Side::Server).gone(2, Side::Server).watch("k", 3, "11").watch("k", 4, "11").watch("k", 5, "11").after(3000); })]
#[case::two_loops_on_one_connection(&[], |s: &mut Story| { s.list("k", 1, "10").list("k", 1, "10").watch("k", 1, "10").watch("k", 1, "10").after(3000); })]
#[case::one_of_two_loops_goes_back(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().list("k", 2, "12").watch("k", 2, "12").modified(13).eof().watch("k", 2, "12").after(3000); })]
#[case::both_may_have_received_410(&[], |s: &mut Story| { s.list("k", 1, "10").list("k", 2, "10").watch("k", 1, "10").expired().watch("k", 2, "10").expired(); })]
#[case::only_one_can_have_received_410(&["k INV-04"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired().watch("k", 1, "10"); })]
#[case::was_giving_up_when_410_came(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").after(5000).expired().after(900).watch("k", 1, "10"); })]
#[case::was_giving_up_when_an_event_came(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").after(5000).modified(11).eof().after(900).watch("k", 1, "10"); })]
#[case::ignores_an_event_behind_a_late_one(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").after(5000).modified(11).after(1).modified(12).eof().after(900).watch("k", 1, "10"); })]
#[case::rejected_an_event_before_410(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").scripted("11").expired().after(900).watch("k", 1, "10"); })]
#[case::rejected_an_event_of_another_kind_before_410(&[], |s: &mut Story| { s.ask("k", 1, Verb::List, &[]).head(200).paged_as("10", "", true).eof().watch("k", 1, "10").modified(11).expired().after(900).watch("k", 1, "10"); })]
#[case::ignores_410_long_after_a_scripted_event(&["k INV-04"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").scripted("11").after(100).expired().after(900).watch("k", 1, "10"); })]
#[case::reads_no_410_behind_a_refusal(&[], |s: &mut Story| { s.list("k", 1, "10").ask("k", 1, Verb::Watch, &[("watch", "1"), ("resourceVersion", "10")]).head(500).expired().after(900).watch("k", 1, "10"); })]
#[case::was_giving_up_when_head_and_410_came_twice(&[], |s: &mut Story| { s.list("k", 1, "10"); for _ in 0..2 { s.ask("k", 1, Verb::Watch, &[("watch", "1"), ("resourceVersion", "10")]).after(5000).head(200).expired().after(900); } s.watch("k", 1, "10"); })]
#[case::ignores_410_behind_a_late_head(&["k INV-04"], |s: &mut Story| { s.list("k", 1, "10").ask("k", 1, Verb::Watch, &[("watch", "1"), ("resourceVersion", "10")]).after(5000).head(200).after(200).expired().after(900).watch("k", 1, "10"); })]
#[case::ignores_410_though_it_comes_again(&["k INV-04"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").after(5000).expired().after(900).watch("k", 1, "10").expired().after(900).watch("k", 1, "10"); })]
#[case::lists_are_torn_at_the_dead_version(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired(); for _ in 0..4 { s.after(900).ask("k", 1, Verb::List, &[("resourceVersion", "10")]).head(200); let stream = StreamId(s.streams); s.push(What::Torn { stream, sent: 1, bytes: 9 }); s.push(What::End { stream, how: Ending::Rst, by: Side::Server }); } s.list_at("k", 1, &[("resourceVersion", "10")], "12").watch("k", 1, "12"); })]
#[case::ends_no_list_at_the_dead_version(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired(); for _ in 0..4 { s.after(2000).ask("k", 1, Verb::List, &[("resourceVersion", "10")]).head(200).paged("10", ""); let stream = StreamId(s.streams); s.push(What::End { stream, how: Ending::Fin, by: Side::Server }); } })]
#[case::gets_past_the_dead_version_but_not_on(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired(); for _ in 0..4 { s.after(2000).list_at("k", 1, &[("resourceVersion", "10")], "12"); } })]
#[case::finishes_no_list_at_the_dead_version(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired(); for token in ["t", "u", "v", "w"] { s.after(2000).ask("k", 1, Verb::List, &[("limit", "1"), ("resourceVersion", "10")]).head(200).paged("10", token).eof().ask("k", 1, Verb::List, &[("limit", "1"), ("continue", token)]).head(410).body().eof(); } })]
#[case::lists_again_and_again_at_the_dead_version(&["k INV-04"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired(); for _ in 0..3 { s.after(900).list_at("k", 1, &[("resourceVersion", "10")], "10"); } })]
#[case::gives_a_watch_up_and_keeps_it(&["k INV-17"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).watch("k", 2, "11").after(3000); })]
#[case::gives_a_watch_up_and_closes_it_late(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).watch("k", 2, "11").after(1000).gone(1, Side::Client).after(3000); })]
#[case::watches_from_its_own_write(&[], |s: &mut Story| { s.put("k", 1, "default/a", "15").watch("k", 1, "15").after(3000); })]
#[case::watches_from_the_write_of_another(&["k INV-03"], |s: &mut Story| { s.put("other", 2, "default/a", "15").watch("k", 1, "15").after(3000); })]
#[case::watches_from_nothing_and_resumes(&[], |s: &mut Story| { s.ask("k", 1, Verb::Watch, &[("watch", "1")]).head(200).modified(11).eof().watch("k", 1, "11"); })]
#[case::several_watches_from_nothing(&[], |s: &mut Story| { for conn in 1..4 { s.ask("k", conn, Verb::Watch, &[("watch", "1")]).head(200).modified(11); } s.after(3000).gone(1, Side::Server).watch("k", 5, "11").after(3000); })]
#[case::a_part_of_a_wider_list(&[], |s: &mut Story| { s.list("k", 1, "10").ask("k", 1, Verb::Watch, &[("watch", "1"), ("resourceVersion", "10"), ("fieldSelector", "metadata.name=a"), ("labelSelector", "a=b")]).head(200).after(3000); })]
#[case::more_than_was_listed(&["k INV-03"], |s: &mut Story| { s.list_at("k", 1, &[("labelSelector", "a=b")], "10").watch("k", 1, "10"); })]
#[case::the_marker_of_a_long_stream_is_forgotten(&[], |s: &mut Story| { s.streaming_list("k", 1, "10"); for version in 11..6_000 { s.modified(version); } s.eof().watch("k", 1, "5999").after(3000); })]
#[case::polls_a_list_twice_a_second(&[], |s: &mut Story| { for _ in 0..200 { s.after(500).list("k", 1, "10"); } })]
#[case::closes_its_own_watches(&[], |s: &mut Story| { for conn in 0..2_000 { s.after(20).list("k", conn, "10").watch("k", conn, "10").gone(conn, Side::Client); } })]
#[case::a_token_is_sent_again(&[], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("limit", "1"), ("continue", "t1")], "t2").page("k", &[("limit", "1"), ("continue", "t1")], "t2"); })]
#[case::a_token_nobody_gave(&["k INV-22"], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("limit", "1"), ("continue", "t9")], ""); })]
#[case::a_refused_token_again(&["k INV-22"], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").ask("k", 1, Verb::List, &[("limit", "1"), ("continue", "t1")]).head(410).body().eof().ask("k", 1, Verb::List, &[("limit", "1"), ("continue", "t1")]); })]
#[case::two_that_were_given_it_are_refused(&[], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("limit", "1")], "t1"); for _ in 0..2 { s.ask("k", 1, Verb::List, &[("limit", "1"), ("continue", "t1")]).head(410).body().eof(); } })]
#[case::lists_of_other_limits_meet_at_one_token(&[], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("limit", "2")], "t2").page("k", &[("limit", "1"), ("continue", "t1")], "t2").page("k", &[("limit", "1"), ("continue", "t2")], "t3").page("k", &[("limit", "1"), ("continue", "t3")], "").watch("k", 1, "10"); })]
#[case::reads_a_set_again_by_a_streaming_list(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").list("k", 2, "12").watch("k", 2, "12"); s.streams = 2; s.expired().ask("k", 1, Verb::WatchList, &[("watch", "1"), ("sendInitialEvents", "true"), ("resourceVersion", "10")]); s.streams = 5; s.head(200).after(3000); })]
#[case::a_streaming_list_from_a_version_nobody_gave(&["k INV-01"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").expired().ask("k", 1, Verb::WatchList, &[("watch", "1"), ("sendInitialEvents", "true"), ("resourceVersion", "77")]).head(200).after(3000); })]
#[case::reads_the_rest_without_a_limit(&[], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("continue", "t1")], ""); })]
#[case::watches_from_pages_without_the_limit(&["k INV-22"], |s: &mut Story| { s.page("k", &[("limit", "1")], "t1").page("k", &[("continue", "t1")], "").watch("k", 1, "10"); })]
#[case::comes_back_too_soon(&["k INV-16"], |s: &mut Story| { s.ask("k", 1, Verb::List, &[]).throttled(5).after(1000).list("k", 1, "10").watch("k", 1, "10").after(90_000).after(90_000); })]
#[case::another_comes_while_one_waits(&[], |s: &mut Story| { s.ask("k", 1, Verb::List, &[]).throttled(5).after(1000).list("k", 2, "10").watch("k", 2, "10").after(5000).list("k", 1, "10").watch("k", 1, "10").after(90_000).after(90_000); })]
#[case::found_once(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "10").after(5000).eof(); })]
fn violations_found_on_the_wire(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::Many);
    tell(&mut story);
    assert_eq!(story.found, expected);
}

/// A watch without a version starts with the state, as ADDED events; one of an object that was created since is a change.
#[rstest]
#[case::resumes_from_a_new_object(&[], |s: &mut Story| { s.eof().watch("k", 1, "13").after(5000); })]
#[case::resumes_from_it_after_an_expiry(&[], |s: &mut Story| { s.expired().watch("k", 1, "13").after(5000); })]
#[case::resumes_from_the_state(&["k INV-01"], |s: &mut Story| { s.eof().watch("k", 1, "11").after(5000); })]
fn an_object_created_since_is_no_part_of_the_state(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::One);
    story.wrote("default/a", "12");
    story.ask("k", 1, Verb::Watch, &[("watch", "1")]).head(200);
    story.line(FrameType::Added, Some("11"));
    story.wrote("default/b", "13").line(FrameType::Added, Some("13"));
    tell(&mut story);
    assert_eq!(story.found, expected);
}

/// A client that the harness started is one client, whatever its requests are called.
#[rstest]
#[case::is_right(&[], |s: &mut Story| { s.list("client", 1, "10").watch("undici", 2, "10").modified(11).eof().watch("", 3, "11").after(3000); })]
#[case::goes_back(&["client INV-02"], |s: &mut Story| { s.list("client", 1, "10").watch("undici", 2, "10").modified(11).eof().watch("undici", 3, "10").after(3000); })]
fn names_of_one_client_are_one(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::One);
    tell(&mut story);
    assert_eq!(story.found, expected);
}

#[test]
fn requests_after_the_stop_are_found() {
    let mut story = Story::new(Loops::One);
    story
        .list("k", 1, "10")
        .watch("k", 1, "10")
        .push(What::StopRequested);
    story.after(500).eof().watch("k", 1, "10").eof().after(3000);
    assert_eq!(story.found, ["k INV-18"]);
}

#[rstest]
#[case::started_for_this(Loops::One, 200, &["k INV-16"])]
#[case::of_many_that_may_hide_behind_the_name(Loops::Many, 200, &[])]
#[case::that_no_crowd_explains(Loops::Many, 1_200, &["k INV-16"])]
fn a_failing_client_may_not_spin(#[case] loops: Loops, #[case] requests: usize, #[case] expected: &[&str]) {
    let mut story = Story::new(loops);
    for _ in 0..requests {
        story.after(10).ask("k", 1, Verb::List, &[]).head(500).eof();
    }
    assert_eq!(story.found, expected, "once, not for each request");
}

#[test]
fn memory_per_loop_is_constant() {
    let mut story = Story::new(Loops::Many);
    for conn in 0..5_000 {
        story.list("k", conn, "10");
    }
    for conn in 0..5_000 {
        story.watch("k", conn, "10");
    }
    story.after(3_000);
    assert_eq!(story.found, Vec::<String>::new());
    let there = story.judge.readers.values().next().expect("it read");
    assert_eq!(there.ledger.loops(), 5_000);
}

/// Memory does not grow with clients that come and go.
#[test]
fn dropped_resume_points_still_explain_requests() {
    let mut story = Story::new(Loops::Many);
    for version in 10..1_000 {
        story.list("k", 1, &version.to_string());
    }
    story.watch("k", 1, "10").eof().watch("k", 1, "5").eof();
    assert_eq!(story.found, Vec::<String>::new());
}

#[test]
fn dropped_records_cause_no_violations() {
    let mut story = Story::new(Loops::Many);
    story.list("k", 1, "10").watch("k", 1, "10");
    for version in 11..20_000 {
        story.modified(version);
    }
    // It received 12, although that was forgotten.
    story.eof().watch("k", 1, "12");
    assert_eq!(story.found, Vec::<String>::new());
    story.eof().watch("k", 1, "19999").modified(20_000).eof();
    story.watch("k", 1, "19999");
    assert_eq!(story.found, ["k INV-02"], "what it remembers still counts");
}

/// Short-lived clients, each with a new name.
fn passing_clients(story: &mut Story, numbers: std::ops::Range<u64>) {
    for conn in numbers {
        story.after(100).list("k", conn, "10").watch("k", conn, "10");
        for version in 11..111 {
            story.modified(version);
        }
        story.eof().gone(conn, Side::Client);
    }
}

#[rstest]
#[case::clients_that_come_and_go(RECORDS_MAX, |s: &mut Story| passing_clients(s, 0..4_000))]
#[case::a_client_that_never_gets_a_list(10 * SHARE_MAX, |s: &mut Story| for _ in 0..20_000 { s.after(50).ask("k", 1, Verb::List, &[("resourceVersion", "5")]).head(410).eof(); })]
#[case::requests_with_long_texts(RECORDS_MAX, |s: &mut Story| { let long = "x".repeat(4_096); for conn in 0..2_000 { let query: Vec<(&str, &str)> = vec![("labelSelector", &long); 20]; s.ask(&format!("k{}", conn % 500), conn, Verb::List, &query); } })]
#[case::watches_that_stay_open(RECORDS_MAX, |s: &mut Story| for conn in 0..12_000 { let selector = format!("a={conn}"); s.list_at("k", conn, &[("labelSelector", &selector)], "10").ask("k", conn, Verb::Watch, &[("labelSelector", &selector), ("resourceVersion", "10")]).head(200); for version in 11..40 { s.modified(version); } })]
#[case::a_watch_that_lasts(SHARE_MAX + SHARE_MAX / 4, |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10"); for version in 11..50_000 { s.modified(version); } })]
fn the_judges_memory_is_bounded(#[case] bound: usize, #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::Many);
    tell(&mut story);
    let held: usize = story
        .judge
        .readers
        .values()
        .map(|there| there.window.held() + there.ledger.held())
        .sum();
    assert_eq!(held, story.judge.held, "what it thinks it holds");
    assert!(story.judge.bytes() <= BYTES_MAX + BYTES_MAX / 8);
    assert!(
        held <= bound,
        "{held} records of {} loops",
        story.judge.readers.len()
    );
}

#[test]
fn a_dropped_client_may_resume_from_what_it_read() {
    let mut story = Story::new(Loops::Many);
    story.list("k", 0, "5000").gone(0, Side::Server);
    story.judge.forget(1);
    story.watch("k", 3_000, "5000").eof();
    assert_eq!(story.found, Vec::<String>::new());
    story.watch("other", 3_001, "5001");
    assert_eq!(story.found, ["other INV-03"], "nobody was sent that version");
}

/// Its watch continues to versions that are not tracked.
#[test]
fn a_client_dropped_during_a_watch_may_resume_from_anywhere() {
    let mut story = Story::new(Loops::Many);
    story.list("k", 0, "10").watch("k", 0, "10");
    story.judge.forget(1);
    story
        .modified(11)
        .modified(12)
        .eof()
        .watch("k", 0, "12")
        .after(3_000);
    assert_eq!(story.found, Vec::<String>::new());
}

#[test]
fn a_record_takes_no_more_memory_than_counted() {
    assert!(size_of::<Record>() <= window::RECORD_BYTES);
}

#[test]
fn the_verdict_lists_every_client() {
    let mut story = Story::new(Loops::Many);
    story.list("good/1", 1, "10").watch("good/1", 1, "10");
    story.list("bad/1", 2, "10").watch("bad/1", 2, "77");
    let verdict = story.judge.verdict();
    assert_eq!(verdict.outcome, "mismatch");
    let told: Vec<(&str, u64, usize)> = verdict
        .clients
        .iter()
        .map(|client| (&*client.client, client.reads, client.contradictions.len()))
        .collect();
    assert_eq!(told, [("bad/1", 2, 1), ("good/1", 2, 0)]);
    let bad = &verdict.clients[0].contradictions[0];
    insta::assert_snapshot!(bad.found.sentence, @"the client watched from 77 at 0.000s, a version the server never sent; it could resume only from 10");
    insta::assert_snapshot!(bad.proof, @"0.000s client > #4 c2 WATCH /api/v1/namespaces/default/pods?watch=1&resourceVersion=77");
}

/// All are judged together, because a client that reconnects has another port.
#[test]
fn a_client_without_a_user_agent_is_identified_by_its_port() {
    let mut story = Story::new(Loops::Many);
    for (conn, port) in [(1, 40_001), (2, 40_002)] {
        story.push(What::Connected {
            conn: ConnId(conn),
            replica: Default::default(),
            peer: Some(port),
        });
    }
    story.list("", 1, "10").gone(1, Side::Server).watch("", 2, "77");
    story
        .list("named/1", 2, "10")
        .watch("named/1", 2, "77")
        .after(3_000);
    let verdict = story.judge.verdict();
    let ports: Vec<_> = verdict
        .clients
        .iter()
        .flat_map(|client| &client.contradictions)
        .map(|told| (&*told.client, told.port))
        .collect();
    assert_eq!(ports, [("(no User-Agent)", Some(40_002)), ("named/1", None)]);
}

/// A new process has no loops, and may have stored a version that the last one received.
#[rstest]
#[case::a_list_from_zero(&[], |s: &mut Story| { s.ask("k", 2, Verb::List, &[("resourceVersion", "0")]); })]
#[case::its_own_list(&[], |s: &mut Story| { s.list("k", 2, "12").watch("k", 2, "12").after(5000); })]
#[case::a_stored_version(&[], |s: &mut Story| { s.watch("k", 2, "10").after(5000); })]
#[case::a_version_of_nowhere(&["k INV-03"], |s: &mut Story| { s.watch("k", 2, "99").after(5000); })]
#[case::an_older_version_than_its_list(&["k INV-01"], |s: &mut Story| {
    s.list("k", 2, "12").watch("k", 2, "10").after(5000);
})]
fn a_restarted_client_starts_from_nothing(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::One);
    story.list("k", 1, "10").watch("k", 1, "10").after(5000);
    story.push(What::ClientExited {
        code: Some(1),
        signal: None,
    });
    story.push(What::ClientRestarted { restart: 1 });
    tell(&mut story);
    assert_eq!(story.found, expected);
}

/// The server began as another one at 20: a client may go on where it was there.
#[rstest]
#[case::its_version(&[], |s: &mut Story| { s.watch("k", 1, "20").after(5000); })]
#[case::its_list(&[], |s: &mut Story| { s.page("k", &[("limit", "2"), ("continue", &token(20))], "").watch("k", 1, "10").after(5000); })]
#[case::a_version_of_nowhere(&["k INV-03"], |s: &mut Story| { s.watch("k", 1, "21").after(5000); })]
#[case::a_list_of_nowhere(&["k INV-22"], |s: &mut Story| { s.page("k", &[("limit", "2"), ("continue", &token(21))], ""); })]
#[case::an_older_version_than_its_list(&["k INV-01"], |s: &mut Story| { s.list("k", 1, "20").watch("k", 1, "19").after(5000); })]
fn a_client_of_the_server_before_goes_on(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::new(Loops::Many);
    story.judge = WireJudge::new(Loops::Many).resuming_from(20);
    tell(&mut story);
    assert_eq!(story.found, expected);
}

fn token(revision: u64) -> String {
    ContinueToken::after(revision, "a", true).encode()
}
