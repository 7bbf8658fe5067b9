//! The crate as its users see it: every method, and every message of a failed expectation or a mistake.

#![expect(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

mod at_once;
mod expectations;
mod rules;
mod server;

use std::future::Future;
use std::panic::AssertUnwindSafe;

use fake_apiserver_testing::{Builder, FakeApiserver};
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::ListParams;
use serde_json::{Value, json};

/// A ConfigMap in the namespace `default`.
fn config_map(name: &str, v: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"v": v}})
}

/// A server in memory with these ConfigMaps.
fn with(names: &[&str]) -> Builder {
    let maps = names.iter().map(|name| config_map(name, "1"));
    FakeApiserver::builder().in_memory().objects(maps)
}

fn maps(server: &FakeApiserver) -> Api<ConfigMap> {
    Api::default_namespaced(server.client())
}

/// The names in a list.
async fn names(api: &Api<ConfigMap>, params: &ListParams) -> Result<Vec<String>, kube_client::Error> {
    let list = api.list(params).await?;
    let names = list.items.into_iter().filter_map(|map| map.metadata.name);
    Ok(names.collect())
}

/// The message of a panic.
fn panics(act: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(AssertUnwindSafe(act)).expect_err("it panics");
    fake_apiserver::net::panic_text(&*panic)
}

/// The message of a panic.
async fn panics_later<T>(act: impl Future<Output = T>) -> String {
    match AssertUnwindSafe(act).catch_unwind().await {
        Ok(_) => panic!("it does not panic"),
        Err(panic) => fake_apiserver::net::panic_text(&*panic),
    }
}

/// The code of the Status that a request failed with; 0: it failed otherwise.
fn code<T>(result: Result<T, kube_client::Error>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube_client::Error::Api(status)) => status.code,
        Err(_) => 0,
    }
}
