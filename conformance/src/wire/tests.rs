//! Stories of clients, as records: what is found, when, and about whom.

use std::sync::Arc;

use fake_apiserver::fault::Ending;
use fake_apiserver::record::{Frame, FrameType, ObjectRef};
use rstest::rstest;

use super::*;

/// Appends what clients and server do, and lets the judge hear it.
struct Story {
    judge: WireJudge,
    seq: u64,
    at: Duration,
    streams: u64,
    found: Vec<String>,
}

impl Story {
    fn told(apart: Apart) -> Self {
        Self {
            judge: WireJudge::new(apart),
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
            method: "GET".to_owned(),
            path: "/api/v1/namespaces/default/pods".to_owned(),
            query: query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            accept: None,
            user_agent: Some(agent.to_owned()),
            door: Default::default(),
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

    /// A whole list at `version`.
    fn list(&mut self, agent: &str, conn: u64, version: &str) -> &mut Self {
        self.ask(agent, conn, Verb::List, &[]).head(200);
        let stream = StreamId(self.streams);
        self.push(What::Page {
            stream,
            resource_version: version.to_owned(),
            continue_token: String::new(),
            remaining: None,
            items: Vec::new(),
            scripted: false,
        })
        .eof()
    }

    fn watch(&mut self, agent: &str, conn: u64, from: &str) -> &mut Self {
        let query = [("watch", "1"), ("resourceVersion", from)];
        self.ask(agent, conn, Verb::Watch, &query).head(200)
    }

    fn modified(&mut self, version: u64) -> &mut Self {
        let stream = StreamId(self.streams);
        self.push(What::Frame {
            stream,
            frame: Frame {
                kind: FrameType::Modified,
                object: Some(Arc::new(ObjectRef {
                    key: "default/a".to_owned(),
                    uid: "u".to_owned(),
                    resource_version: version.to_string(),
                })),
                bytes: 100,
                sent: 100,
                scripted: false,
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

#[rstest]
#[case::as_it_should(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "11"); })]
#[case::goes_back(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "10"); })]
#[case::makes_a_version_up(&["k INV-01"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "77"); })]
#[case::watches_without_a_list(&["k INV-03"], |s: &mut Story| { s.watch("k", 1, "10"); })]
#[case::rewinds(&["k INV-05"], |s: &mut Story| { s.list("k", 1, "10").ask("k", 1, Verb::List, &[("resourceVersion", "0")]); })]
#[case::starts_anew_as_another_process(&[], |s: &mut Story| { s.list("k", 1, "10").gone(1, Side::Client).ask("k", 2, Verb::List, &[("resourceVersion", "0")]); })]
#[case::was_cut_off_and_rewinds(&["k INV-05"], |s: &mut Story| { s.list("k", 1, "10").gone(1, Side::Server).ask("k", 2, Verb::List, &[("resourceVersion", "0")]); })]
#[case::two_watches_on_one_connection_without_a_list_between(&["k INV-17"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").watch("k", 1, "10").after(3000); })]
#[case::two_watches_of_one_list(&["k INV-17"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").watch("k", 2, "10").after(3000); })]
#[case::two_processes_of_one_name(&[], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").list("k", 2, "10").watch("k", 2, "10").after(3000); })]
#[case::two_processes_that_begin_together(&[], |s: &mut Story| { s.list("k", 1, "10").list("k", 2, "10").watch("k", 1, "10").watch("k", 2, "10").after(3000); })]
#[case::two_names(&["a INV-02"], |s: &mut Story| { s.list("a", 1, "10").list("b", 2, "10").watch("b", 2, "10").eof().watch("a", 1, "10").modified(11).eof().watch("b", 2, "10").eof().watch("a", 1, "10"); })]
#[case::found_once(&["k INV-02"], |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10").modified(11).eof().watch("k", 1, "10").after(5000).eof(); })]
fn what_a_story_proves(#[case] expected: &[&str], #[case] tell: fn(&mut Story)) {
    let mut story = Story::told(Apart::ByConnections);
    tell(&mut story);
    assert_eq!(story.found, expected);
}

#[test]
fn requests_after_the_stop_are_found() {
    let mut story = Story::told(Apart::ByAgent);
    story
        .list("k", 1, "10")
        .watch("k", 1, "10")
        .push(What::StopRequested);
    story.after(500).eof().watch("k", 1, "10").eof().after(3000);
    assert_eq!(story.found, ["k INV-18"]);
}

#[test]
fn a_failing_client_may_not_spin() {
    let mut story = Story::told(Apart::ByConnections);
    for _ in 0..200 {
        story.after(10).ask("k", 1, Verb::List, &[]).head(500).eof();
    }
    assert_eq!(story.found, ["k INV-16"], "once, not for each request");
}

#[test]
fn what_was_forgotten_accuses_nobody() {
    let mut story = Story::told(Apart::ByConnections);
    story.list("k", 1, "10").watch("k", 1, "10");
    for version in 11..20_000 {
        story.modified(version);
    }
    // It was sent 12, though nobody remembers.
    story.eof().watch("k", 1, "12");
    assert_eq!(story.found, Vec::<String>::new());
    story.eof().watch("k", 1, "19999").modified(20_000).eof();
    story.watch("k", 1, "19999");
    assert_eq!(story.found, ["k INV-02"], "what it remembers still counts");
}

/// Whoever comes is somebody else, and leaves after a while.
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
#[case::a_watch_that_lasts(SHARE_MAX, |s: &mut Story| { s.list("k", 1, "10").watch("k", 1, "10"); for version in 11..50_000 { s.modified(version); } })]
fn a_judge_remembers_only_so_much(#[case] bound: usize, #[case] tell: fn(&mut Story)) {
    let mut story = Story::told(Apart::ByConnections);
    tell(&mut story);
    let held: usize = story.judge.windows.values().map(Window::held).sum();
    assert_eq!(held, story.judge.held, "what it thinks it holds");
    assert!(
        held <= bound,
        "{held} records of {} loops",
        story.judge.windows.len()
    );
}

#[test]
fn a_client_that_was_forgotten_may_go_on_from_what_it_read() {
    let mut story = Story::told(Apart::ByConnections);
    story.list("k", 0, "5000").gone(0, Side::Server);
    passing_clients(&mut story, 1..3_000);
    assert!(!story.judge.clients.is_partly_forgotten("other"));
    story.watch("k", 3_000, "5000").eof();
    assert_eq!(story.found, Vec::<String>::new());
    story.watch("other", 3_001, "5000");
    assert_eq!(story.found, ["other INV-03"], "a stranger has no excuse");
}

#[test]
fn the_verdict_names_every_client() {
    let mut story = Story::told(Apart::ByConnections);
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
