//! A reflector with a store, as `examples/node_reflector.rs` of kube-rs:
//! https://github.com/kube-rs/kube/blob/main/examples/node_reflector.rs

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    api::{Api, ResourceExt},
    runtime::{WatchStreamExt, reflector, watcher},
};
use std::{future::ready, time::Duration};
use tracing::{info, warn};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let api = Api::<ConfigMap>::namespaced(client, "default");

    let (reader, writer) = reflector::store::<ConfigMap>();
    tokio::spawn(async move {
        reader.wait_until_ready().await.unwrap();
        loop {
            let names: Vec<_> = reader.state().iter().map(|object| object.name_any()).collect();
            info!("{} configmaps: {names:?}", names.len());
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    });

    watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .for_each(|object| {
            match object {
                Ok(object) => info!("saw {}", object.name_any()),
                Err(error) => warn!("{error}"),
            }
            ready(())
        })
        .await;
    Ok(())
}
