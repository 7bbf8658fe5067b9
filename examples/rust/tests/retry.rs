//! The test of the README, compiled and run; the last test compares the two.

use fake_apiserver_testing::{FakeApiserver, List, Rule, Status};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, api::ListParams};

#[tokio::test(start_paused = true)]
async fn a_429_is_retried() -> Result<(), kube_client::Error> {
    let server = FakeApiserver::builder()
        .in_memory()
        .rule(Rule::on(List::of("configmaps")).respond(Status::too_many_requests(7)))
        .start()
        .await;

    let api = Api::<ConfigMap>::default_namespaced(server.client());
    api.list(&ListParams::default()).await?; // your controller

    server.expect(List::of("configmaps"), 2); // the 429, and the retry after 7 s
    assert_eq!(server.elapsed().as_secs(), 7);
    Ok(())
}

#[test]
fn the_readme_shows_this_test() {
    let readme = include_str!("../../../README.md");
    let block = readme
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert!(
        block.is_some_and(|block| include_str!("retry.rs").contains(block)),
        "{block:?}"
    );
}
