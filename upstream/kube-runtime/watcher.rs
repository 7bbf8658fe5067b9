//! A watcher with the default backoff, as kube-rs documents it. It must not know what it is tested with.

use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let api = Api::<ConfigMap>::namespaced(Client::try_default().await?, "default");
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => println!("{event:?}"),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
