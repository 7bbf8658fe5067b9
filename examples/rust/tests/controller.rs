//! The controller against a server in its own process, in virtual time: its watch ends with 410 Gone.

use example_controller::run;
use fake_apiserver_testing::{FakeApiserver, List, Patch, Watch};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn the_controller_survives_a_410() {
    let server = FakeApiserver::builder().in_memory().start().await;
    let controller = tokio::spawn(run(server.client()));
    server.wait_for(Watch::of("configmaps")).await;
    server.apply(config_map("before"));
    server.wait_for(Patch::of("configmaps").named("before")).await;

    assert_eq!(server.expire_watches(), 1, "the controller has a watch open");
    server.apply(config_map("after"));
    server.wait_for(Patch::of("configmaps").named("after")).await;

    server.expect(List::of("configmaps"), 2);
    server.assert_clean();
    assert!(!controller.is_finished());
}

fn config_map(name: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "default", "labels": {"greet": "yes"}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}
