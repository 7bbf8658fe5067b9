//! Parsed requests: their options are valid.

use apimachinery::kind::Review;
use apimachinery::options::{Collection, GetRequest, ListRequest, Representation, WatchRequest};
use serde_json::Value;

use super::document::Document;
use super::write::WriteRequest;

/// A valid request for a collection or object of a served kind.
#[derive(Debug, Clone)]
pub enum Request {
    /// A collection read.
    List(ListRequest),
    /// A watch.
    Watch(WatchRequest),
    /// One object.
    Get(GetRequest),
    /// A create, update, patch or delete.
    Write(WriteRequest),
    /// Connection to the kubelet of a pod, or a proxy.
    Connect(ConnectRequest),
    /// Create of a review.
    Review(ReviewRequest),
    /// Discovery, version, health.
    Document(Document),
}

/// Type of a connection to a kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// Log of a container.
    Log,
    /// A command in a container.
    Exec,
    /// The streams of a container.
    Attach,
    /// Port of the pod.
    PortForward,
    /// Proxy to a pod, a service or a node.
    Proxy,
}

impl Connection {
    const ALL: [Self; 5] = [
        Self::Log,
        Self::Exec,
        Self::Attach,
        Self::PortForward,
        Self::Proxy,
    ];

    /// Returns the type of this subresource.
    pub(super) fn of(part: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|connection| connection.part() == part)
    }

    /// Returns the name of the subresource.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
        }
    }
}

/// A valid request that kube-apiserver would forward.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    /// Collection of the pod, service or node.
    pub collection: Collection,
    /// Name of the object; for a proxy also `name:port` and `scheme:name:port`.
    pub name: String,
    /// Type of the connection.
    pub connection: Connection,
    /// Container; empty: the only one.
    pub container: String,
}

/// A valid review.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// Type of the review.
    pub review: Review,
    /// Kind and namespace.
    pub collection: Collection,
    /// Service account of a token request; empty for other reviews.
    pub name: String,
    /// Body of the request.
    pub object: Value,
    /// Field manager: `fieldManager`, or the name of the program.
    pub manager: String,
    /// Representation of the response; never a table.
    pub form: Representation,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}
