//! A controller with kube-runtime: a ConfigMap labelled `greet=yes` gets the annotation `greeting`.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Client, Error, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde_json::json;

/// Greets ConfigMaps in the default namespace until a patch fails.
///
/// # Errors
///
/// A patch failed.
pub async fn run(client: Client) -> Result<(), Error> {
    let api = Api::<ConfigMap>::default_namespaced(client);
    let selected = watcher::Config::default().labels("greet=yes");
    let mut changes = watcher(api.clone(), selected)
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(change) = changes.next().await {
        // The watcher recovers from errors.
        if let Ok(object) = change {
            greet(&api, &object).await?;
        }
    }
    Ok(())
}

async fn greet(api: &Api<ConfigMap>, object: &ConfigMap) -> Result<(), Error> {
    if object.annotations().contains_key("greeting") {
        return Ok(());
    }
    let name = object.name_any();
    let patch = json!({"metadata": {"annotations": {"greeting": format!("hello {name}")}}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map(drop)
}
