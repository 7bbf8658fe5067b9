//! Records of clients that write: which versions stand for which, and which requests are of the loop under test.

use std::path::Path;
use std::time::Duration;

use apimachinery::ObjectRef;
use rstest::rstest;
use trace::record::{ConnId, Replica, Side, StoreWrite, WriteOp};

use super::*;
use crate::parse;

fn scenario(part: &str) -> Scenario {
    let text = format!("scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\n{part}");
    parse("group/claim", Path::new("claim.yaml"), &text).unwrap()
}

/// Records of one client, in order.
#[derive(Default)]
struct Story(Vec<Record>);

impl Story {
    fn push(&mut self, what: What) -> &mut Self {
        let seq = self.0.len() as u64;
        let at = Duration::ZERO;
        self.0.push(Record { seq, at, what });
        self
    }

    fn read(
        &mut self,
        stream: u64,
        verb: Verb,
        path: &str,
        query: &[(&str, &str)],
        accept: &str,
    ) -> &mut Self {
        let own = |text: &&str| (*text).to_owned();
        self.push(What::Request {
            stream: StreamId(stream),
            conn: ConnId(1),
            verb,
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: query
                .iter()
                .map(|(name, value)| (own(name), own(value)))
                .collect(),
            accept: Some(accept.to_owned()),
            user_agent: None,
            replica: Replica::Primary,
            violations: Vec::new(),
        })
    }

    fn list(&mut self, stream: u64, version: &str) -> &mut Self {
        self.read(
            stream,
            Verb::List,
            "/api/v1/namespaces/default/configmaps",
            &[],
            "",
        );
        self.push(What::Page {
            stream: StreamId(stream),
            resource_version: version.to_owned(),
            continue_token: String::new(),
            remaining: None,
            items: Vec::new(),
            scripted: false,
        })
    }

    fn event(&mut self, stream: u64, version: &str) -> &mut Self {
        self.frame(stream, FrameType::Modified, Some(object(version)))
    }

    fn error(&mut self, stream: u64) -> &mut Self {
        let expired = FrameType::Error {
            code: 410,
            reason: "Expired".to_owned(),
        };
        self.frame(stream, expired, None)
    }

    fn frame(&mut self, stream: u64, kind: FrameType, object: Option<ObjectRef>) -> &mut Self {
        self.push(What::Frame {
            stream: StreamId(stream),
            frame: Frame {
                kind,
                object: object.map(std::sync::Arc::new),
                bytes: 9,
                sent: 9,
                scripted: false,
            },
        })
    }

    fn ended(&mut self, stream: u64, how: Ending) -> &mut Self {
        self.push(What::End {
            stream: StreamId(stream),
            how,
            by: Side::Server,
        })
    }

    /// A write at a version: of the client, or of a step.
    fn wrote(&mut self, version: &str, is_own: bool) -> &mut Self {
        self.push(What::Wrote(StoreWrite {
            resource: "leases".to_owned(),
            object: object(version),
            op: WriteOp::Update,
            selected: false,
            by: is_own.then_some(StreamId(900)),
            content: None,
        }))
    }
}

fn object(version: &str) -> ObjectRef {
    ObjectRef {
        key: "default/a".to_owned(),
        uid: "u".to_owned(),
        resource_version: version.to_owned(),
    }
}

#[rstest]
#[case::its_own_write_came_in_between("1003", |s: &mut Story| { s.list(1, "1002").wrote("1003", true).event(1, "1003"); }, true)]
#[case::a_list_after_its_own_writes("1005", |s: &mut Story| { s.wrote("1003", true).wrote("1005", true).list(1, "1005"); }, true)]
#[case::a_bookmark_after_its_own_write("1004", |s: &mut Story| { s.list(1, "1002").wrote("1003", true).event(1, "1004"); }, true)]
#[case::it_was_not_sent_that_version("1003", |s: &mut Story| { s.list(1, "1002").wrote("1003", true); }, false)]
#[case::a_step_wrote_it("1003", |s: &mut Story| { s.list(1, "1002").wrote("1003", false).event(1, "1003"); }, false)]
#[case::a_step_wrote_last("1004", |s: &mut Story| { s.list(1, "1002").wrote("1003", true).wrote("1004", false).event(1, "1004"); }, false)]
#[case::its_own_write_came_last("1004", |s: &mut Story| { s.list(1, "1002").wrote("1003", false).wrote("1004", true).event(1, "1004"); }, true)]
#[case::another_watch_was_sent_it("1003", |s: &mut Story| { s.list(1, "1002").wrote("1003", true).read(2, Verb::Watch, "/api/v1/secrets", &[], "").event(2, "1003"); }, false)]
#[case::its_write_was_before("1002", |s: &mut Story| { s.wrote("1001", true).list(1, "1002"); }, false)]
#[case::a_restore_undid_it("1003", |s: &mut Story| { s.list(1, "1002").wrote("1003", true).event(1, "1003").push(What::Restored { to: 1002 }); }, false)]
fn a_version_stands_for_an_expected_one(
    #[case] value: &str,
    #[case] tell: fn(&mut Story),
    #[case] stands_for: bool,
) {
    let mut story = Story::default();
    tell(&mut story);
    let view = ClientView::after(&scenario(""), &story.0);
    assert_eq!(view.resumes_at("1002", value, u64::MAX), stands_for);
}

const HERE: &str = "/api/v1/namespaces/default/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const FROM: &[(&str, &str)] = &[("resourceVersion", "9")];
const SELECTED: &[(&str, &str)] = &[("labelSelector", "a=b")];

#[rstest]
#[case::the_same_again("", Verb::List, HERE, &[], "", true)]
#[case::a_watch("", Verb::Watch, HERE, FROM, "", true)]
#[case::another_namespace("", Verb::List, "/api/v1/namespaces/kube-system/configmaps", &[], "", false)]
#[case::another_resource("", Verb::List, "/api/v1/namespaces/default/secrets", &[], "", false)]
#[case::every_namespace("", Verb::List, "/api/v1/configmaps", &[], "", false)]
#[case::another_selector("", Verb::List, HERE, SELECTED, "", false)]
#[case::another_representation("", Verb::List, HERE, &[], TABLE, false)]
#[case::a_watch_that_adds_a_selector("", Verb::Watch, HERE, &[("resourceVersion", "9"), ("labelSelector", "a=b")], "", true)]
#[case::a_selector_that_the_scenario_is_about(
    "client: {labels: \"a=b\"}\n",
    Verb::List,
    HERE,
    SELECTED,
    "",
    true
)]
#[case::every_namespace_is_the_target("target: {resource: configmaps, namespace: all}\n", Verb::List, HERE, &[], "", false)]
fn the_first_loop_that_reads_the_target_is_under_test(
    #[case] part: &str,
    #[case] verb: Verb,
    #[case] path: &str,
    #[case] query: &[(&str, &str)],
    #[case] accept: &str,
    #[case] is_of_loop: bool,
) {
    let scenario = scenario(part);
    let first = match scenario.target.namespace {
        Some(_) => HERE,
        None => "/api/v1/configmaps",
    };
    let mut story = Story::default();
    story
        .read(1, Verb::List, first, &[], "")
        .read(2, verb, path, query, accept);
    let view = ClientView::after(&scenario, &story.0);
    assert!(view.is_of_loop(StreamId(1)));
    assert_eq!(view.is_of_loop(StreamId(2)), is_of_loop);
}

/// A list while the loop had a watch, as seen by the judge.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Loop,
    Either,
    Poll,
}

const NEWEST: &[(&str, &str)] = &[("limit", "500")];
const OF_TWO: &[(&str, &str)] = &[("limit", "2")];
const NEXT_PAGE: &[(&str, &str)] = &[("limit", "500"), ("continue", "t")];

#[rstest]
#[case::another_page_size(|_: &mut Story| {}, OF_TWO, Seen::Poll)]
#[case::the_loop_s_own_query(|_: &mut Story| {}, NEWEST, Seen::Either)]
#[case::a_page_of_it(|_: &mut Story| {}, NEXT_PAGE, Seen::Either)]
#[case::the_watch_ended(|s: &mut Story| { s.ended(2, Ending::Eof); }, OF_TWO, Seen::Loop)]
#[case::the_watch_stalled(|s: &mut Story| { s.ended(2, Ending::Stall); }, OF_TWO, Seen::Loop)]
#[case::the_watch_sent_an_error(|s: &mut Story| { s.error(2); }, OF_TWO, Seen::Loop)]
fn a_list_beside_a_sound_watch_is_a_poll(
    #[case] tell: fn(&mut Story),
    #[case] query: &[(&str, &str)],
    #[case] expected: Seen,
) {
    let mut story = Story::default();
    story
        .read(1, Verb::List, HERE, NEWEST, "")
        .read(2, Verb::Watch, HERE, FROM, "")
        .push(What::Head {
            stream: StreamId(2),
            status: 200,
            retry_after: None,
            scripted: false,
        });
    tell(&mut story);
    story.read(3, Verb::List, HERE, query, "");
    let view = ClientView::after(&scenario(""), &story.0);
    let seen = match (view.is_of_loop(StreamId(3)), view.is_beside(StreamId(3))) {
        (true, false) => Seen::Loop,
        (true, true) => Seen::Either,
        (false, _) => Seen::Poll,
    };
    assert_eq!(seen, expected);
}
