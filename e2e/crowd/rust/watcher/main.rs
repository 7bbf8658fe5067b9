//! A watcher, as `examples/pod_watcher.rs` of kube-rs:
//! https://github.com/kube-rs/kube/blob/main/examples/pod_watcher.rs

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    api::{Api, ResourceExt},
    runtime::{WatchStreamExt, watcher},
};
use std::pin::pin;
use tracing::info;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let api = Api::<ConfigMap>::namespaced(client, "default");

    let mut stream = pin!(
        watcher(api, watcher::Config::default())
            .default_backoff()
            .applied_objects()
    );
    loop {
        match stream.try_next().await {
            Ok(Some(object)) => info!("saw {}", object.name_any()),
            Ok(None) => return Ok(()),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}
