//! What asks for the kubelet of a pod: logs, and streams to and from its containers. There is no kubelet, but whether a
//! server would come as far as asking one is in the store.
//!
//! Source: kubernetes `pkg/registry/core/pod/strategy.go` (`LogLocation`, `streamLocation`, `validateContainer`) and
//! `pkg/kubelet/client/kubelet_client.go`.

use serde_json::Value;

use crate::api::{ConnectRequest, Connection, Status};

use super::Model;

impl Model {
    /// What a server says before it asks the kubelet. Ok: nothing, because there is no log yet.
    ///
    /// # Errors
    /// 404 and 400 for pods, containers and nodes that are not there, 500 for a node nobody knows the address of, 501 for
    /// one that would have to be asked.
    pub(crate) fn connect(&self, request: &ConnectRequest) -> Result<(), Status> {
        let (kind, name) = (request.collection.kind, request.name.as_str());
        let key = kind.key(request.collection.namespace.as_deref(), name);
        let pod = self.resource(kind).store.current().get(key.as_str());
        let pod = pod.ok_or_else(|| Status::not_found(kind, name))?.json();
        if request.connection != Connection::PortForward {
            check_container(&pod["spec"], name, &request.container)?;
        }
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        match (node, request.connection) {
            ("", Connection::Log) => return Ok(()),
            ("", Connection::Exec | Connection::Attach | Connection::PortForward) => {
                return Err(Status::bad_request(format!(
                    "pod {name} does not have a host assigned"
                )));
            }
            (_, _) => {}
        }
        // A real server says so of a node as if it were a pod.
        let found = self.named("nodes", None, node);
        let node = found.map_err(|_| Status::not_found(kind, node))?.json();
        match node["status"]["addresses"].as_array() {
            Some(addresses) if !addresses.is_empty() => {
                let part = request.connection.part();
                Err(Status::not_served(&format!("{}/{part}", kind.qualified())))
            }
            Some(_) | None => Err(Status::unexplained(
                "no preferred addresses found; known addresses: []",
            )),
        }
    }
}

/// Is it clear which container is meant, and is it there?
fn check_container(spec: &Value, pod: &str, wanted: &str) -> Result<(), Status> {
    let names: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .filter_map(|field| spec[field].as_array())
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    let only = spec["containers"]
        .as_array()
        .is_some_and(|containers| containers.len() == 1);
    if names.contains(&wanted) || wanted.is_empty() && only {
        return Ok(());
    }
    Err(Status::bad_request(match wanted {
        "" => format!(
            "a container name must be specified for pod {pod}, choose one of: [{}]",
            names.join(" ")
        ),
        wanted => format!("container {wanted} is not valid for pod {pod}"),
    }))
}
