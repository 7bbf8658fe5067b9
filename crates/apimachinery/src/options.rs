//! Options of LIST, WATCH and GET after validation.
//!
//! Sources: Kubernetes API docs ("API concepts"), apimachinery `meta/v1` `ListOptions` and `GetOptions`.

use crate::continue_token::ContinueToken;
use crate::kind::KindRef;
pub use crate::representation::{MetaVersion, Representation, RowObject, TableOptions};
use crate::selector::Selector;

/// Kind, and optionally a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Kind of the objects.
    pub kind: KindRef,
    /// `None`: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
}

/// `resourceVersion` of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedVersion {
    /// Absent or empty: the newest revision.
    Newest,
    /// `0`: any revision.
    Any,
    /// A certain revision.
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

/// A valid LIST.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Collection to list.
    pub collection: Collection,
    /// Label and field selectors.
    pub selector: Selector,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`; `None`: all.
    pub limit: Option<usize>,
    /// `continue`.
    pub continue_token: Option<ContinueToken>,
    /// Representation of each object.
    pub form: Representation,
}

/// A valid WATCH.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Collection to watch.
    pub collection: Collection,
    /// Label and field selectors.
    pub selector: Selector,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `sendInitialEvents`, after the server's own defaulting.
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `timeoutSeconds`.
    pub timeout_seconds: Option<i64>,
    /// Representation of each object.
    pub form: Representation,
    /// Whether its objects have the requested representation. A watch whose objects do not ends at its first event.
    pub shows_objects: bool,
}

/// A valid GET of one object.
#[derive(Debug, Clone)]
pub struct GetRequest {
    /// Whether to get its `scale` subresource.
    pub scale: bool,
    /// Collection of the object.
    pub collection: Collection,
    /// `metadata.name`.
    pub name: String,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// Representation of the object.
    pub form: Representation,
}
