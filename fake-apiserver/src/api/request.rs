//! What was asked, once parsed: past this point nobody asks whether an option is legal.

use apimachinery::kind::Review;
use apimachinery::options::{Collection, GetRequest, ListRequest, Representation, WatchRequest};
use serde_json::Value;

use super::document::Document;
use super::write::WriteRequest;

/// A request that is legal, for a collection or object of a kind that is served.
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
    /// Something that the kubelet of a pod would be asked for.
    Connect(ConnectRequest),
    /// A question about rights or identities, put by creating it.
    Review(ReviewRequest),
    /// Discovery, version, health.
    Document(Document),
}

/// What can be had of a kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// What a container wrote.
    Log,
    /// A command in a container.
    Exec,
    /// The streams of a container.
    Attach,
    /// A port of the pod.
    PortForward,
    /// Requests to a pod, a service or a node.
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

    /// That of this subresource.
    pub(super) fn of(part: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|connection| connection.part() == part)
    }

    /// The subresource.
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

/// A legal request of what a server passes on.
#[derive(Debug, Clone)]
pub struct ConnectRequest {
    /// Where the pod, service or node is.
    pub collection: Collection,
    /// Its name; of a proxied one also `name:port` and `scheme:name:port`.
    pub name: String,
    /// What of it.
    pub connection: Connection,
    /// The container; empty: its only one.
    pub container: String,
}

/// A legal review.
#[derive(Debug, Clone)]
pub struct ReviewRequest {
    /// What is asked.
    pub review: Review,
    /// Of what kind, and where.
    pub collection: Collection,
    /// The service account whose token is asked for; empty for all other reviews.
    pub name: String,
    /// The body.
    pub object: Value,
    /// Who asks: `fieldManager`, or the program's name.
    pub manager: String,
    /// How much of it is answered; never a table.
    pub form: Representation,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}
