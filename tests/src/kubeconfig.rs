//! kube-client's configuration of a kubeconfig that a program under test has written.

use std::path::Path;

use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};

/// Returns the configuration of a file.
///
/// # Panics
///
/// The file is no kubeconfig, or names no cluster.
pub async fn config(path: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.expect("it names a cluster")
}
