//! What LIST, WATCH and GET ask for, once it is known to be legal.
//!
//! Sources: Kubernetes API docs ("API concepts"), apimachinery `meta/v1` `ListOptions` and `GetOptions`.

use crate::continue_token::ContinueToken;
use crate::kind::ApiResource;
pub use crate::representation::{MetaVersion, Representation, RowObject, TableForm};
use crate::selector::Selector;

/// A kind and perhaps a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The kind.
    pub kind: &'static ApiResource,
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
    pub form: Representation,
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
    pub form: Representation,
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
    pub form: Representation,
}
