//! The `Api` for the resource of a `start` command. Compiled into the adapter of each version, whose types have equal
//! names but differ.

use kube_client::{Api, Client};
use kube_core::{ApiResource, DynamicObject};
use serde_json::Value;

/// Returns the `Api` of the resource and namespace of a `start` command.
pub(crate) fn api(client: Client, start: &Value) -> Api<DynamicObject> {
    let of = |key: &str| start["resource"][key].as_str().unwrap_or_default().to_owned();
    let (group, version) = (of("group"), of("version"));
    let resource = ApiResource {
        api_version: if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        },
        group,
        version,
        kind: of("kind"),
        plural: of("plural"),
    };
    match start["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}
