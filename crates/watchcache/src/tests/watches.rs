//! Watches: how they begin, what they send of a write, their bookmarks and their end.

use rstest::rstest;

use super::*;

const INITIAL: [&str; 6] = [
    "ADDED a/1@2",
    "ADDED a/2@3",
    "ADDED a/3@4",
    "ADDED a/4@5",
    "ADDED a/5@6",
    "ADDED b/1@7",
];

/// `initial` stands for the six objects.
#[rstest]
#[case::unset(None, RequestedVersion::Newest, &["initial"])]
#[case::any(None, RequestedVersion::Any, &["initial"])]
#[case::from_a_revision(None, RequestedVersion::At(5), &["ADDED a/5@6", "ADDED b/1@7"])]
#[case::from_before_the_cache(
    None,
    RequestedVersion::At(0),
    &["ERROR 410 too old resource version: 0 (1)", "end"]
)]
#[case::from_the_future(None, RequestedVersion::At(99), &[])]
#[case::streaming(Some(true), RequestedVersion::Newest, &["initial", "BOOKMARK 7 end"])]
#[case::streaming_any(Some(true), RequestedVersion::Any, &["initial", "BOOKMARK 7 end"])]
#[case::streaming_not_older(Some(true), RequestedVersion::At(2), &["initial", "BOOKMARK 7 end"])]
#[case::declined(Some(false), RequestedVersion::Newest, &[])]
#[case::declined_any(Some(false), RequestedVersion::Any, &[])]
#[case::declined_at(Some(false), RequestedVersion::At(6), &["ADDED b/1@7"])]
fn a_watch_begins_as_its_options_say(
    #[case] send_initial_events: Option<bool>,
    #[case] resource_version: RequestedVersion,
    #[case] expected: &[&str],
) {
    let world = World::fixture();
    let options = WatchOptions {
        resource_version,
        send_initial_events,
        bookmarks: true,
        ..WatchOptions::default()
    };
    let expected: Vec<&str> = expected
        .iter()
        .flat_map(|row| {
            if *row == "initial" {
                INITIAL.to_vec()
            } else {
                vec![*row]
            }
        })
        .collect();
    assert_eq!(world.drain(&mut world.watch(&options, &ALL), &ALL), expected);
}

#[test]
fn a_streaming_list_waits_for_its_revision() {
    let mut world = World::fixture();
    let streaming = |revision| WatchOptions {
        send_initial_events: Some(true),
        bookmarks: true,
        namespace: Some("b".to_owned()),
        ..from(revision)
    };
    let mut in_time = world.watch(&streaming(8), &ALL);
    let mut too_late = world.watch(&streaming(9), &ALL);
    assert!(in_time.is_waiting());
    assert_eq!(world.drain(&mut in_time, &ALL), [""; 0]);
    world.now = seconds(2.0);
    world.put("a/1", "");
    assert_eq!(world.drain(&mut in_time, &ALL), ["ADDED b/1@7", "BOOKMARK 8 end"]);
    world.now = seconds(3.0);
    assert_eq!(
        world.drain(&mut too_late, &ALL),
        [
            "ERROR 504 Timeout: Too large resource version: 9, current: 8",
            "end"
        ]
    );
}

/// Each row: the tag before and after a write, and what a watch of the tag `x` receives.
#[rstest]
#[case::starts_to_match("", "x", Some("ADDED a/9@9"), "x")]
#[case::still_matches("x", "x", Some("MODIFIED a/9@9"), "x")]
#[case::stops_to_match("x", "y", Some("DELETED a/9@9"), "x")]
#[case::never_matches("", "y", None, "")]
fn a_selector_turns_updates_into_additions_and_deletions(
    #[case] before: &'static str,
    #[case] after: &'static str,
    #[case] expected: Option<&str>,
    #[case] tag: &str,
) {
    let mut world = World::fixture();
    world.put("a/9", before);
    let mut watch = world.watch(&from(8), &Tagged("x"));
    world.put("a/9", after);
    match watch.poll(&world.storage, world.now, &Tagged("x")) {
        Poll::Send(frame) => {
            assert_eq!(Some(summary(&frame).as_str()), expected);
            assert_eq!(frame.object().unwrap().tag, tag, "the last version that matched");
        }
        Poll::Pending { .. } | Poll::End => assert_eq!(expected, None),
    }
}

#[test]
fn a_write_is_sent_in_the_version_of_the_request() {
    let mut world = World::fixture();
    let mut watch = world.watch(&from(7), &Loud("X"));
    world.put("a/1", "x");
    world.put("a/1", "");
    world.put("a/3", "x");
    world.delete("a/3");
    let mut sent = Vec::new();
    while let Poll::Send(frame) = watch.poll(&world.storage, world.now, &Loud("X")) {
        sent.push((frame.word(), frame.object().unwrap().tag));
    }
    assert_eq!(
        sent,
        [
            ("MODIFIED", "X"),
            ("DELETED", "X"),
            ("MODIFIED", "X"),
            ("DELETED", "X")
        ]
    );
}

#[test]
fn a_namespace_is_no_prefix() {
    let mut world = World::fixture();
    let options = WatchOptions {
        namespace: Some("a".to_owned()),
        ..from(7)
    };
    let mut watch = world.watch(&options, &ALL);
    world.put("a-b/1", "");
    world.put("a/6", "");
    assert_eq!(world.drain(&mut watch, &ALL), ["ADDED a/6@9"]);
    let list = ListOptions {
        namespace: Some("a".to_owned()),
        ..ListOptions::default()
    };
    assert_eq!(world.list(&list), "9: a/1 a/2 a/3 a/4 a/5 a/6");
}

#[test]
fn bookmarks_come_every_interval_and_once_before_the_end() {
    let mut world = World::fixture();
    let options = WatchOptions {
        bookmarks: true,
        timeout_seconds: Some(100),
        ..from(7)
    };
    let mut watch = world.watch(&options, &ALL);
    let mut sent = Vec::new();
    world.put_into(world.others, "o", "");
    for _ in 0..10 {
        match watch.poll(&world.storage, world.now, &ALL) {
            Poll::Send(frame) => sent.push(format!("{:?} {}", world.now, summary(&frame))),
            Poll::Pending { wake } => world.now = wake,
            Poll::End => break,
        }
    }
    assert_eq!(sent, ["60s BOOKMARK 8", "98s BOOKMARK 8"]);
    assert_eq!(world.now, seconds(100.0));
}

#[test]
fn a_bookmark_without_progress_is_left_out() {
    let mut world = World::fixture();
    let options = WatchOptions {
        bookmarks: true,
        ..from(7)
    };
    let mut watch = world.watch(&options, &ALL);
    world.now = seconds(60.0);
    assert_eq!(world.drain(&mut watch, &ALL), [""; 0]);
    world.put_into(world.others, "o", "");
    world.now = seconds(120.0);
    assert_eq!(world.drain(&mut watch, &ALL), ["BOOKMARK 8"]);
}

/// Without notifications, an idle cache knows no newer revision than its own; a progress request teaches it.
#[test]
fn without_progress_notifications_a_bookmark_is_at_the_last_event() {
    let mut world = World::empty(&Settings {
        progress_notify: false,
        ..Settings::default()
    });
    let options = WatchOptions {
        bookmarks: true,
        ..from(1)
    };
    let mut watch = world.watch(&options, &ALL);
    world.put("a/1", "");
    world.put_into(world.others, "o", "");
    world.now = seconds(60.0);
    assert_eq!(world.drain(&mut watch, &ALL), ["ADDED a/1@2", "BOOKMARK 2"]);
    assert_eq!(world.list(&ListOptions::default()), "3: a/1");
    world.now = seconds(120.0);
    assert_eq!(world.drain(&mut watch, &ALL), ["BOOKMARK 3"]);
}

#[test]
fn events_up_to_the_start_are_never_sent() {
    let mut world = World::fixture();
    let mut watch = world.watch_from(9);
    for _ in 0..3 {
        world.put("a/1", "");
    }
    assert_eq!(world.drain(&mut watch, &ALL), ["MODIFIED a/1@10"]);
}

#[test]
fn a_resource_without_watch_cache_is_watched_in_etcd() {
    let mut storage: Storage<Note> = Storage::new(&Settings {
        watch_cache_capacity: 1,
        ..Settings::default()
    });
    let notes = storage.add_resource("notes", false);
    let others = storage.add_resource("others", true);
    let mut world = World {
        storage,
        now: Duration::ZERO,
        notes,
        others,
    };
    for n in 0..9 {
        world.put(&n.to_string(), "");
    }
    assert_eq!(
        world.drain(&mut world.watch_from(1), &ALL).len(),
        9,
        "etcd has no window"
    );
    world.storage.compact();
    assert_eq!(
        world.drain(&mut world.watch_from(9), &ALL),
        [
            "ERROR 410 The resourceVersion for the provided watch is too old.",
            "end"
        ]
    );
}
