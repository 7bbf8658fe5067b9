//! Start of a watch: the decision table.

use rstest::rstest;

use super::*;

const FIVE: [&str; 5] = [
    "ADDED probe/cm-1@1003",
    "ADDED probe/cm-2@1004",
    "ADDED probe/cm-3@1005",
    "ADDED probe/cm-4@1006",
    "ADDED probe/cm-5@1007",
];
const INITIAL: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// `5` stands for the five objects.
#[rstest]
#[case::unset(Version::NEWEST, "watch=1", &["5"])]
#[case::unset_with_bookmarks(Version::NEWEST, "watch=1&allowWatchBookmarks=1", &["5", "BOOKMARK 1009 end"])]
#[case::any_with_bookmarks(
    Version::V1_34,
    "watch=1&resourceVersion=0&allowWatchBookmarks=1",
    &["5", "BOOKMARK 1009 end"]
)]
#[case::streaming(Version::NEWEST, INITIAL, &["5", "BOOKMARK 1009 end"])]
#[case::streaming_without_bookmarks(
    Version::NEWEST,
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    &["5"]
)]
#[case::streaming_from_any(Version::NEWEST, &format!("{INITIAL}&resourceVersion=0"), &["5", "BOOKMARK 1009 end"])]
#[case::streaming_from_a_revision(
    Version::NEWEST,
    &format!("{INITIAL}&resourceVersion=1004"),
    &["5", "BOOKMARK 1009 end"]
)]
#[case::streaming_is_never_too_old(
    Version::NEWEST,
    &format!("{INITIAL}&resourceVersion=1"),
    &["5", "BOOKMARK 1009 end"]
)]
#[case::streaming_selected(
    Version::NEWEST,
    &format!("{INITIAL}&labelSelector=app=nope"),
    &["BOOKMARK 1009 end"]
)]
#[case::declined(
    Version::NEWEST,
    "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
    &[]
)]
#[case::declined_from_any(
    Version::NEWEST,
    "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0",
    &[]
)]
#[case::declined_from_a_revision(
    Version::NEWEST,
    "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=1006",
    &["ADDED probe/cm-5@1007"]
)]
#[case::from_a_revision(
    Version::NEWEST,
    "watch=1&resourceVersion=1005",
    &["ADDED probe/cm-4@1006", "ADDED probe/cm-5@1007"]
)]
#[case::from_the_newest(Version::NEWEST, "watch=1&resourceVersion=1009", &[])]
#[case::from_the_list_of_the_cache(Version::NEWEST, "watch=1&resourceVersion=1000", &["5"])]
#[case::too_old(
    Version::NEWEST,
    "watch=1&resourceVersion=999",
    &["ERROR 410 too old resource version: 999 (1000)", "end"]
)]
#[case::limit_and_continue_mean_nothing(Version::NEWEST, "watch=1&limit=1&continue=x&resourceVersion=1002", &["5"])]
#[case::from_the_future(Version::NEWEST, "watch=1&resourceVersion=2000", &[])]
#[case::over_before_it_began(Version::NEWEST, "watch=1&timeoutSeconds=-1", &["end"])]
fn a_watch_begins_as_its_options_say(
    #[case] version: Version,
    #[case] query: &str,
    #[case] expected: &[&str],
) {
    let world = World::fixture(version);
    let mut watch = world.watch(&format!("{CM}?{query}"));
    let expected: Vec<&str> = expected
        .iter()
        .flat_map(|row| if *row == "5" { FIVE.to_vec() } else { vec![*row] })
        .collect();
    assert_eq!(world.drain(&mut watch), expected);
}

#[test]
fn initial_events_of_all_namespaces_come_in_key_order() {
    let world = World::fixture(Version::NEWEST);
    let said = world.drain(&mut world.watch(&format!("{ALL_CM}?watch=1")));
    assert_eq!(said[0], "ADDED probe-b/cm-1@1008");
    assert_eq!(said[1..], FIVE);
}

#[test]
fn a_watch_path_names_one_object() {
    let world = World::fixture(Version::NEWEST);
    let target = "/api/v1/watch/namespaces/probe/configmaps/cm-2";
    assert_eq!(world.drain(&mut world.watch(target)), ["ADDED probe/cm-2@1004"]);
}

#[test]
fn a_streaming_list_at_a_future_revision_times_out_in_the_stream() {
    let mut world = World::fixture(Version::NEWEST);
    let mut in_time = world.watch(&format!(
        "{CM}?{INITIAL}&resourceVersion=1010&labelSelector=app=y"
    ));
    let mut too_late = world.watch(&format!("{CM}?{INITIAL}&resourceVersion=1011"));
    assert_eq!(
        in_time.poll(&world.model, world.now),
        WatchPoll::Pending {
            wake: Some(Duration::from_secs(3))
        }
    );
    world.now = seconds(2.0);
    world.put("cm-6", "1", Some("y"));
    assert_eq!(
        world.drain(&mut in_time),
        ["ADDED probe/cm-6@1010", "BOOKMARK 1010 end"]
    );
    world.now = seconds(3.0);
    assert_eq!(
        world.drain(&mut too_late),
        [
            "ERROR 504 Timeout: Too large resource version: 1011, current: 1010",
            "end"
        ]
    );
}

#[test]
fn events_up_to_the_requested_revision_are_not_sent() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1011"));
    for data in ["a", "b", "c"] {
        world.put("cm-1", data, Some("x"));
    }
    assert_eq!(world.drain(&mut watch), ["MODIFIED probe/cm-1@1012"]);
}

#[test]
fn a_resource_without_watch_cache_is_watched_from_etcd() {
    let mut world = World::fixture(Version::NEWEST);
    let event = |world: &mut World, name: &str| {
        world
            .apply("", "events", Some("probe"), name, json!({ "reason": "r" }))
            .revision
    };
    for n in 0..200 {
        event(&mut world, &format!("e-{n}"));
    }
    let mut from_the_start = world.watch(&format!("{EVENTS}?watch=1&resourceVersion=1009"));
    assert_eq!(world.drain(&mut from_the_start).len(), 200);
    world.model.storage_mut().compact();
    let compacted = world.model.revision();
    for (start, said) in [
        (
            compacted - 1,
            vec![
                "ERROR 410 The resourceVersion for the provided watch is too old.",
                "end",
            ],
        ),
        (compacted, vec![]),
    ] {
        let mut watch = world.watch(&format!("{EVENTS}?watch=1&resourceVersion={start}"));
        assert_eq!(world.drain(&mut watch), said, "from {start}");
    }
    let mut streaming = world.watch(&format!(
        "{EVENTS}?{INITIAL}&resourceVersion=9999&timeoutSeconds=9"
    ));
    assert_eq!(
        world.drain(&mut streaming),
        [
            "ERROR 504 Timeout: Too large resource version: 9999, current: 1209",
            "end"
        ]
    );
}
