//! The watcher of the README of kube-rs, word by word: its first error, also a watch that expired, ends the program.
//! https://github.com/kube-rs/kube#watchers

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    api::{Api, ResourceExt},
    runtime::{WatchStreamExt, watcher},
};
use std::pin::pin;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let api = Api::<ConfigMap>::namespaced(client, "default");
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let mut stream = pin!(stream);
    while let Some(event) = stream.try_next().await? {
        println!("Applied: {}", event.name_any());
    }
    Ok(())
}
