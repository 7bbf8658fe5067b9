//! Tests of lock interleavings of writer, readers, waiters and subscribers of a store: shuttle replaces the standard
//! library's locks and runs the threads in many random schedules.
//!
//! `cargo test -p watcher --features shuttle --test interleavings`. A lost wake-up fails as a deadlock, with its
//! schedule.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use shuttle::future::block_on;
use shuttle::thread;
use watcher::Event;
use watcher::reflector::{self, Delta, Store, Subscriber, WriterDropped};

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
