//! kube-runtime on the ConfigMaps of all namespaces, printing one line of JSON per event: `kube-runtime reflector` prints its
//! stream and its store, `kube-runtime controller` the objects to reconcile. `kube-runtime without-backoff` reads one namespace, and
//! forgets `default_backoff`, which is its mistake and not the library's.
//!
//! Otherwise it uses the library as documented and repairs nothing. The lines are described in `e2e/src/client.rs`.

use std::convert::Infallible;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, ResourceExt as _};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::controller::{Action, Controller};
use kube_runtime::finalizer::{self, finalizer};
use kube_runtime::reflector::{self, Store, reflector};
use kube_runtime::watcher::{self, Event, watcher};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1);
    // `fake-apiserver run` gives it no standard input, and ends it by SIGTERM.
    if mode.as_deref() != Some("without-backoff") {
        end_with_stdin();
    }
    let client = Client::try_default().await?;
    let config_maps: Api<ConfigMap> = Api::all(client.clone());
    match mode.as_deref() {
        Some("reflector") => reflect(config_maps).await,
        Some("controller") => control(config_maps).await,
        Some("without-backoff") => without_backoff(Api::default_namespaced(client)).await,
        _ => return Err("usage: kube-runtime reflector | controller | without-backoff".into()),
    }
    Ok(())
}

async fn reflect(config_maps: Api<ConfigMap>) {
    let (store, writer) = reflector::store();
    let events = watcher(config_maps, watcher::Config::default()).default_backoff();
    print_stream(store, reflector(writer, events)).await;
}

async fn without_backoff(config_maps: Api<ConfigMap>) {
    let mut events = std::pin::pin!(watcher(config_maps, watcher::Config::default()));
    while events.next().await.is_some() {}
}

/// Prints the events of a stream. The store does not distinguish additions from updates; the printed lines do.
async fn print_stream(
    store: Store<ConfigMap>,
    events: impl Stream<Item = watcher::Result<Event<ConfigMap>>>,
) {
    let mut known = std::collections::BTreeMap::new();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => {
                let before = known.insert(object.name_any(), object.resource_version());
                print_object(if before.is_some() { "updated" } else { "added" }, &object);
            }
            Ok(Event::Delete(object)) => {
                known.remove(&object.name_any());
                print_object("deleted", &object);
            }
            // The store is complete only at `InitDone`.
            Ok(Event::Init | Event::InitApply(_)) => {}
            Ok(Event::InitDone) => {
                let held = store.state();
                let gone: Vec<String> = known
                    .keys()
                    .filter(|name| !held.iter().any(|object| object.name_any() == **name))
                    .cloned()
                    .collect();
                for name in gone {
                    known.remove(&name);
                    print_event(&json!({"event": "deleted", "name": name}));
                }
                for object in held {
                    let version = object.resource_version();
                    match known.insert(object.name_any(), version.clone()) {
                        None => print_object("added", &object),
                        Some(before) if before != version => print_object("updated", &object),
                        Some(_) => {}
                    }
                }
                print_event(&json!({"event": "synced"}));
            }
            Err(error) => print_event(&json!({"event": "error", "message": error.to_string()})),
        }
    }
}

/// A controller reconciles additions and updates alike. It receives deletions only for objects with its finalizer, as the
/// helper of the library sets it.
async fn control(config_maps: Api<ConfigMap>) {
    let client = config_maps.clone().into_client();
    let reconcile = async |object: Arc<ConfigMap>, client: Arc<Client>| {
        let namespace = object.namespace().unwrap_or_default();
        let own = Api::namespaced(Client::clone(&client), &namespace);
        finalizer(&own, "e2e.example.com/printed", object, async |event| {
            match event {
                finalizer::Event::Apply(object) => print_object("reconcile", &object),
                finalizer::Event::Cleanup(object) => print_object("deleted", &object),
            }
            Ok::<_, Infallible>(Action::await_change())
        })
        .await
    };
    let retry = |_: Arc<ConfigMap>, _: &finalizer::Error<Infallible>, _: Arc<Client>| {
        Action::requeue(Duration::from_secs(1))
    };
    let controller = Controller::new(config_maps, watcher::Config::default());
    let mut outcomes = std::pin::pin!(controller.run(reconcile, retry, Arc::new(client)));
    while let Some(outcome) = outcomes.next().await {
        if let Err(error) = outcome {
            print_event(&json!({"event": "error", "message": error.to_string()}));
        }
    }
}

fn print_object(event: &str, object: &ConfigMap) {
    let value = object.labels().get("v").map(String::as_str).unwrap_or_default();
    print_event(&json!({"event": event, "name": object.name_any(), "value": value}));
}

#[expect(clippy::print_stdout, reason = "the lines are what the program is for")]
fn print_event(line: &Value) {
    println!("{line}");
}

/// Exits when standard input is closed by the parent process.
fn end_with_stdin() {
    std::thread::spawn(|| {
        // A read error means the end, too.
        drop(io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
}
