//! Our watcher on the ConfigMaps of all namespaces, printing one line of JSON per event: `watcher 4` has four loops, which
//! share a client.
//!
//! It repairs nothing. The lines are described in `e2e/src/client.rs`.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use futures::{StreamExt as _, future};
use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};
use watcher::{Event, watcher};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    end_with_stdin();
    let loops: usize = std::env::args().nth(1).ok_or("usage: watcher LOOPS")?.parse()?;
    let mut config = Config::infer().await?;
    // The watcher retries itself.
    config.default_retry = false;
    // kube-client sends no User-Agent, by which the judge of the wire identifies clients.
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static("watcher")));
    let config_maps: Api<ConfigMap> = Api::all(Client::try_from(config)?);
    future::join_all((0..loops).map(|_| follow(config_maps.clone()))).await;
    Ok(())
}

async fn follow(config_maps: Api<ConfigMap>) {
    let mut held = BTreeMap::<String, ConfigMap>::new();
    let mut next = BTreeMap::new();
    let mut events = std::pin::pin!(watcher(config_maps, watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => next.clear(),
            Ok(Event::InitApply(object)) => {
                next.insert(object.name_any(), object);
            }
            Ok(Event::InitDone) => {
                for name in held.keys().filter(|name| !next.contains_key(*name)) {
                    print_event(&json!({"event": "deleted", "name": name}));
                }
                for (name, object) in &next {
                    print_state(held.get(name), object);
                }
                held = std::mem::take(&mut next);
                print_event(&json!({"event": "synced"}));
            }
            Ok(Event::Apply(object)) => {
                print_state(held.get(&object.name_any()), &object);
                held.insert(object.name_any(), object);
            }
            Ok(Event::Delete(object)) => {
                held.remove(&object.name_any());
                print_event(&json!({"event": "deleted", "name": object.name_any()}));
            }
            Err(error) => print_event(&json!({"event": "error", "message": error.to_string()})),
        }
    }
}

/// Prints an object that is new or has changed.
fn print_state(before: Option<&ConfigMap>, object: &ConfigMap) {
    let event = match before {
        None => "added",
        Some(before) if before.resource_version() != object.resource_version() => "updated",
        Some(_) => return,
    };
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
