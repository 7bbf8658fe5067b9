//! An operator that copies each ConfigMap to a Secret that it owns: `owns` and server-side apply as
//! `examples/configmapgen_controller.rs`, finalizer as `examples/secret_syncer.rs`, events as the documentation of `Recorder`.
//! https://github.com/kube-rs/kube/blob/main/examples/configmapgen_controller.rs
//! https://github.com/kube-rs/kube/blob/main/examples/secret_syncer.rs
//! https://docs.rs/kube/5.0.0/kube/runtime/events/struct.Recorder.html

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Client,
    api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, Resource, ResourceExt},
    runtime::{
        controller::{Action, Controller},
        events::{self, EventType, Recorder, Reporter},
        finalizer::{self, Event, finalizer},
        watcher,
    },
};
use std::{sync::Arc, time::Duration};
use thiserror::Error;
use tracing::{info, warn};

const FINALIZER: &str = "configmap-secret-syncer.crowd.dev/cleanup";

#[derive(Debug, Error)]
enum Error {
    #[error("Kubernetes: {0}")]
    Kube(#[source] kube::Error),
    #[error("finalizer: {0}")]
    Finalizer(#[source] Box<finalizer::Error<Error>>),
}

struct Context {
    client: Client,
    recorder: Recorder,
}

fn secret_name(map: &ConfigMap) -> String {
    format!("cmsyncer-{}", map.name_any())
}

async fn apply(map: Arc<ConfigMap>, secrets: &Api<Secret>, context: &Context) -> Result<Action, Error> {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(&map)),
            owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        string_data: map.data.clone(),
        data: map.binary_data.clone(),
        ..Secret::default()
    };
    secrets
        .patch(
            &secret_name(&map),
            &PatchParams::apply("configmap-secret-syncer.crowd.dev"),
            &Patch::Apply(&secret),
        )
        .await
        .map_err(Error::Kube)?;
    publish(&map, context, "Synced", "Apply").await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

async fn cleanup(map: Arc<ConfigMap>, secrets: &Api<Secret>, context: &Context) -> Result<Action, Error> {
    match secrets.delete(&secret_name(&map), &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        Err(error) => return Err(Error::Kube(error)),
    }
    publish(&map, context, "Removed", "Cleanup").await?;
    Ok(Action::await_change())
}

async fn publish(map: &ConfigMap, context: &Context, reason: &str, action: &str) -> Result<(), Error> {
    context
        .recorder
        .publish(
            &events::Event {
                type_: EventType::Normal,
                reason: reason.into(),
                note: Some(format!("Secret {}", secret_name(map))),
                action: action.into(),
                secondary: None,
            },
            &map.object_ref(&()),
        )
        .await
        .map_err(Error::Kube)
}

async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Error> {
    let namespace = map.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
    finalizer(&maps, FINALIZER, map, |event| async {
        match event {
            Event::Apply(map) => apply(map, &secrets, &context).await,
            Event::Cleanup(map) => cleanup(map, &secrets, &context).await,
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

fn error_policy(_map: Arc<ConfigMap>, error: &Error, _context: Arc<Context>) -> Action {
    warn!("{error}");
    Action::requeue(Duration::from_secs(5))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt::init();
    let client = Client::try_default().await?;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let secrets = Api::<Secret>::namespaced(client.clone(), "default");
    let reporter = Reporter {
        controller: "configmap-secret-syncer".into(),
        instance: None,
    };
    let recorder = Recorder::new(client.clone(), reporter);

    Controller::new(maps, watcher::Config::default())
        .owns(secrets, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client, recorder }))
        .for_each(|result| async move {
            match result {
                Ok(object) => info!("reconciled {object:?}"),
                Err(error) => warn!("reconcile failed: {error}"),
            }
        })
        .await;
    Ok(())
}
