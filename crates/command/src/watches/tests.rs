//! The watches of traces that are written here: what they are behind by, when they end, and that memory is bounded.

use fake_apiserver::record::{ObjectRef, Side, StoreWrite, What, WriteOp};
use rstest::rstest;

use super::asked::REQUESTS_MAX;
use super::changes::CHANGES_MAX;
use super::*;

/// Records with numbers and times in seconds.
fn trace(whats: Vec<(u64, What)>) -> Vec<Record> {
    let records = (0..).zip(whats);
    records
        .map(|(seq, (at, what))| Record {
            seq,
            at: Duration::from_secs(at),
            what,
        })
        .collect()
}

fn watch(stream: u64, path: &str, query: &[(&str, &str)]) -> What {
    let query = query.iter();
    What::Request {
        stream: StreamId(stream),
        conn: ConnId(stream),
        verb: Verb::Watch,
        method: "GET".to_owned(),
        path: path.to_owned(),
        query: query
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        accept: None,
        user_agent: Some("tester/1".to_owned()),
        replica: Replica::Primary,
        violations: Vec::new(),
    }
}

fn object(key: &str, version: u64) -> ObjectRef {
    ObjectRef {
        key: key.to_owned(),
        uid: String::new(),
        resource_version: version.to_string(),
    }
}

fn wrote(key: &str, version: u64) -> What {
    What::Wrote(StoreWrite {
        resource: "pods".to_owned(),
        object: object(key, version),
        op: WriteOp::Update,
        selected: false,
        by: None,
        content: None,
    })
}

fn sent(stream: u64, kind: FrameType, key: &str, version: u64) -> What {
    What::Frame {
        stream: StreamId(stream),
        frame: Frame {
            kind,
            object: Some(Arc::new(object(key, version))),
            bytes: 1,
            sent: 1,
            scripted: false,
        },
    }
}

fn ended(stream: u64, how: Ending) -> What {
    What::End {
        stream: StreamId(stream),
        how,
        by: Side::Server,
    }
}

/// An open response of a server.
fn open(stream: u64) -> StreamView {
    StreamView {
        stream: StreamId(stream),
        connection: ConnId(stream),
        replica: Replica::Primary,
        verb: "WATCH",
        method: "GET".to_owned(),
        target: format!("{PODS}?watch=1&resourceVersion=5"),
        user_agent: Some("tester/1".to_owned()),
        open_ms: 1000,
    }
}

fn view(watches: &Watches, now: u64) -> WatchesView {
    let now = Duration::from_secs(now);
    watches.view(now, &Filter::default(), 10, &BTreeSet::new())
}

fn heard(forwards: bool, whats: Vec<(u64, What)>) -> Watches {
    let watches = Watches::new(forwards);
    let records = trace(whats);
    while watches.hear(&records) {}
    watches
}

const PODS: &str = "/api/v1/pods";
const AT_5: &[(&str, &str)] = &[("watch", "1"), ("resourceVersion", "5")];

#[rstest]
#[case::of_all_namespaces(PODS, AT_5, Some(2))]
#[case::of_one("/api/v1/namespaces/a/pods", AT_5, Some(1))]
#[case::of_another("/api/v1/namespaces/c/pods", AT_5, Some(0))]
#[case::of_another_resource("/api/v1/nodes", AT_5, Some(0))]
#[case::a_selector_hides_changes(PODS, &[("labelSelector", "a=b")], None)]
fn a_watch_is_behind_by_the_changes_of_its_collection(
    #[case] path: &str,
    #[case] query: &[(&str, &str)],
    #[case] behind: Option<usize>,
) {
    let watches = heard(
        false,
        vec![
            (1, watch(1, path, query)),
            (2, wrote("a/one", 6)),
            (3, wrote("b/two", 7)),
        ],
    );
    assert_eq!(view(&watches, 9).watches[0].behind, behind);
}

#[test]
fn an_event_or_a_bookmark_catches_up() {
    let bookmark = FrameType::Bookmark {
        initial_events_end: None,
    };
    let watches = heard(
        false,
        vec![
            (1, watch(1, PODS, AT_5)),
            (1, watch(2, PODS, AT_5)),
            (2, wrote("a/one", 6)),
            (3, wrote("a/one", 7)),
            (4, sent(1, FrameType::Modified, "a/one", 6)),
            (5, sent(2, bookmark, "", 7)),
        ],
    );
    let view = view(&watches, 9);
    let [late, caught_up] = view.watches.as_slice() else {
        panic!("{view:?}");
    };
    assert_eq!(
        (late.stream, late.behind, late.behind_ms),
        (1, Some(1), Some(6000))
    );
    assert_eq!((caught_up.stream, caught_up.behind), (2, Some(0)));
    assert_eq!((caught_up.last_bookmark_ms, view.behind), (Some(4000), 1));
}

#[test]
fn changes_before_an_upstream_are_what_other_watches_were_sent() {
    let watches = heard(
        true,
        vec![
            (1, watch(1, PODS, AT_5)),
            (1, watch(2, PODS, AT_5)),
            (2, sent(2, FrameType::Added, "a/one", 6)),
        ],
    );
    assert_eq!(view(&watches, 5).watches[0].behind, Some(1));
}

#[test]
fn a_watch_ends_with_its_response_or_connection_and_a_stalled_one_stays() {
    let closed = What::Disconnected {
        conn: ConnId(2),
        by: Side::Client,
    };
    let watches = heard(
        false,
        vec![
            (1, watch(1, PODS, AT_5)),
            (1, watch(2, PODS, AT_5)),
            (1, watch(3, PODS, AT_5)),
            (2, ended(1, Ending::Eof)),
            (2, closed),
            (2, ended(3, Ending::Stall)),
        ],
    );
    let view = view(&watches, 9);
    assert_eq!((view.open, view.stalled, view.watches[0].stream), (1, 1, 3));
    assert!(watches.lock().by_connection.len() == 1 && watches.lock().changes.watched.len() == 1);
}

#[test]
fn a_plural_of_several_groups_is_not_counted() {
    let watches = heard(false, vec![(1, watch(1, PODS, AT_5)), (2, wrote("a/one", 6))]);
    let shared = BTreeSet::from(["pods".to_owned()]);
    let view = watches.view(Duration::from_secs(3), &Filter::default(), 10, &shared);
    assert_eq!(view.watches[0].behind, None);
}

#[test]
fn what_the_trace_no_longer_has_is_taken_from_the_open_responses() {
    let mut records = trace(vec![
        (1, watch(1, PODS, AT_5)),
        (1, watch(2, PODS, AT_5)),
        (2, wrote("a/one", 6)),
    ]);
    let watches = Watches::new(false);
    assert!(!watches.hear(&records) && !watches.missed());
    // The end of 1 and the request of 3 are gone.
    for record in &mut records {
        record.seq += 100;
    }
    watches.hear(&records[2..]);
    assert!(watches.missed());
    watches.reconcile(Duration::from_secs(4), &[open(2), open(3)]);
    let seen = |now: u64| -> Vec<(u64, State, Option<usize>)> {
        let view = view(&watches, now);
        let watches = view.watches.iter();
        watches
            .map(|watch| (watch.stream, watch.state, watch.behind))
            .collect()
    };
    assert_eq!(seen(4), [(2, State::Open, None), (3, State::Open, None)]);
    assert!(!watches.missed());
    // The next event tells how far each is.
    let mut later = trace(vec![
        (5, wrote("a/one", 7)),
        (5, sent(2, FrameType::Modified, "a/one", 7)),
        (5, sent(3, FrameType::Modified, "a/one", 6)),
    ]);
    for record in &mut later {
        record.seq += 103;
    }
    watches.hear(&later);
    assert_eq!(seen(5), [(2, State::Open, Some(0)), (3, State::Open, Some(1))]);
}

#[test]
fn memory_is_bounded() {
    let mut whats = vec![(1, watch(1, PODS, AT_5))];
    whats.extend((6..1000).map(|version| (2, wrote("a/one", version))));
    whats.extend((2..REQUESTS_MAX as u64 + 100).map(|stream| (3, watch(stream, PODS, AT_5))));
    let watches = heard(false, whats);
    let tracker = watches.lock();
    assert_eq!(tracker.requests.newest.len(), REQUESTS_MAX);
    assert_eq!(tracker.open.len(), WATCHES_MAX);
    let mut watched = tracker.changes.watched.values();
    assert!(watched.all(|watched| watched.changes.len() <= CHANGES_MAX + 1));
}

#[test]
fn a_watch_that_is_tracked_late_is_counted_once() {
    let last = WATCHES_MAX as u64 + 1;
    let whats = (1..=last).map(|stream| (1, watch(stream, PODS, AT_5)));
    let watches = heard(false, whats.collect());
    assert_eq!(view(&watches, 2).open, WATCHES_MAX + 1);
    let open: Vec<StreamView> = (2..=last).map(open).collect();
    watches.reconcile(Duration::from_secs(3), &open);
    assert_eq!(view(&watches, 4).open, WATCHES_MAX);
}
