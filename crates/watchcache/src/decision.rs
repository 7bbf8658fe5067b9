//! The decision table of reads: what a LIST or GET requires of the state it is answered from, and who answers it.
//!
//! Source: "Resource versions" of the API concepts page, as the apiserver's cacher (`storage/cacher/delegator.go`) and its
//! etcd3 store carry it out. It must not know any state.

use apimachinery::continue_token::ContinueToken;
use apimachinery::options::{RequestedVersion, VersionMatch};

/// Options of a LIST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOptions {
    /// Namespace; `None`: all namespaces, or a cluster-scoped resource.
    pub namespace: Option<String>,
    /// Does the request select one object by name (`metadata.name=…`) where there can be only one? Such a LIST reads one key
    /// and is not paged.
    pub single: bool,
    /// Does the request have a selector? Then the number of remaining items is unknown.
    pub selective: bool,
    /// `resourceVersion`.
    pub resource_version: RequestedVersion,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// `limit`.
    pub limit: Option<usize>,
    /// `continue`.
    pub continue_token: Option<ContinueToken>,
}

impl Default for ListOptions {
    /// The newest state of all namespaces, in one page.
    fn default() -> Self {
        Self {
            namespace: None,
            single: false,
            selective: false,
            resource_version: RequestedVersion::Newest,
            version_match: None,
            limit: None,
            continue_token: None,
        }
    }
}

/// State that a read requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The newest one, consistently.
    Newest,
    /// Any.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
    /// What etcd has now: the rest of a list whose snapshot is compacted.
    Latest,
}

/// Who answers a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The watch cache of the apiserver.
    WatchCache,
    /// etcd.
    Etcd,
}

/// How a LIST is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// From which state.
    pub wanted: Wanted,
    /// By whom.
    pub source: Source,
    /// In pages of this size; `None`: in one page, whatever the request says.
    pub limit: Option<usize>,
}

impl Decision {
    /// Decides over a LIST of a resource that has a watch cache or has none.
    pub fn of_list(watch_cached: bool, options: &ListOptions) -> Self {
        let single = options.single && options.continue_token.is_none();
        let mut limit = if single { None } else { options.limit };
        let token = options.continue_token.as_ref();
        let wanted = match (token, options.resource_version, options.version_match) {
            (Some(token), _, _) => match u64::try_from(token.revision) {
                Ok(revision) => Wanted::Exact(revision),
                Err(_) => Wanted::Latest,
            },
            (None, RequestedVersion::Newest, _) => Wanted::Newest,
            (None, RequestedVersion::Any, _) => Wanted::Any,
            (None, RequestedVersion::At(revision), Some(VersionMatch::Exact)) => Wanted::Exact(revision),
            (None, RequestedVersion::At(revision), Some(VersionMatch::NotOlderThan)) => {
                Wanted::NotOlderThan(revision)
            }
            (None, RequestedVersion::At(revision), None) if limit.is_some() => Wanted::Exact(revision),
            (None, RequestedVersion::At(revision), None) => Wanted::NotOlderThan(revision),
        };
        let exact = matches!(wanted, Wanted::Exact(_));
        // With a limit the cache delegates a read at a revision to etcd, but etcd does not page a single object.
        let passed_on = options.limit.is_some()
            && options.version_match.is_none()
            && matches!(wanted, Wanted::NotOlderThan(_));
        let cached = watch_cached
            // The cache has snapshots of whole collections: a single object at a past revision is read from etcd.
            && !(single && (exact || passed_on));
        if cached && matches!(options.resource_version, RequestedVersion::Any) {
            limit = None;
        }
        Self {
            wanted,
            source: if cached { Source::WatchCache } else { Source::Etcd },
            limit,
        }
    }

    /// Decides over a GET.
    pub fn of_get(watch_cached: bool, resource_version: RequestedVersion) -> Self {
        let wanted = match resource_version {
            // Read from etcd, with or without a cache.
            RequestedVersion::Newest => Wanted::Latest,
            RequestedVersion::Any => Wanted::Any,
            RequestedVersion::At(revision) => Wanted::NotOlderThan(revision),
        };
        let cached = watch_cached && wanted != Wanted::Latest;
        Self {
            wanted,
            source: if cached { Source::WatchCache } else { Source::Etcd },
            limit: None,
        }
    }
}
