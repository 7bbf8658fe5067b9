//! Stories of stores and subscribers, with real tasks and wakers, and prepared events. A test that polls manually
//! would hide missing wake-ups.

use std::future::Future;
use std::pin::pin;

use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::task::JoinHandle;

/// Scheduler turns that a task gets after it should have been woken.
const TURNS: usize = 100;

fn object(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(name.to_owned());
    object.metadata.resource_version = Some("1".to_owned());
    object
}

fn name(object: &ConfigMap) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

fn block_on<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime
        .expect("a runtime without I/O asks the system for nothing")
        .block_on(story)
}

async fn let_others_run() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

fn all_done(waiting: &[JoinHandle<()>]) -> Result<(), String> {
    let done = waiting.iter().filter(|task| task.is_finished()).count();
    if done == waiting.len() {
        Ok(())
    } else {
        Err(format!("{done} of {} are woken", waiting.len()))
    }
}

fn expect_only(mut names_sent: UnboundedReceiver<String>, wanted: &str) -> Result<(), String> {
    let mut names = Vec::new();
    while let Ok(name) = names_sent.try_recv() {
        names.push(name);
    }
    if names.iter().any(|name| name == wanted) {
        Ok(())
    } else if names.is_empty() {
        Err("it receives nothing".to_owned())
    } else {
        Err(format!("it receives {} only", names.join(", ")))
    }
}

pub(super) mod theirs {
    use kube_runtime::WatchStreamExt as _;
    use kube_runtime::reflector;
    use kube_runtime::watcher::{Error, Event};

    use super::*;

    pub(in super::super) fn three_that_wait() -> Result<(), String> {
        block_on(async {
            let (store, mut writer) = reflector::store::<ConfigMap>();
            let waiting = [(); 3].map(|()| {
                let store = store.clone();
                tokio::spawn(async move { assert!(store.wait_until_ready().await.is_ok()) })
            });
            let_others_run().await;
            writer.apply_watcher_event(&Event::Init);
            writer.apply_watcher_event(&Event::InitDone);
            let_others_run().await;
            all_done(&waiting)
        })
    }

    pub(in super::super) fn a_short_life() -> Result<(), String> {
        block_on(async {
            let (_store, writer) = reflector::store_shared::<ConfigMap>(8);
            let mut subscriber = writer.subscribe().expect("a shared store has subscribers");
            let events = [
                Event::Init,
                Event::InitDone,
                Event::Apply(object("short")),
                Event::Delete(object("short")),
                Event::Apply(object("next")),
            ];
            let events = futures::stream::iter(events.map(Ok::<_, Error>));
            let mut root = pin!(events.chain(futures::stream::pending()).reflect_shared(writer));
            for _ in 0..5 {
                drop(root.next().await);
            }
            let (sender, names) = unbounded();
            tokio::spawn(async move {
                while let Some(object) = subscriber.next().await {
                    drop(sender.unbounded_send(name(&object)));
                }
            });
            let_others_run().await;
            expect_only(names, "next")
        })
    }

    pub(in super::super) fn a_death_in_a_gap() -> Result<(), String> {
        block_on(async {
            let events = [
                Event::Init,
                Event::InitApply(object("a")),
                Event::InitDone,
                Event::Init,
                Event::InitDone,
            ];
            let events = futures::stream::iter(events.map(Ok::<_, Error>));
            let touched = events.touched_objects().count().await;
            if touched > 1 {
                Ok(())
            } else {
                Err("it is not reported".to_owned())
            }
        })
    }
}

pub(super) mod ours {
    use watcher::reflector::{self, Delta};
    use watcher::{Error, Event, WatchStreamExt as _};

    use super::*;

    pub(in super::super) fn three_that_wait() -> Result<(), String> {
        block_on(async {
            let (store, mut writer) = reflector::store::<ConfigMap>();
            let waiting = [(); 3].map(|()| {
                let store = store.clone();
                tokio::spawn(async move { assert!(store.wait_until_ready().await.is_ok()) })
            });
            let_others_run().await;
            writer.apply_watcher_event(&Event::Init);
            writer.apply_watcher_event(&Event::InitDone);
            let_others_run().await;
            all_done(&waiting)
        })
    }

    pub(in super::super) fn a_short_life() -> Result<(), String> {
        block_on(async {
            let (_store, writer) = reflector::store::<ConfigMap>();
            let mut subscriber = writer.subscribe();
            let events = [
                Event::Init,
                Event::InitDone,
                Event::Apply(object("short")),
                Event::Delete(object("short")),
                Event::Apply(object("next")),
            ];
            let events = futures::stream::iter(events.map(Ok::<_, Error>));
            let mut root = pin!(events.chain(futures::stream::pending()).reflect_shared(writer));
            for _ in 0..5 {
                drop(root.next().await);
            }
            let (sender, names) = unbounded();
            tokio::spawn(async move {
                while let Some(delta) = subscriber.next().await {
                    if let Delta::Added(object) = delta {
                        drop(sender.unbounded_send(name(&object)));
                    }
                }
            });
            let_others_run().await;
            expect_only(names, "next")
        })
    }

    pub(in super::super) fn a_death_in_a_gap() -> Result<(), String> {
        block_on(async {
            let events = [
                Event::Init,
                Event::InitApply(object("a")),
                Event::InitDone,
                Event::Init,
                Event::InitDone,
            ];
            let events = futures::stream::iter(events.map(Ok::<_, Error>));
            let (_store, writer) = reflector::store();
            let deltas: Vec<_> = events.deltas(writer).collect().await;
            let is_reported = deltas
                .iter()
                .any(|delta| matches!(delta, Ok(Delta::Deleted { inferred: true, .. })));
            if is_reported {
                Ok(())
            } else {
                Err("it is not reported".to_owned())
            }
        })
    }
}
