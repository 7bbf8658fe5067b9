//! Watches the ConfigMaps of all namespaces and prints the events.
//!
//! ```console
//! $ cargo run -p watcher --example follow                                     # the cluster of KUBECONFIG
//! $ cargo build -p watcher --example follow
//! $ cargo run --bin fake-apiserver -- run scenarios/gone -- target/debug/examples/follow
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the example prints events"
)]

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, Config as ClientConfig};
use kube_core::ResourceExt;
use watcher::{Config, Event, watcher};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = ClientConfig::infer().await?;
    // The watcher retries, and reports the error.
    config.default_retry = false;
    let maps: Api<ConfigMap> = Api::all(Client::try_from(config)?);
    let mut events = std::pin::pin!(watcher(maps, Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => println!("reading all"),
            Ok(Event::InitApply(map)) => println!("  {}", map.name_any()),
            Ok(Event::InitDone) => println!("in step"),
            Ok(Event::Apply(map)) => println!("{} changed", map.name_any()),
            Ok(Event::Delete(map)) => println!("{} is gone", map.name_any()),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
