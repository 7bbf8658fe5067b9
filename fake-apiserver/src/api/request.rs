//! What was asked, once parsed: past this point nobody asks whether an option is legal.

use serde_json::Value;

use crate::model::catalog::{Kind, Review};
use crate::model::continue_token::ContinueToken;
use crate::model::selector::Selector;

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

/// A kind and perhaps a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The kind.
    pub kind: &'static Kind,
    /// `None`: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
}

/// `resourceVersion` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedVersion {
    /// Absent or empty: the newest.
    Newest,
    /// `0`: whatever is at hand.
    Any,
    /// A revision.
    At(u64),
}

/// `resourceVersionMatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// `Exact`.
    Exact,
    /// `NotOlderThan`.
    NotOlderThan,
}

/// How much of each object is answered, from `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    Full,
    /// `as=PartialObjectMetadata` or `as=PartialObjectMetadataList`.
    Metadata(MetaVersion),
    /// `as=Table`: what is printed of it.
    Table(TableForm),
}

/// A version of the group `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// A table, and what stands in it beside the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableForm {
    /// Of the table itself.
    pub version: MetaVersion,
    /// `includeObject`.
    pub object: RowObject,
}

/// What of its object a row of a table carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowObject {
    /// Nothing.
    None,
    /// `PartialObjectMetadata`.
    Metadata,
    /// All of it.
    Full,
}

/// A legal LIST.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Of what.
    pub collection: Collection,
    /// Which objects of it.
    pub selector: Selector,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`; `None`: all.
    pub limit: Option<usize>,
    /// `continue`.
    pub continue_token: Option<ContinueToken>,
    /// How much of each object.
    pub form: Form,
}

/// A legal WATCH.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Of what.
    pub collection: Collection,
    /// Which objects of it.
    pub selector: Selector,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `sendInitialEvents`, after the server's own defaulting.
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<i64>,
    /// How much of each object.
    pub form: Form,
}

/// A legal GET of one object.
#[derive(Debug, Clone)]
pub struct GetRequest {
    /// Its scale, not itself.
    pub scale: bool,
    /// Where it is.
    pub collection: Collection,
    /// `metadata.name`.
    pub name: String,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// How much of it.
    pub form: Form,
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
    pub form: Form,
    /// What is told in `Warning` headers.
    pub warnings: Vec<String>,
}
