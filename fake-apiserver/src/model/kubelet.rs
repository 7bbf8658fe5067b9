//! Requests that kube-apiserver forwards: to the kubelet of a pod (logs, and streams to and from containers), or as a proxy
//! to a pod, service or node. There is no backend; the checks before a connection are made.
//!
//! Source: kubernetes `pkg/registry/core/pod/strategy.go` (`LogLocation`, `streamLocation`, `validateContainer`,
//! `ResourceLocation`), `pkg/registry/core/service/storage/storage.go` (`ResourceLocation`) and
//! `pkg/kubelet/client/kubelet_client.go`.

use apimachinery::options::Collection;
use apimachinery::status::Status;
use serde_json::Value;

use super::Model;
use crate::api::{ConnectRequest, Connection};

impl Model {
    /// Returns the response to a request that would be forwarded. `Ok`: an empty log.
    ///
    /// # Errors
    ///
    /// 404 and 400 for pods, containers, services and nodes that do not exist, 500 for a node without an address, 503 for a
    /// service without endpoints, 501 for a request that needs a backend.
    pub(crate) fn connect(&self, request: &ConnectRequest) -> Result<(), Status> {
        if request.connection == Connection::Proxy {
            return self.proxy(request);
        }
        let (kind, name) = (&request.collection.kind, request.name.as_str());
        let key = kind.key(request.collection.namespace.as_deref(), name);
        let pod = self.objects(kind).get(key.as_str());
        let pod = pod.ok_or_else(|| Status::not_found(kind, name))?.json();
        if request.connection != Connection::PortForward {
            check_container(&pod["spec"], name, &request.container)?;
        }
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        match (node, request.connection) {
            ("", Connection::Log) => return Ok(()),
            ("", _) => {
                return Err(Status::bad_request(format!(
                    "pod {name} does not have a host assigned"
                )));
            }
            (_, _) => {}
        }
        // kube-apiserver reports a missing node like a missing pod.
        let found = self.named("nodes", None, node);
        check_address(&found.map_err(|_| Status::not_found(kind, node))?.json())?;
        Err(nobody(request))
    }

    /// Returns the error of a proxy request.
    fn proxy(&self, request: &ConnectRequest) -> Result<(), Status> {
        let Collection { kind, namespace } = &request.collection;
        let (name, port) = name_and_port(&request.name).ok_or_else(|| {
            Status::bad_request(format!("invalid {} request {:?}", kind.singular, request.name))
        })?;
        let namespace = namespace.as_deref();
        let object = self.named(&kind.plural, namespace, name);
        match &*kind.plural {
            "services" => {
                if let Ok(number) = port.parse::<i64>() {
                    let service = object?.json();
                    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
                    if !ports.any(|port| port["port"].as_i64() == Some(number)) {
                        let message = format!("no service port {number} found for service {name:?}");
                        return Err(Status::unavailable(message));
                    }
                }
                let endpoints = self.named("endpoints", namespace, name);
                // kube-apiserver reports missing endpoints as a missing service.
                let endpoints = endpoints.map_err(|_| Status::not_found(kind, name))?;
                if endpoints.json()["subsets"].as_array().is_none_or(Vec::is_empty) {
                    let message = format!("no endpoints available for service {name:?}");
                    return Err(Status::unavailable(message));
                }
            }
            "pods" => {
                if object?.json()["status"]["podIP"]
                    .as_str()
                    .is_none_or(str::is_empty)
                {
                    return Err(Status::bad_request("address not allowed".to_owned()));
                }
            }
            _node => check_address(&object?.json())?,
        }
        Err(nobody(request))
    }
}

/// Returns the error for a request without a backend.
fn nobody(request: &ConnectRequest) -> Status {
    let (kind, part) = (&request.collection.kind, request.connection.part());
    Status::not_served(&format!("{}/{part}", kind.qualified()))
}

/// Checks that the node has an address for its kubelet.
fn check_address(node: &Value) -> Result<(), Status> {
    match node["status"]["addresses"].as_array() {
        Some(addresses) if !addresses.is_empty() => Ok(()),
        Some(_) | None => Err(Status::unexplained(
            "no preferred addresses found; known addresses: []",
        )),
    }
}

/// Returns name and port of `name`, `name:port` and `scheme:name:port`.
///
/// Source: apimachinery `util/net/port_split.go` (`SplitSchemeNamePort`).
fn name_and_port(asked: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = asked.split(':').collect();
    let (name, port) = match *parts.as_slice() {
        [name] => (name, ""),
        [name, port] | ["" | "http" | "https", name, port] => (name, port),
        _ => return None,
    };
    (!name.is_empty()).then_some((name, port))
}

/// Checks that the container is specified, if there are several, and exists.
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
