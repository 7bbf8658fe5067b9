//! Namespaces that kube-apiserver creates at start. They are written out, because defaulting and validating them would load
//! the tables of all types and delay the start.
//!
//! They are those of every cluster.

use std::time::Duration;

use apimachinery::time::timestamp;
use scenario::{Manifest, Place};
use serde_json::{Value, json};

use super::Model;

/// Namespaces of every cluster, in key order.
pub(crate) const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Returns the content of a namespace that kube-apiserver creates at `epoch`, with its name as label.
pub(super) fn content(name: &str, epoch: Duration) -> Value {
    let labels = json!({ "kubernetes.io/metadata.name": name });
    let founder = json!({
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "v1",
        "time": timestamp(epoch),
        "fieldsType": "FieldsV1",
        "fieldsV1": { "f:metadata": { "f:labels": { ".": {}, "f:kubernetes.io/metadata.name": {} } } },
    });
    json!({
        "metadata": { "labels": labels, "managedFields": [founder] },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

impl Model {
    /// Returns the namespace of this name as kube-apiserver creates it. Must be applied at time zero.
    pub fn namespace_manifest(&self, name: &str) -> Manifest {
        Manifest {
            group: String::new(),
            plural: "namespaces".to_owned(),
            namespace: None,
            name: name.to_owned(),
            json: content(name, self.epoch),
            binds: None,
            at: Place::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::write::{WriteAction, WriteRequest};
    use apimachinery::options::{Collection, Representation};
    use scenario::ServerSettings;

    /// Returns the first namespace of a store, created by `make`.
    fn first(make: impl FnOnce(&mut Model)) -> Value {
        let mut model = Model::standalone(&ServerSettings {
            epoch_seconds: 1_700_000_000,
            ..ServerSettings::default()
        });
        make(&mut model);
        let namespaces = model.catalog().find("", "namespaces").unwrap();
        let objects = model.objects(namespaces);
        objects.get("n").unwrap().json()
    }

    #[test]
    fn initial_namespaces_equal_created_ones() {
        let applied = first(|model| {
            let manifest = model.namespace_manifest("n");
            model.apply(Duration::ZERO, &manifest).unwrap();
        });
        let created = first(|model| {
            let kind = model.catalog().find("", "namespaces").unwrap().clone();
            let request = WriteRequest {
                collection: Collection {
                    kind,
                    namespace: None,
                },
                action: WriteAction::Create {
                    object: json!({ "metadata": { "name": "n" } }),
                },
                dry_run: false,
                form: Representation::Full,
                manager: "kube-apiserver".to_owned(),
                warnings: Vec::new(),
                options: Vec::new(),
            };
            model.write(Duration::ZERO, request, 0).unwrap();
        });
        assert_eq!(applied.to_string(), created.to_string());
    }
}
