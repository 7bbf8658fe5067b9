//! kube-runtime's `Controller` driven by this workspace's streams against the fake: each way its "Streams" chapter shows
//! of making a stream and of giving it to a controller.
//!
//! Real sockets and real time, and no sleep: a test waits for what the controller or the stream says.

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

/// Longer than anything here takes. Whoever waits in vain says for what.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with nothing in it, and a client of it.
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

    /// A ConfigMap, as the server made it.
    async fn create_map(&self, name: &str) -> ConfigMap {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap");
        self.maps()
            .create(&PostParams::default(), &map)
            .await
            .expect("it is created")
    }

    /// A Secret that a ConfigMap owns.
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

    /// Every watch ends and its version is gone: whoever follows must read the set anew.
    fn expire(&self) {
        self.server.edge().control(Control::Compact);
        self.server.edge().control(Control::RestartWatchCaches);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a reconciler here never fails")]
struct Never;

/// Names, as they are said.
struct Said {
    sender: UnboundedSender<String>,
    receiver: UnboundedReceiver<String>,
}

impl Said {
    fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver }
    }

    async fn wait_for(&mut self, name: &str) {
        let found = async {
            while let Some(said) = self.receiver.next().await {
                if said == name {
                    return;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        assert!(found.is_ok(), "{name:?} was never said");
    }
}

/// Runs a controller whose reconciler says the names it is given.
fn run(controller: Controller<ConfigMap>, said: &Said) {
    let sender = said.sender.clone();
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

fn spawn_names<K>(stream: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static, said: &Said)
where
    K: kube_core::Resource + Send + 'static,
{
    let sender = said.sender.clone();
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
        let mut said = Said::new();
        spawn_names(
            watcher(world.maps(), Config::default())
                .applied_objects()
                .default_backoff(),
            &said,
        );
        said.wait_for("first").await;
        world.create_map("second").await;
        said.wait_for("second").await;
    });
}

#[test]
fn metadata_is_observed_modified_and_filtered() {
    block_on(async {
        let world = World::new().await;
        let mut said = Said::new();
        let metadata = metadata_watcher(world.maps(), Config::default())
            .modify(|map: &mut PartialObjectMeta<ConfigMap>| map.metadata.managed_fields = None)
            .touched_objects()
            .predicate_filter(
                predicates::labels.combine(predicates::annotations),
                PredicateConfig::default(),
            );
        spawn_names(metadata, &said);
        world.create_map("map").await;
        said.wait_for("map").await;
        world
            .maps()
            .delete("map", &DeleteParams::default())
            .await
            .expect("it is deleted");
        said.wait_for("map").await;
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
        let mut said = Said::new();
        run(Controller::for_stream(maps, reader), &said);
        world.create_map("first").await;
        said.wait_for("first").await;

        // What a controller lives through, and kube-runtime's own watcher does not always.
        world.expire();
        world.create_map("second").await;
        said.wait_for("second").await;
    });
}

#[test]
fn a_controller_owns_a_stream_of_metadata() {
    block_on(async {
        let world = World::new().await;
        let owner = world.create_map("owner").await;
        let owned = metadata_watcher(world.secrets(), Config::default()).touched_objects();
        let mut said = Said::new();
        let maps = Controller::new(world.maps(), kube_runtime::watcher::Config::default());
        run(maps.owns_stream(owned.kube_runtime_objects()), &said);
        said.wait_for("owner").await;
        world.create_owned("child", &owner).await;
        said.wait_for("owner").await;
        world
            .secrets()
            .delete("child", &DeleteParams::default())
            .await
            .expect("it is deleted");
        said.wait_for("owner").await;
    });
}

/// kube-runtime's `owns` never hears of a child that was deleted while nobody watched (its docs say: use finalizers).
#[test]
fn a_controller_hears_of_a_child_that_was_deleted_in_a_gap() {
    block_on(async {
        let world = World::new().await;
        let owner = world.create_map("owner").await;
        let child = world.create_owned("child", &owner).await;
        let (children, writer) = reflector::store();
        // What a watcher says whose watch expired: the deletion fell between two of them.
        let (events, heard) = unbounded();
        let owned = heard.map(Ok).deltas(writer).touched_objects();
        let mut said = Said::new();
        // The owner itself is not watched: only the child can be why it is reconciled.
        let (reader, mut owners) = kube_reflector::store();
        for event in [KubeEvent::Init, KubeEvent::InitApply(owner), KubeEvent::InitDone] {
            owners.apply_watcher_event(&event);
        }
        let silent = futures::stream::pending::<Result<ConfigMap, kube_runtime::watcher::Error>>();
        run(
            Controller::for_stream(silent, reader).owns_stream(owned.kube_runtime_objects()),
            &said,
        );

        for event in [Event::Init, Event::InitApply(child), Event::InitDone] {
            events.unbounded_send(event).expect("it is heard");
        }
        said.wait_for("owner").await;
        assert_eq!(children.len(), 1);
        for event in [Event::Init, Event::InitDone] {
            events.unbounded_send(event).expect("it is heard");
        }
        said.wait_for("owner").await;
        assert_eq!(children.len(), 0);
    });
}

#[test]
fn a_controller_watches_a_stream() {
    block_on(async {
        let world = World::new().await;
        world.create_map("child-of").await;
        let secrets = watcher(world.secrets(), Config::default()).applied_objects();
        let mut said = Said::new();
        let maps = Controller::new(world.maps(), kube_runtime::watcher::Config::default());
        let mapped = maps.watches_stream(secrets.kube_runtime_objects(), |secret: Secret| {
            secret
                .metadata
                .labels
                .unwrap_or_default()
                .remove("for")
                .map(|name| ObjectRef::new(&name).within("default"))
        });
        run(mapped, &said);
        said.wait_for("child-of").await;
        let secret = json!({"metadata": {"name": "s", "labels": {"for": "child-of"}}});
        let secret = serde_json::from_value(secret).expect("a Secret");
        world
            .secrets()
            .create(&PostParams::default(), &secret)
            .await
            .expect("it is created");
        said.wait_for("child-of").await;
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
        let (mut here, mut there) = (Said::new(), Said::new());
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
fn a_store_says_up_to_where_it_is_synced() {
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
        // It says so when it is asked for what comes after.
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
