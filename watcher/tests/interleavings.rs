//! Tests of lock interleavings of writer, readers, waiters and subscribers of a store: shuttle replaces the standard
//! library's locks and runs the threads in many random schedules.
//!
//! `cargo test -p watcher --features shuttle --test interleavings`. A lost wake-up fails as a deadlock, with its
//! schedule. Each check of what a thread sees is also made of a reader that is wrong, which some schedule must find.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::future::block_on;
use shuttle::thread;
use watcher::Event;
use watcher::reflector::{self, Delta, Index, Store, Subscriber, Writer, WriterDropped};

const SCHEDULES: usize = 3_000;

fn object(name: &str, version: u32) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(name.to_owned());
    object.metadata.resource_version = Some(version.to_string());
    object
}

fn try_all(story: impl Fn() + Send + Sync + 'static) {
    let story = Arc::new(story);
    let random = Arc::clone(&story);
    shuttle::check_random(move || random(), SCHEDULES);
    shuttle::check_pct(move || story(), SCHEDULES, 3);
}

/// kube-runtime's store wakes only one of its waiters.
#[test]
fn every_waiter_is_woken() {
    try_all(|| {
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let store = store.clone();
                thread::spawn(move || block_on(store.wait_until_ready()))
            })
            .collect();
        writer.apply(Event::Init);
        writer.apply(Event::InitDone);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Ok(()));
        }
    });
}

#[test]
fn the_writers_end_wakes_every_waiter() {
    try_all(|| {
        let (store, writer) = reflector::store::<ConfigMap>();
        let waiter = thread::spawn(move || block_on(store.wait_until_ready()));
        drop(writer);
        assert_eq!(waiter.join().unwrap(), Err(WriterDropped));
    });
}

/// kube-runtime's handle sleeps forever if the object of a received key is gone by the time it looks.
#[test]
fn a_subscriber_receives_the_final_objects_and_the_end() {
    try_all(|| {
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let subscriber = store.subscribe();
        let listener = thread::spawn(move || block_on(names(subscriber)));
        writer.apply(Event::Apply(object("a", 1)));
        writer.apply(Event::Delete(object("a", 2)));
        writer.apply(Event::Apply(object("b", 3)));
        drop(writer);
        assert_eq!(listener.join().unwrap(), ["b"]);
    });
}

#[test]
fn a_concurrent_subscriber_neither_misses_nor_repeats_changes() {
    try_all(|| {
        let (store, mut writer) = reflector::store::<ConfigMap>();
        let late: Store<ConfigMap> = store.clone();
        let listener = thread::spawn(move || block_on(names(late.subscribe())));
        writer.apply(Event::Apply(object("a", 1)));
        writer.apply(Event::Apply(object("b", 2)));
        drop(writer);
        assert_eq!(listener.join().unwrap(), ["a", "b"]);
        assert_eq!(store.len(), 2);
    });
}

/// Snapshots of `relists`: names with versions. `b` changes, `c` replaces `a`, then all are gone.
const SNAPSHOTS: [&[(&str, u32)]; 4] = [&[], &[("a", 1), ("b", 1)], &[("b", 2), ("c", 2)], &[]];

/// Relists from one snapshot to the next. One is begun twice: what was listed before is abandoned.
fn relists(mut writer: Writer<ConfigMap>) {
    for snapshot in &SNAPSHOTS[1..] {
        writer.apply(Event::Init);
        writer.apply(Event::InitApply(object("abandoned", 9)));
        writer.apply(Event::Init);
        for (name, version) in *snapshot {
            writer.apply(Event::InitApply(object(name, *version)));
        }
        writer.apply(Event::InitDone);
    }
}

/// Objects with their versions.
type Objects = BTreeMap<String, String>;

fn snapshots() -> Vec<Objects> {
    let snapshot = |objects: &&[(&str, u32)]| {
        let objects = objects.iter();
        objects
            .map(|(name, version)| ((*name).to_owned(), version.to_string()))
            .collect()
    };
    SNAPSHOTS.iter().map(snapshot).collect()
}

fn read(objects: &[Arc<ConfigMap>]) -> Objects {
    objects.iter().map(|object| entry(object)).collect()
}

fn entry(object: &ConfigMap) -> (String, String) {
    let meta = &object.metadata;
    (
        meta.name.clone().unwrap_or_default(),
        meta.resource_version.clone().unwrap_or_default(),
    )
}

/// Panics unless each of these is a snapshot, and none is earlier than the one before. The first and the last snapshot
/// are equal.
fn in_order(seen: &[Objects]) {
    let snapshots = snapshots();
    let mut at = 0;
    for objects in seen {
        let next = snapshots[at..].iter().position(|snapshot| snapshot == objects);
        at += next.unwrap_or_else(|| panic!("{objects:?} is no snapshot, or an earlier one: {seen:?}"));
    }
}

/// Returns what the store has, or what an index has under its only value.
fn looks(read_all: impl Fn() -> Vec<Arc<ConfigMap>>) -> Vec<Objects> {
    (0..3).map(|_| read(&read_all())).collect()
}

fn indexed(store: &Store<ConfigMap>) -> Index<ConfigMap> {
    store.index(|_| vec!["all".to_owned()])
}

#[test]
fn readers_of_store_and_indexes_see_whole_snapshots_in_order() {
    try_all(|| {
        let (store, writer) = reflector::store();
        let early = indexed(&store);
        let (state, late) = (store.clone(), store.clone());
        let readers = [
            thread::spawn(move || looks(|| early.get("all"))),
            thread::spawn(move || {
                // Added at any time, even within a relist.
                let index = indexed(&late);
                looks(|| index.get("all"))
            }),
            thread::spawn(move || looks(|| state.state())),
        ];
        relists(writer);
        for reader in readers {
            in_order(&reader.join().unwrap());
        }
        assert!(store.is_empty() && indexed(&store).get("all").is_empty());
    });
}

/// Two reads are not one: the writer may publish between them.
#[test]
fn a_reader_that_joins_two_snapshots_is_found() {
    assert!(is_found(|| {
        let (store, writer) = reflector::store();
        let index = indexed(&store);
        let reader = thread::spawn(move || {
            let mut objects = store.state();
            objects.retain(|object| object.metadata.name.as_deref() != Some("b"));
            let rest = index.get("all").into_iter();
            objects.extend(rest.filter(|object| object.metadata.name.as_deref() == Some("b")));
            vec![read(&objects)]
        });
        relists(writer);
        in_order(&reader.join().unwrap());
    }));
}

/// A subscriber of any time folds to the objects of the store, though it reads the store and an index in between, and
/// gets no change that does not fit what it has.
#[test]
fn a_subscriber_of_relists_folds_to_the_store() {
    try_all(|| {
        let (store, writer) = reflector::store();
        let early = store.subscribe();
        let (late, dropped) = (store.clone(), store.clone());
        let early = thread::spawn(move || block_on(folded(early, |_| true)));
        let late = thread::spawn(move || {
            let index = indexed(&late);
            let folded = block_on(folded(late.subscribe(), |_| true));
            (folded, read(&index.get("all")))
        });
        let dropped = thread::spawn(move || drop(dropped.subscribe()));
        relists(writer);
        assert_eq!(early.join().unwrap(), Ok(Objects::new()));
        assert_eq!(late.join().unwrap(), (Ok(Objects::new()), Objects::new()));
        dropped.join().unwrap();
        assert!(store.is_empty());
    });
}

/// A subscriber that loses the deletes a relist implies.
#[test]
fn a_subscriber_that_loses_changes_is_found() {
    assert!(is_found(|| {
        let (store, writer) = reflector::store();
        let subscriber = store.subscribe();
        let loses = |delta: &Delta<ConfigMap>| !matches!(delta, Delta::Deleted { inferred: true, .. });
        let listener = thread::spawn(move || block_on(folded(subscriber, loses)));
        relists(writer);
        assert_eq!(listener.join().unwrap(), Ok(Objects::new()));
    }));
}

/// A reader that subscribes, and takes the objects of the store as those it began with, counts changes twice.
#[test]
fn a_reader_that_does_not_subscribe_atomically_is_found() {
    assert!(is_found(|| {
        let (store, writer) = reflector::store();
        let listener = thread::spawn(move || {
            let before = read(&store.state());
            (before, block_on(store.subscribe().next()))
        });
        relists(writer);
        // Nothing was there, so the first change is the first object's.
        if let (before, Some(delta)) = listener.join().unwrap()
            && before.is_empty()
        {
            let first = delta.object().metadata.resource_version.as_deref();
            assert_eq!(first, Some("1"), "it missed the first snapshot");
        }
    }));
}

/// Returns true if some schedule panics.
fn is_found(story: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(|| shuttle::check_random(story, SCHEDULES))).is_err()
}

/// Folds the deltas that `passes` lets through. Returns the first that does not fit as an error.
async fn folded(
    mut subscriber: Subscriber<ConfigMap>,
    passes: impl Fn(&Delta<ConfigMap>) -> bool,
) -> Result<Objects, String> {
    let mut objects = Objects::new();
    while let Some(delta) = subscriber.next().await {
        if !passes(&delta) {
            continue;
        }
        let (name, version) = entry(delta.object());
        let had = match &delta {
            Delta::Added(_) | Delta::Modified { .. } => objects.insert(name, version),
            Delta::Deleted { .. } => objects.remove(&name),
        };
        let fits = match &delta {
            Delta::Added(_) => had.is_none(),
            Delta::Modified { old, .. } => had == old.metadata.resource_version,
            // The last state may be one that was not delivered.
            Delta::Deleted { .. } => had.is_some(),
        };
        if !fits {
            return Err(format!("it had {had:?}, and got {delta:?}"));
        }
    }
    Ok(objects)
}

/// Returns the names that remain after folding a subscriber's deltas.
async fn names(mut subscriber: Subscriber<ConfigMap>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(delta) = subscriber.next().await {
        let name = delta.object().metadata.name.clone().unwrap_or_default();
        match delta {
            Delta::Added(_) => names.push(name),
            Delta::Modified { .. } => assert!(names.contains(&name), "it changed before it was there"),
            Delta::Deleted { .. } => names.retain(|known| *known != name),
        }
    }
    names.sort();
    names
}
