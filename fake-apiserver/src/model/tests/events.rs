//! Events of a live watch, its bookmarks, and its end.

use rstest::rstest;
use trace::record::WriteOp;

use super::*;

#[test]
fn every_write_is_shown_once_and_a_delete_under_its_own_revision() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    world.put("cm-9", "1", None);
    world.put("cm-9", "2", None);
    world.put("cm-9", "2", None);
    world.delete("cm-9");
    world.put("cm-9", "3", None);
    assert_eq!(
        world.drain(&mut watch),
        [
            "ADDED probe/cm-9@1010",
            "MODIFIED probe/cm-9@1011",
            "DELETED probe/cm-9@1012",
            "ADDED probe/cm-9@1013"
        ]
    );
}

/// Each row: whether the label is present before and after a write, and the event of a watch that selects it.
#[rstest]
#[case::comes(None, Some("x"), &["ADDED probe/cm-9@1011"])]
#[case::stays(Some("x"), Some("x"), &["MODIFIED probe/cm-9@1011"])]
#[case::goes(Some("x"), Some("y"), &["DELETED probe/cm-9@1011"])]
#[case::never_was(None, Some("y"), &[])]
fn a_selector_turns_modifications_into_additions_and_deletions(
    #[case] before: Option<&str>,
    #[case] after: Option<&str>,
    #[case] expected: &[&str],
) {
    let mut world = World::fixture(Version::NEWEST);
    world.put("cm-9", "1", before);
    let mut watch = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1010&labelSelector=app%3Dx"
    ));
    world.put("cm-9", "2", after);
    assert_eq!(world.drain(&mut watch), expected);
}

#[test]
fn a_deselected_object_is_deleted_with_its_last_selected_state() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1009&labelSelector=app%3Dx"
    ));
    world.relabel("cm-1", None);
    let WatchPoll::Frame(frame) = watch.poll(&world.model, world.now) else {
        panic!("no frame")
    };
    let line: Value = serde_json::from_slice(&frame.line).unwrap();
    assert_eq!(line["type"], "DELETED");
    assert_eq!(line["object"]["metadata"]["labels"], json!({ "app": "x" }));
    assert_eq!(line["object"]["metadata"]["resourceVersion"], "1010");
    assert_eq!(world.model.object(&cm("cm-1")).unwrap().labels().count(), 0);
}

#[test]
fn a_watch_is_limited_to_its_namespace_and_name() {
    let mut world = World::fixture(Version::NEWEST);
    let mut named = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1009&fieldSelector=metadata.name%3Dcm-1"
    ));
    let mut elsewhere = world.watch("/api/v1/namespaces/probe-b/configmaps?watch=1&resourceVersion=1009");
    let mut all = world.watch(&format!("{ALL_CM}?watch=1&resourceVersion=1009"));
    world.put("cm-1", "9", None);
    world.put("cm-2", "9", None);
    assert_eq!(world.drain(&mut named), ["MODIFIED probe/cm-1@1010"]);
    assert_eq!(world.drain(&mut elsewhere), [""; 0]);
    assert_eq!(world.drain(&mut all).len(), 2);
}

#[test]
fn removing_the_last_finalizer_deletes_a_marked_object() {
    let mut world = World::fixture(Version::NEWEST);
    let object = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    world.apply("", "configmaps", Some("probe"), "held", object(json!(["f"])));
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1010"));
    world.now = seconds(61.0);
    assert_eq!(world.delete("held").revision, 1011);
    assert_eq!(world.delete("held").op, None);
    let marked = world.model.object(&cm("held")).unwrap();
    assert_eq!(
        marked.json()["metadata"]["deletionTimestamp"],
        "2026-01-01T00:01:01Z"
    );
    assert_eq!(marked.json()["metadata"]["deletionGracePeriodSeconds"], 0);
    let gone = world.apply("", "configmaps", Some("probe"), "held", object(json!([])));
    assert_eq!(gone.op, Some(WriteOp::Delete));
    assert_eq!(gone.stored.json()["metadata"]["finalizers"], json!(["f"]));
    assert_eq!(
        world.drain(&mut watch),
        ["MODIFIED probe/held@1011", "DELETED probe/held@1012"]
    );
}

/// Each row: options, and the times of bookmarks in seconds while another resource is written every second.
#[rstest]
#[case::every_minute("timeoutSeconds=150", &[60, 120, 148])]
#[case::pulled_forward_to_the_deadline("timeoutSeconds=5", &[3])]
#[case::no_time_for_one("timeoutSeconds=2", &[])]
#[case::not_asked_for("timeoutSeconds=150&allowWatchBookmarks=0", &[])]
fn bookmarks_come_periodically_and_before_the_deadline(#[case] options: &str, #[case] expected: &[u64]) {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1009&{options}&allowWatchBookmarks=1"
    ));
    let mut came = Vec::new();
    for second in 1..200 {
        world.now = Duration::from_secs(second);
        world.apply(
            "",
            "secrets",
            Some("probe"),
            "s",
            json!({ "data": { "n": second.to_string() } }),
        );
        for line in world.drain(&mut watch) {
            if line.starts_with("BOOKMARK") {
                assert_eq!(line, format!("BOOKMARK {}", world.model.revision()));
                came.push(second);
            }
        }
    }
    assert_eq!(came, expected);
}

#[test]
fn an_idle_store_sends_no_bookmark() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1009&allowWatchBookmarks=1"
    ));
    for minute in 1..30 {
        world.now = Duration::from_secs(minute * 60);
        assert_eq!(world.drain(&mut watch), [""; 0]);
    }
}

#[test]
fn a_resource_without_watch_cache_has_no_bookmarks_but_the_end_marker() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{EVENTS}?watch=1&allowWatchBookmarks=1"));
    assert_eq!(world.drain(&mut watch), ["BOOKMARK 1009 end"]);
    world.put("cm-9", "1", None);
    world.now = seconds(600.0);
    assert_eq!(world.drain(&mut watch), [""; 0]);
}

#[rstest]
#[case::named("timeoutSeconds=7", 7)]
#[case::zero_is_the_server_s_choice("timeoutSeconds=0", 2000)]
#[case::absent_is_the_server_s_choice("", 2000)]
#[case::timeout_means_nothing("timeout=1s", 2000)]
fn a_watch_ends_cleanly_at_its_deadline(#[case] options: &str, #[case] deadline: u64) {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009&{options}"));
    let deadline = Duration::from_secs(deadline);
    assert_eq!(
        watch.poll(&world.model, world.now),
        WatchPoll::Pending { wake: Some(deadline) }
    );
    world.now = deadline - Duration::from_millis(1);
    assert_eq!(world.drain(&mut watch), [""; 0]);
    world.now = deadline;
    assert_eq!(world.drain(&mut watch), ["end"]);
    assert_eq!(world.drain(&mut watch), ["end"]);
}

#[test]
fn a_watch_that_falls_too_far_behind_is_ended() {
    let mut world = World::fixture(Version::NEWEST);
    let mut slow = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    let mut patient = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    for n in 0..5_000 {
        world.put("cm-1", &n.to_string(), None);
    }
    assert_eq!(world.drain(&mut patient).len(), 5_000);
    for n in 0..10_000 {
        world.put("cm-1", &format!("again {n}"), None);
    }
    assert_eq!(world.drain(&mut slow), ["end"]);
    assert_eq!(world.drain(&mut patient).len(), 10_000);
}
