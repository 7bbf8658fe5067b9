//! Component statuses: the health of the control plane. They are computed for each read and never stored, so they have no
//! resourceVersion, no pages and no watch.
//!
//! Other components do not exist, as next to a kube-apiserver that runs alone: connections to them are refused.
//!
//! Source: kubernetes `pkg/registry/core/componentstatus/rest.go`; recorded texts.

use std::sync::Arc;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use serde_json::{Value, json};

/// Components and the ports of their health checks.
const UNREACHABLE: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];

/// Returns all component statuses as objects of `kind`, in key order.
pub(super) fn statuses(kind: &KindRef) -> [Arc<Stored>; 3] {
    let [manager, scheduler] = UNREACHABLE.map(|(name, port)| {
        let message = format!(
            "Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        );
        status(kind, name, "False", &message)
    });
    [manager, status(kind, "etcd-0", "True", "ok"), scheduler].map(Arc::new)
}

fn status(kind: &KindRef, name: &str, healthy: &str, message: &str) -> Stored {
    let object: Value = json!({
        "kind": kind.kind,
        "apiVersion": kind.api_version(),
        "metadata": { "name": name },
        "conditions": [{ "type": "Healthy", "status": healthy, "message": message }],
    });
    Stored::as_is(kind, kind.key(None, name), 0, object)
}
