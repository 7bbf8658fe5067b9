//! Every client under test, and what the chores share with `cargo xtask`.

use conformance::client::Client;
use xtask::clients::Clients;
pub(crate) use xtask::clients::{USAGE, load, processors, root};

/// Every client, the default first.
pub(crate) static CLIENTS: Clients = Clients(&[
    &adapter_watcher::WatcherClient,
    &adapter_kube_runtime::KubeRuntime,
    &adapter_kube_client::KubeClient,
]);

/// Returns the client of that name, or an error that lists the names.
pub(crate) fn named(name: &str) -> Result<&'static dyn Client, String> {
    CLIENTS.named(Some(name))
}
