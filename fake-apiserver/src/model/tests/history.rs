//! Available history: eviction from the watch cache, compaction, relists, a lagging cache, a restored store.

use super::*;
use crate::model::RestoreError;

fn small(capacity: usize) -> World {
    World::empty(&ServerSettings {
        watch_cache_capacity: capacity,
        ..ServerSettings::default()
    })
}

fn start(world: &World, revision: u64) -> Vec<String> {
    world.drain(&mut world.watch(&format!("{CM}?watch=1&resourceVersion={revision}")))
}

#[test]
fn a_full_window_evicts_its_oldest_event() {
    let mut world = small(3);
    for n in 1..=3 {
        world.put("a", &n.to_string(), None);
    }
    assert_eq!(start(&world, 1000).len(), 3, "full, but nothing is evicted yet");
    assert_eq!(world.model.oldest_watchable("", "configmaps"), Some(1000));
    world.put("a", "4", None);
    assert_eq!(
        start(&world, 1000),
        ["ERROR 410 too old resource version: 1000 (1001)", "end"]
    );
    assert_eq!(
        start(&world, 1001).len(),
        3,
        "one before the oldest event is enough"
    );
    assert_eq!(
        world.list(&format!("{CM}?resourceVersion=1000&resourceVersionMatch=Exact")),
        "1000: "
    );
}

#[test]
fn writes_to_another_resource_evict_nothing() {
    let mut world = small(3);
    for n in 1..=9 {
        world.apply(
            "",
            "secrets",
            Some("probe"),
            "s",
            json!({ "data": { "n": n.to_string() } }),
        );
    }
    assert_eq!(start(&world, 1000), [""; 0]);
}

#[test]
fn an_open_watch_continues_after_eviction() {
    let mut world = small(1);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1000"));
    for n in 1..=5 {
        world.put("a", &n.to_string(), None);
    }
    world.model.storage_mut().compact();
    assert_eq!(world.drain(&mut watch).len(), 5);
}

#[test]
fn compaction_drops_history_of_lists_and_watches() {
    let mut world = World::fixture(Version::NEWEST);
    let mut open = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    world.put("cm-1", "2", None);
    world.model.storage_mut().compact();
    assert_eq!(world.model.compacted(), 1010);
    let exact = |revision: u64| {
        world.list(&format!(
            "{CM}?resourceVersion={revision}&resourceVersionMatch=Exact"
        ))
    };
    assert_eq!(
        exact(1009),
        "410 The resourceVersion for the provided list is too old."
    );
    assert!(exact(1010).starts_with("1010: probe/cm-1 "));
    assert_eq!(
        start(&world, 1009),
        ["ERROR 410 too old resource version: 1009 (1010)", "end"]
    );
    assert_eq!(start(&world, 1010), [""; 0]);
    assert_eq!(
        world.list(&format!("{CM}?resourceVersion=1009")),
        exact(1010),
        "not older is still served"
    );
    world.put("cm-1", "3", None);
    assert_eq!(
        world.drain(&mut open),
        ["MODIFIED probe/cm-1@1010", "MODIFIED probe/cm-1@1011"]
    );
}

#[test]
fn a_relist_ends_open_watches_of_its_resource_only() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    let mut other = world.watch(&format!("{WD}?watch=1&resourceVersion=1009"));
    world.put("cm-1", "2", None);
    world.turn(WatchCacheOp::Clear);
    let mut after = world.watch(&format!("{CM}?watch=1&resourceVersion=1010"));
    world.put("cm-1", "3", None);
    assert_eq!(world.drain(&mut watch), ["MODIFIED probe/cm-1@1010", "end"]);
    assert_eq!(world.drain(&mut other), [""; 0]);
    assert_eq!(world.drain(&mut after), ["MODIFIED probe/cm-1@1011"]);
    assert_eq!(
        start(&world, 1009),
        ["ERROR 410 too old resource version: 1009 (1010)", "end"]
    );
    let exact = format!("{CM}?resourceVersion=1003&resourceVersionMatch=Exact");
    assert_eq!(world.list(&exact), "1003: probe/cm-1", "etcd has not forgotten");
}

#[test]
fn consistent_reads_bypass_a_frozen_cache() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!(
        "{CM}?watch=1&resourceVersion=1009&allowWatchBookmarks=1"
    ));
    world.turn(WatchCacheOp::Freeze);
    world.put("cm-1", "2", None);
    world.delete("cm-5");
    let one = format!("{CM}?fieldSelector=metadata.name%3Dcm-5");
    assert_eq!(
        world.list(&format!("{one}&resourceVersion=0")),
        "1009: probe/cm-5"
    );
    assert_eq!(
        world.get(&format!("{CM}/cm-5?resourceVersion=0"), Duration::ZERO),
        "1007 probe/cm-5"
    );
    assert_eq!(
        world.get(&format!("{CM}/cm-1"), Duration::ZERO),
        "1010 probe/cm-1"
    );
    assert_eq!(world.list(&one), "wait 3s");
    assert_eq!(world.list_after(&one, seconds(3.0)), "1011: ");
    assert_eq!(
        world.list_after(&format!("{CM}?resourceVersion=1011"), seconds(3.0)),
        "504 Timeout: Too large resource version: 1011, current: 1009"
    );
    world.now = seconds(60.0);
    assert_eq!(
        world.drain(&mut watch),
        [""; 0],
        "neither events nor a bookmark of what it did not see"
    );
    let mut fresh = world.watch(&format!(
        "{CM}?watch=1&allowWatchBookmarks=1&fieldSelector=metadata.name%3Dcm-5"
    ));
    assert_eq!(world.drain(&mut fresh), [""; 0], "waits for the newest state");
    world.turn(WatchCacheOp::Thaw);
    assert_eq!(
        world.drain(&mut watch),
        ["MODIFIED probe/cm-1@1010", "DELETED probe/cm-5@1011"]
    );
    assert_eq!(world.drain(&mut fresh), ["BOOKMARK 1011 end"]);
}

#[test]
fn a_lagging_cache_shows_writes_after_the_lag() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    let any = format!("{CM}?fieldSelector=metadata.name%3Dcm-5&resourceVersion=0");
    let newest = format!("{CM}?fieldSelector=metadata.name%3Dcm-5");
    world.turn(WatchCacheOp::Lag(seconds(2.0)));
    world.delete("cm-5");
    assert_eq!(world.list(&any), "1009: probe/cm-5");
    assert_eq!(world.list(&newest), "wait 3s", "for the cache, as long as it may");
    assert_eq!(world.model.storage().poll_timeout(), Some(seconds(2.0)));

    world.now = seconds(1.0);
    assert!(!world.model.storage_mut().follow(world.now), "not yet");
    world.put("cm-1", "2", None);
    assert_eq!(world.drain(&mut watch), [""; 0]);

    world.now = seconds(2.0);
    assert!(world.model.storage_mut().follow(world.now));
    assert_eq!(world.drain(&mut watch), ["DELETED probe/cm-5@1010"]);
    assert_eq!(
        world.list(&any),
        "1010: ",
        "the write of a second ago is still to come"
    );
    assert_eq!(
        world.get(&format!("{CM}/cm-1?resourceVersion=0"), Duration::ZERO),
        "1003 probe/cm-1"
    );
    assert_eq!(world.model.storage().poll_timeout(), Some(seconds(3.0)));

    world.turn(WatchCacheOp::Lag(seconds(60.0)));
    assert_eq!(world.drain(&mut watch), [""; 0], "and now even later");
    world.turn(WatchCacheOp::Thaw);
    assert_eq!(world.drain(&mut watch), ["MODIFIED probe/cm-1@1011"]);
    assert_eq!(world.list(&any), "1011: ");
    world.put("cm-1", "3", None);
    assert_eq!(world.drain(&mut watch), ["MODIFIED probe/cm-1@1012"]);
    assert_eq!(world.model.storage().poll_timeout(), None);
}

#[test]
fn a_lag_applies_to_one_replica_and_to_later_resources() {
    let mut world = World::fixture(Version::NEWEST);
    world.model.open_secondary();
    let lag = WatchCacheOp::Lag(seconds(1.0));
    world
        .model
        .turn_watch_caches(world.now, lag, None, Some(Replica::Secondary));
    world.delete("cm-1");
    let one = format!("{CM}?fieldSelector=metadata.name%3Dcm-1&resourceVersion=0");
    let at = |world: &World, replica| {
        let request = world.list_request(&one);
        match world.model.list_at(replica, world.now, world.now, &request) {
            ListOutcome::Page(page) => story(&page),
            other @ (ListOutcome::Refused(_) | ListOutcome::Wait { .. }) => panic!("{other:?}"),
        }
    };
    assert_eq!(at(&world, Replica::Primary), "1010: ");
    assert_eq!(
        at(&world, Replica::Secondary),
        "1009: probe/cm-1",
        "who hops there sees the past"
    );
    world.now = seconds(1.0);
    world.model.storage_mut().follow(world.now);
    assert_eq!(at(&world, Replica::Secondary), "1010: ");
}

#[test]
fn a_cache_thawed_after_compaction_relists() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    world.turn(WatchCacheOp::Freeze);
    world.put("cm-1", "2", None);
    world.model.storage_mut().compact();
    world.turn(WatchCacheOp::Thaw);
    assert_eq!(world.drain(&mut watch), ["end"]);
    assert_eq!(
        start(&world, 1009),
        ["ERROR 410 too old resource version: 1009 (1010)", "end"]
    );
    assert!(
        world
            .list(&format!("{CM}?resourceVersion=0"))
            .starts_with("1010: ")
    );
}

#[test]
fn a_frozen_cleared_cache_stays_at_its_relist() {
    let mut world = World::fixture(Version::NEWEST);
    world.turn(WatchCacheOp::Freeze);
    world.delete("cm-1");
    world.turn(WatchCacheOp::Clear);
    world.delete("cm-2");
    assert_eq!(
        world.list(&format!("{CM}?resourceVersion=0")),
        "1010: probe/cm-2 probe/cm-3 probe/cm-4 probe/cm-5"
    );
}

#[test]
fn a_restored_store_continues_from_its_revision_and_every_watch_ends() {
    let mut world = World::fixture(Version::NEWEST);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1009"));
    world.put("cm-6", "lost", None);
    world.delete("cm-1");
    world.put("cm-7", "lost", None);
    world.model.storage_mut().restore(1010).unwrap();
    assert_eq!(world.model.revision(), 1010);
    assert_eq!(world.drain(&mut watch).last().unwrap(), "end");
    let mut future = world.watch(&format!("{CM}?watch=1&resourceVersion=1012"));
    let now = world.list(CM);
    assert_eq!(
        now,
        "1010: probe/cm-1 probe/cm-2 probe/cm-3 probe/cm-4 probe/cm-5 probe/cm-6"
    );
    assert_eq!(world.put("cm-8", "1", None).revision, 1011);
    world.put("cm-8", "2", None);
    world.put("cm-8", "3", None);
    assert_eq!(world.drain(&mut future), ["MODIFIED probe/cm-8@1013"]);
    assert_eq!(
        start(&world, 1009),
        ["ERROR 410 too old resource version: 1009 (1010)", "end"]
    );
    assert_eq!(start(&world, 1010).len(), 3);
    let exact =
        format!("{CM}?resourceVersion=1011&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Dcm-1");
    assert_eq!(
        world.list(&exact),
        "1011: probe/cm-1",
        "the lost delete is no part of the new history"
    );
}

#[test]
fn a_store_is_restored_only_to_available_revisions() {
    let mut world = World::fixture(Version::NEWEST);
    assert_eq!(
        world.model.storage_mut().restore(1010),
        Err(RestoreError::Future {
            to: 1010,
            current: 1009
        })
    );
    world.model.storage_mut().compact();
    assert_eq!(
        world.model.storage_mut().restore(1008),
        Err(RestoreError::Compacted {
            to: 1008,
            oldest: 1009
        })
    );
    assert_eq!(world.model.storage_mut().restore(1009), Ok(()));
}

#[test]
fn a_recreated_object_has_a_new_uid_even_after_a_restore() {
    let mut world = small(10);
    let first = world.put("a", "1", None).uid;
    world.delete("a");
    let second = world.put("a", "1", None).uid;
    world.model.storage_mut().restore(1000).unwrap();
    let third = world.put("a", "1", None).uid;
    assert!(first != second && second != third && first != third);
}
