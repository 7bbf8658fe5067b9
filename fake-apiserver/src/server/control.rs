//! A server without a scenario, and what can be done to it from outside: the counterparts of what an operator does to a
//! cluster.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Limits, Server};
use crate::api::write::WriteAction;
use crate::api::{Collection, Form, WriteRequest};
use crate::scenario::{Scenario, ServerSettings};

/// Namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Something done to a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// etcd is compacted: exact lists and continue tokens of before are 410 at once. Watch caches keep what they have.
    Compact,
    /// The apiserver restarts: every watch ends, and every watch cache begins anew at the current resourceVersion.
    RestartWatchCaches,
}

impl Server {
    /// A server that tells the truth to whoever comes, for as long as it is asked. It has the namespaces every cluster
    /// has, and takes nothing into one that is not there. `seed` decides what chance decides on a real server.
    pub fn standalone(settings: ServerSettings, seed: u64) -> Self {
        let scenario = Arc::new(Scenario::empty(settings));
        let mut server = Self::with_limits(scenario, seed, Limits::endless());
        server.model.enforce_namespaces();
        let kind = server.model.catalog().find("", "namespaces");
        for name in NAMESPACES {
            let Some(kind) = kind else { break };
            let request = WriteRequest {
                collection: Collection {
                    kind,
                    namespace: None,
                },
                action: WriteAction::Create {
                    object: json!({ "metadata": { "name": name } }),
                },
                dry_run: false,
                form: Form::Full,
                warnings: Vec::new(),
            };
            match server.model.write(Duration::ZERO, &request, seed) {
                Ok(done) => server.record_writes(Duration::ZERO, kind, done.written),
                Err(status) => tracing::error!(name, message = status.message, "a namespace was refused"),
            }
        }
        server
    }

    pub(super) fn control(&mut self, now: Duration, control: Control) {
        match control {
            Control::Compact => {
                self.model.compact_store();
                self.turned(now, format!("etcd compacted up to {}", self.model.revision()));
            }
            Control::RestartWatchCaches => {
                self.model.restart_watch_caches();
                self.turned(now, "watch caches restarted".to_owned());
            }
        }
        self.touched.extend(self.open.keys().copied());
    }
}
