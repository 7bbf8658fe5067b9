//! kube-runtime's `Controller` driven by this workspace's streams against the fake: every way of creating a stream
//! and passing it to a controller in its "Streams" chapter.
//!
//! Real sockets and real time, without sleeps: tests wait for reports of the controller or the stream.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::net::Standalone;
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::Control;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client};
use kube_core::PartialObjectMeta;
use kube_runtime::controller::{Action, Controller};
use kube_runtime::reflector::{self as kube_reflector, ObjectRef};
use kube_runtime::watcher::Event as KubeEvent;
use serde_json::json;
use watcher::ext::PredicateConfig;
use watcher::interop::KubeRuntimeExt as _;
use watcher::{
    Config, Event, Predicate as _, WatchStreamExt as _, metadata_watcher, predicates, reflector, watcher,
};

/// Longer than any step takes. On timeout the test reports what it waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// An empty server and a client.
struct World {
    server: Standalone,
    client: Client,
}

impl World {
    async fn new() -> Self {
        let server = Standalone::start(ServerSettings::default())
            .await
            .expect("a port is free");
        let url = server.url().parse().expect("an address is a URL");
        let client = Client::try_from(kube_client::Config::new(url)).expect("plain HTTP needs nothing");
        Self { server, client }
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates a ConfigMap; returns it as stored.
    async fn create_map(&self, name: &str) -> ConfigMap {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap");
        self.maps()
            .create(&PostParams::default(), &map)
            .await
            .expect("it is created")
    }

    /// Creates a Secret owned by a ConfigMap.
    async fn create_owned(&self, name: &str, owner: &ConfigMap) -> Secret {
        let owner = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": true,
        });
        let secret = json!({"metadata": {"name": name, "ownerReferences": [owner]}});
        let secret = serde_json::from_value(secret).expect("a Secret");
        self.secrets()
            .create(&PostParams::default(), &secret)
            .await
            .expect("it is created")
    }

    async fn touch(&self, name: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
        self.maps()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .expect("it is patched");
    }

    /// Ends every watch and expires its version, so that clients must relist.
    fn expire(&self) {
        self.server.edge().control(Control::Compact);
        self.server.edge().control(Control::RestartWatchCaches);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a reconciler here never fails")]
struct Never;

/// Reported names.
struct Names {
    sender: UnboundedSender<String>,
    receiver: UnboundedReceiver<String>,
}

impl Names {
    fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver }
    }

    async fn wait_for(&mut self, name: &str) {
        let found = async {
            while let Some(name_reported) = self.receiver.next().await {
                if name_reported == name {
                    return;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        assert!(found.is_ok(), "{name:?} was never reported");
    }
}

/// Runs a controller whose reconciler reports names.
fn run(controller: Controller<ConfigMap>, names: &Names) {
    let sender = names.sender.clone();
    let running = controller.run(
        move |map: Arc<ConfigMap>, _| {
            let sent = sender.unbounded_send(map.metadata.name.clone().unwrap_or_default());
            async move {
                drop(sent);
                Ok::<_, Never>(Action::await_change())
            }
        },
        |_, _, _| Action::await_change(),
        Arc::new(()),
    );
    tokio::spawn(running.for_each(|_| async {}));
}

fn spawn_names<K>(stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static, names: &Names)
where
    K: kube_core::Resource + Send + 'static,
{
    let sender = names.sender.clone();
    tokio::spawn(stream.for_each(move |object| {
        if let Ok(object) = object {
            drop(sender.unbounded_send(object.meta().name.clone().unwrap_or_default()));
        }
        std::future::ready(())
    }));
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn a_stream_is_observed_directly() {
    block_on(async {
        let world = World::new().await;
        world.create_map("first").await;
        let mut names = Names::new();
        spawn_names(
            watcher(world.maps(), Config::default())
                .applied_objects()
                .default_backoff(),
            &names,
        );
        names.wait_for("first").await;
        world.create_map("second").await;
        names.wait_for("second").await;
    });
}

#[test]
fn metadata_is_observed_modified_and_filtered() {
    block_on(async {
        let world = World::new().await;
        let mut names = Names::new();
        let metadata = metadata_watcher(world.maps(), Config::default())
            .modify(|map: &mut PartialObjectMeta<ConfigMap>| map.metadata.managed_fields = None)
            .touched_objects()
            .predicate_filter(
                predicates::labels.combine(predicates::annotations),
                PredicateConfig::default(),
            );
        spawn_names(metadata, &names);
        world.create_map("map").await;
        names.wait_for("map").await;
        world
            .maps()
            .delete("map", &DeleteParams::default())
            .await
            .expect("it is deleted");
        names.wait_for("map").await;
    });
}

#[test]
fn a_controller_runs_for_a_stream() {
    block_on(async {
        let world = World::new().await;
        let (reader, writer) = kube_reflector::store();
        let maps = watcher(world.maps(), Config::default())
            .default_backoff()
            .kube_runtime_reflect(writer)
            .applied_objects()
            .kube_runtime_objects();
        let mut names = Names::new();
        run(Controller::for_stream(maps, reader), &names);
        world.create_map("first").await;
        names.wait_for("first").await;

        // kube-runtime's own watcher does not always survive this.
        world.expire();
        world.create_map("second").await;
        names.wait_for("second").await;
    });
}

#[test]
fn a_controller_owns_a_stream_of_metadata() {
    block_on(async {
        let world = World::new().await;
        let owner = world.create_map("owner").await;
        let owned = metadata_watcher(world.secrets(), Config::default()).touched_objects();
        let mut names = Names::new();
        let maps = Controller::new(world.maps(), kube_runtime::watcher::Config::default());
        run(maps.owns_stream(owned.kube_runtime_objects()), &names);
        names.wait_for("owner").await;
        world.create_owned("child", &owner).await;
        names.wait_for("owner").await;
        world
            .secrets()
            .delete("child", &DeleteParams::default())
            .await
            .expect("it is deleted");
        names.wait_for("owner").await;
    });
}

/// kube-runtime's `owns` does not report a child that was deleted between two watches (its docs recommend
/// finalizers).
#[test]
fn a_controller_reconciles_after_a_child_was_deleted_between_watches() {
    block_on(async {
        let world = World::new().await;
        let owner = world.create_map("owner").await;
        let child = world.create_owned("child", &owner).await;
        let (children, writer) = reflector::store();
        // Errors reported by a watcher whose watch expired: the deletion was between two watches.
        let (events, received) = unbounded();
        let owned = received.map(Ok).deltas(writer).touched_objects();
        let mut names = Names::new();
        // The owner itself is not watched: only the child can trigger its reconciliation.
        let (reader, mut owners) = kube_reflector::store();
        for event in [KubeEvent::Init, KubeEvent::InitApply(owner), KubeEvent::InitDone] {
            owners.apply_watcher_event(&event);
        }
        let silent = futures::stream::pending::<Result<ConfigMap, kube_runtime::watcher::Error>>();
        run(
            Controller::for_stream(silent, reader).owns_stream(owned.kube_runtime_objects()),
            &names,
        );

        for event in [Event::Init, Event::InitApply(child), Event::InitDone] {
            events.unbounded_send(event).expect("it is heard");
        }
        names.wait_for("owner").await;
        assert_eq!(children.len(), 1);
        for event in [Event::Init, Event::InitDone] {
            events.unbounded_send(event).expect("it is heard");
        }
        names.wait_for("owner").await;
        assert_eq!(children.len(), 0);
    });
}

#[test]
fn a_controller_watches_a_stream() {
    block_on(async {
        let world = World::new().await;
        world.create_map("child-of").await;
        let secrets = watcher(world.secrets(), Config::default()).applied_objects();
        let mut names = Names::new();
        let maps = Controller::new(world.maps(), kube_runtime::watcher::Config::default());
        let mapped = maps.watches_stream(secrets.kube_runtime_objects(), |secret: Secret| {
            secret
                .metadata
                .labels
                .unwrap_or_default()
                .remove("for")
                .map(|name| ObjectRef::new(&name).within("default"))
        });
        run(mapped, &names);
        names.wait_for("child-of").await;
        let secret = json!({"metadata": {"name": "s", "labels": {"for": "child-of"}}});
        let secret = serde_json::from_value(secret).expect("a Secret");
        world
            .secrets()
            .create(&PostParams::default(), &secret)
            .await
            .expect("it is created");
        names.wait_for("child-of").await;
    });
}

#[test]
fn two_controllers_share_a_stream() {
    block_on(async {
        let world = World::new().await;
        let (_maps, writer) = reflector::store();
        let (one, other) = (writer.subscribe(), writer.subscribe());
        let (reader, kube_writer) = kube_reflector::store();
        let events = watcher(world.maps(), Config::default()).reflect_shared(writer);
        let events = events.kube_runtime_reflect(kube_writer);
        tokio::spawn(events.for_each(|_| async {}));
        let (mut here, mut there) = (Names::new(), Names::new());
        run(
            Controller::for_shared_stream(one.touched_objects(), reader.clone()),
            &here,
        );
        run(
            Controller::for_shared_stream(other.touched_objects(), reader),
            &there,
        );
        world.create_map("map").await;
        here.wait_for("map").await;
        there.wait_for("map").await;
        world.touch("map").await;
        here.wait_for("map").await;
        there.wait_for("map").await;
    });
}

#[test]
fn a_store_reports_the_version_it_is_synced_to() {
    block_on(async {
        let world = World::new().await;
        let created = world.create_map("map").await;
        let (maps, mut writer) = reflector::store();
        let events = watcher(world.maps(), Config::default());
        writer.follow(events.progress());
        let mut events = std::pin::pin!(events.reflect(writer).applied_objects());
        assert!(maps.synced().is_none());
        assert!(events.try_next().await.expect("no error").is_some());
        world.touch("map").await;
        assert!(events.try_next().await.expect("no error").is_some());
        let (mut synced, version) = (None, maps.state()[0].metadata.resource_version.clone());
        // Progress is published on the next poll.
        while synced.is_none() {
            let _ = futures::poll!(events.next());
            synced = maps
                .synced()
                .filter(|synced| Some(&synced.resource_version) == version.as_ref());
            tokio::task::yield_now().await;
        }
        assert_ne!(created.metadata.resource_version, version);
    });
}
