//! How much of the past is left: the window, compaction, relists, and a restore.

use super::*;
use crate::RestoreError;

fn small(capacity: usize) -> World {
    World::empty(&Settings {
        watch_cache_capacity: capacity,
        ..Settings::default()
    })
}

#[test]
fn a_full_window_evicts_its_oldest_event() {
    let mut world = small(3);
    for _ in 0..3 {
        world.put("a", "");
    }
    assert_eq!(world.drain(&mut world.watch_from(1), &ALL).len(), 3);
    assert_eq!(world.storage.oldest_watchable(world.notes), 1);
    world.put("a", "");
    assert_eq!(
        world.drain(&mut world.watch_from(1), &ALL),
        ["ERROR 410 too old resource version: 1 (2)", "end"]
    );
    assert_eq!(world.drain(&mut world.watch_from(2), &ALL).len(), 3);
    assert_eq!(world.list(&exactly(1)), "1: ", "etcd is not compacted");
}

#[test]
fn uncounted_events_evict_none() {
    let mut world = small(2);
    let notes = world.notes;
    let mut put = |counts| {
        world.storage.count_events(notes, counts);
        world.put("a", "");
        world.storage.oldest_watchable(notes)
    };
    assert_eq!([true, false, false, true].map(&mut put), [1, 1, 1, 1]);
    // The first counted event leaves, and the uncounted ones stay until they are the oldest.
    assert_eq!([true, true].map(&mut put), [2, 5]);
}

#[test]
fn an_open_watch_reads_events_before_the_window() {
    let mut world = small(1);
    let mut watch = world.watch_from(1);
    for _ in 0..5 {
        world.put("a", "");
    }
    world.storage.compact();
    assert_eq!(world.drain(&mut watch, &ALL).len(), 5);
}

#[test]
fn a_watch_that_lags_too_far_ends() {
    let mut world = small(10);
    let mut watch = world.watch_from(1);
    assert!(!watch.is_past(&world.storage, world.now));
    for _ in 0..=10_000 {
        world.put("a", "");
    }
    assert!(watch.is_past(&world.storage, world.now));
    assert_eq!(world.drain(&mut watch, &ALL), ["end"]);
}

#[test]
fn events_are_evicted_down_to_a_number_of_bytes() {
    let mut world = small(100);
    let mut watch = world.watch_from(1);
    for _ in 0..10 {
        world.put("a", "");
        world.put_into(world.others, "o", "");
    }
    // An event weighs twice its object.
    assert_eq!(world.storage.event_bytes(), 20 * 200);
    world.storage.evict_events(4 * 200);
    assert_eq!(world.storage.event_bytes(), 4 * 200);
    assert_eq!(world.storage.oldest_watchable(world.notes), 17);
    assert_eq!(
        world.drain(&mut world.watch_from(17), &ALL),
        ["MODIFIED a@18", "MODIFIED a@20"]
    );
    assert_eq!(world.drain(&mut watch, &ALL), ["end"]);
}

#[test]
fn a_compaction_of_etcd_leaves_the_watch_cache() {
    let mut world = World::fixture();
    assert_eq!(world.storage.history_bytes(), 0);
    world.put("a/1", "");
    assert_eq!(
        world.storage.history_bytes(),
        100,
        "the version that was replaced"
    );
    world.storage.compact_store();
    assert_eq!(world.storage.history_bytes(), 0);
    assert_eq!((world.storage.compacted(), world.storage.revision()), (8, 9));
    assert_eq!(
        world.list(&exactly(7)),
        "410 The resourceVersion for the provided list is too old."
    );
    assert_eq!(world.drain(&mut world.watch_from(7), &ALL), ["MODIFIED a/1@8"]);
}

#[test]
fn a_relist_ends_open_watches_and_empties_the_window() {
    let mut world = World::fixture();
    let mut open = world.watch_from(7);
    world.put("a/1", "");
    world.operate(WatchCacheOp::Clear);
    let mut after = world.watch_from(8);
    world.put("a/1", "");
    assert_eq!(world.drain(&mut open, &ALL), ["MODIFIED a/1@8", "end"]);
    assert_eq!(world.drain(&mut after, &ALL), ["MODIFIED a/1@9"]);
    assert_eq!(
        world.drain(&mut world.watch_from(7), &ALL),
        ["ERROR 410 too old resource version: 7 (8)", "end"]
    );
}

#[test]
fn a_restart_is_a_relist_of_every_cache() {
    let mut world = World::fixture();
    let mut open = world.watch_from(7);
    world.storage.restart_watch_caches();
    assert_eq!(world.drain(&mut open, &ALL), ["end"]);
    assert_eq!(world.storage.oldest_watchable(world.others), 7);
}

#[test]
fn until_its_caches_are_filled_a_new_process_refuses_what_needs_them() {
    let mut world = World::fixture();
    world.operate(WatchCacheOp::Freeze);
    let mut open = world.watch_from(7);
    world.storage.restart(world.now, None, world.now + seconds(20.0));
    world.put("b/2", "");
    assert_eq!(world.drain(&mut open, &ALL), ["end"]);
    let refused = |world: &World| {
        let status = world.storage.unready(world.now, world.notes, Replica::FIRST);
        status.map(|status| {
            (
                status.code,
                status.details.map(|details| details.retry_after_seconds),
            )
        })
    };
    assert_eq!(refused(&world), Some((429, Some(1))));
    assert_eq!(
        world.list(&ListOptions::default()),
        "429 storage is (re)initializing"
    );
    let paged = ListOptions {
        resource_version: RequestedVersion::Any,
        limit: Some(2),
        ..ListOptions::default()
    };
    assert_eq!(world.list(&paged), "8: a/1 a/2 continue +5", "etcd pages it");
    assert_eq!(world.storage.poll_timeout(), Some(world.now + seconds(20.0)));

    world.now += seconds(19.0);
    assert!(!world.storage.follow(world.now));
    assert_eq!(refused(&world), Some((429, Some(3))), "the longer, the later");
    world.now += seconds(1.0);
    assert!(world.storage.follow(world.now));
    assert_eq!(refused(&world), None);
    assert_eq!(
        world.list(&exactly(7)),
        "7: a/1 a/2 a/3 a/4 a/5 b/1",
        "etcd lost nothing"
    );
    assert_eq!(
        world.storage.oldest_watchable(world.notes),
        8,
        "filled from a list at that time, and no longer frozen"
    );
}

#[test]
fn a_restart_of_one_replica_leaves_the_other_as_it_was() {
    let mut world = World::fixture();
    let second = world.storage.add_replica();
    let mut open = world.watch_from(7);
    world
        .storage
        .restart(world.now, Some(second), world.now + seconds(5.0));
    assert!(world.storage.unready(world.now, world.notes, second).is_some());
    assert!(
        world
            .storage
            .unready(world.now, world.notes, Replica::FIRST)
            .is_none()
    );
    world.put("b/2", "");
    assert_eq!(world.drain(&mut open, &ALL), ["ADDED b/2@8"]);
}

#[test]
fn a_restore_reuses_revisions() {
    let mut world = World::fixture();
    let mut open = world.watch_from(7);
    assert_eq!(
        world.storage.restore(8),
        Err(RestoreError::Future { to: 8, current: 7 })
    );
    world.storage.restore(3).unwrap();
    assert_eq!(world.list(&ListOptions::default()), "3: a/1 a/2");
    assert_eq!(world.drain(&mut open, &ALL), ["end"]);
    assert_eq!(world.put("c", "").revision, 4);
    assert_eq!(world.list(&exactly(4)), "4: a/1 a/2 c");
    world.storage.compact();
    assert_eq!(
        world.storage.restore(3),
        Err(RestoreError::Compacted { to: 3, oldest: 4 })
    );
}

#[test]
fn a_delete_of_what_is_not_there_uses_no_revision() {
    let mut world = World::fixture();
    let gone = world.put("a/9", "");
    assert!(world.delete("a/9"));
    assert_eq!(world.storage.delete(world.now, world.notes, &gone), None);
    assert_eq!(world.storage.revision(), 9);
}
