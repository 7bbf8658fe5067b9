//! Component statuses: the health of what a cluster consists of. They are made for every read and never stored, so that they
//! have no version, no pages and no watch.
//!
//! There is no other component here, as beside a kube-apiserver that runs alone: connections are refused.
//!
//! Source: kubernetes `pkg/registry/core/componentstatus/rest.go`; the words are recorded.

use std::sync::Arc;

use apimachinery::kind::ApiResource;
use apimachinery::object::Stored;
use serde_json::{Value, json};

/// A component and the port where its health would be asked for.
const UNREACHABLE: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];

/// All of them, as objects of `kind`, in key order.
pub(super) fn statuses(kind: &'static ApiResource) -> [Arc<Stored>; 3] {
    let [manager, scheduler] = UNREACHABLE.map(|(name, port)| {
        let message = format!(
            "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        );
        status(kind, name, "False", &message)
    });
    [manager, status(kind, "etcd-0", "True", "ok"), scheduler].map(Arc::new)
}

fn status(kind: &'static ApiResource, name: &str, healthy: &str, message: &str) -> Stored {
    let object: Value = json!({
        "kind": kind.kind,
        "apiVersion": kind.api_version(),
        "metadata": { "name": name },
        "conditions": [{ "type": "Healthy", "status": healthy, "message": message }],
    });
    Stored::as_is(kind, kind.key(None, name), 0, object)
}
