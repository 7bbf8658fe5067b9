//! Watch caches behind etcd: frozen, delayed, and those of a second apiserver.

use super::*;

fn any() -> ListOptions {
    ListOptions {
        resource_version: RequestedVersion::Any,
        ..ListOptions::default()
    }
}

#[test]
fn a_frozen_cache_is_stale_and_consistent_reads_bypass_it() {
    let mut world = World::empty(&Settings::default());
    world.put("a", "");
    let mut watch = world.watch_from(2);
    world.operate(WatchCacheOp::Freeze);
    world.put("b", "");
    world.delete("a");
    assert_eq!(world.list(&any()), "2: a");
    assert_eq!(world.list(&ListOptions::default()), "wait 3s");
    assert_eq!(world.list_after(seconds(3.0), &ListOptions::default()), "4: b");
    assert_eq!(
        world.list_after(seconds(3.0), &at(4)),
        "504 Timeout: Too large resource version: 4, current: 2"
    );
    assert_eq!(world.drain(&mut watch, &ALL), [""; 0]);
    assert_eq!(watch.shown(&world.storage), Some(2));
    world.operate(WatchCacheOp::Thaw);
    assert_eq!(world.drain(&mut watch, &ALL), ["ADDED b@3", "DELETED a@4"]);
    assert_eq!(watch.shown(&world.storage), Some(4));
    assert_eq!(world.list(&any()), "4: b");
}

#[test]
fn a_cache_that_missed_a_compacted_write_can_only_relist() {
    let mut world = World::empty(&Settings::default());
    let mut watch = world.watch_from(1);
    world.operate(WatchCacheOp::Freeze);
    world.put("a", "");
    world.storage.compact_store();
    world.operate(WatchCacheOp::Thaw);
    assert_eq!(world.drain(&mut watch, &ALL), ["end"]);
    assert_eq!(world.list(&any()), "3: a");
}

#[test]
fn a_lagging_cache_processes_each_write_after_its_delay() {
    let mut world = World::empty(&Settings::default());
    let mut watch = world.watch_from(1);
    world.operate(WatchCacheOp::Lag(seconds(2.0)));
    world.put("a", "");
    world.now = seconds(1.0);
    world.put("b", "");
    assert_eq!(world.storage.poll_timeout(), Some(seconds(2.0)));
    assert!(!world.storage.follow(world.now), "nothing is due");
    world.now = seconds(2.0);
    assert!(world.storage.follow(world.now));
    assert_eq!(world.list(&any()), "2: a");
    assert_eq!(world.drain(&mut watch, &ALL), ["ADDED a@2"]);
    assert_eq!(world.storage.poll_timeout(), Some(seconds(3.0)));
    world.now = seconds(3.0);
    assert!(world.storage.follow(world.now));
    assert_eq!(world.drain(&mut watch, &ALL), ["ADDED b@3"]);
    assert_eq!(world.storage.poll_timeout(), None);
}

#[test]
fn each_apiserver_has_its_own_cache() {
    let mut world = World::empty(&Settings::default());
    world.put("a", "");
    let second = world.storage.add_replica();
    let op = WatchCacheOp::Freeze;
    world.storage.operate(world.now, op, None, Some(second));
    world.put("b", "");
    assert_eq!(at_hand(&world, Replica::FIRST), "3: a b");
    assert_eq!(at_hand(&world, second), "2: a");
    let start = |replica| {
        let (storage, now, notes) = (&world.storage, world.now, world.notes);
        world.drain(
            &mut Watch::open(storage, now, notes, replica, &from(1), &ALL),
            &ALL,
        )
    };
    assert_eq!(start(Replica::FIRST), ["ADDED a@2", "ADDED b@3"]);
    assert_eq!(
        start(second),
        ["ERROR 410 too old resource version: 1 (2)", "end"],
        "its cache began later"
    );
}

/// A bookmark at the server's revision would hide what it has not sent.
#[test]
fn a_refused_watch_shows_no_revision() {
    let mut world = World::empty(&Settings::default());
    world.put("a", "");
    world.operate(WatchCacheOp::Clear);
    let mut watch = world.watch_from(1);
    assert_eq!(watch.shown(&world.storage), None);
    assert_eq!(
        world.drain(&mut watch, &ALL),
        ["ERROR 410 too old resource version: 1 (2)", "end"]
    );
    assert_eq!(watch.shown(&world.storage), None);
}

/// What `replica` has at hand.
fn at_hand(world: &World, replica: Replica) -> String {
    let read = world.read(replica);
    let Lookup::Found(page) = world.storage.list(world.now, read, &any(), &ALL) else {
        panic!("no page");
    };
    story(&page)
}

#[test]
fn a_delay_holds_for_resources_and_replicas_that_come_later() {
    let mut world = World::empty(&Settings::default());
    let lag = WatchCacheOp::Lag(seconds(1.0));
    world.storage.operate(world.now, lag, None, None);
    world.notes = world.storage.add_resource("later", true);
    let second = world.storage.add_replica();
    world.put("a", "");
    assert_eq!(at_hand(&world, Replica::FIRST), "1: ");
    assert_eq!(at_hand(&world, second), "1: ");
    assert_eq!(world.storage.poll_timeout(), Some(seconds(1.0)));
    world.storage.operate(world.now, lag, None, Some(second));
    let thaw = WatchCacheOp::Thaw;
    world.storage.operate(world.now, thaw, None, Some(Replica::FIRST));
    assert_eq!(at_hand(&world, Replica::FIRST), "2: a");
    assert_eq!(at_hand(&world, second), "1: ", "it is still delayed");
    world.notes = world.storage.add_resource("last", true);
    world.put("b", "");
    assert_eq!(at_hand(&world, Replica::FIRST), "3: b");
    assert_eq!(at_hand(&world, second), "2: ");
    world.storage.operate(world.now, thaw, None, None);
    world.notes = world.storage.add_resource("at once", true);
    world.put("c", "");
    assert_eq!(at_hand(&world, second), "4: c");
}
