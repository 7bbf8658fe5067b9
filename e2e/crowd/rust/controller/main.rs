//! A controller whose reconcile does nothing, as the README of kube-rs:
//! https://github.com/kube-rs/kube#controllers

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Client,
    api::Api,
    runtime::{
        controller::{Action, Controller},
        watcher,
    },
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tracing::{info, warn};

async fn reconcile(_object: Arc<ConfigMap>, _context: Arc<()>) -> Result<Action, Infallible> {
    Ok(Action::await_change())
}

fn error_policy(_object: Arc<ConfigMap>, _error: &Infallible, _context: Arc<()>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let api = Api::<ConfigMap>::namespaced(client, "default");

    Controller::new(api, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(()))
        .for_each(|result| async move {
            match result {
                Ok(object) => info!("reconciled {object:?}"),
                Err(error) => warn!("reconcile failed: {error}"),
            }
        })
        .await;
    Ok(())
}
