//! Routing: the collection, object or document of a path, or one of two kinds of 404. Authorization takes its attributes from
//! the same parser.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`; apiextensions-apiserver `customresource_handler.go`.

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::path::{ResourcePath, Segments, decoded_path};
use builtin_kinds::catalog::Catalog;

use super::document::{Discovery, Document};

/// Target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// A collection.
    Collection {
        kind: KindRef,
        namespace: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// An object, or a subresource of it.
    Object {
        kind: KindRef,
        namespace: Option<String>,
        name: String,
        subresource: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// A resource in discovery that is not stored: reviews, bindings, component statuses.
    Unstored {
        kind: KindRef,
        namespace: Option<String>,
        /// `None`: the collection.
        name: Option<String>,
    },
    /// A document that is not an object.
    Document(Document),
    /// An object whose name or namespace is empty in the path: rejected with this text.
    Incomplete(&'static str),
    /// A subresource of a custom object whose name is empty in the path.
    Nameless(KindRef),
    /// No target, below a group of the apiserver itself: rejected with a Status.
    Unknown,
    /// No target: rejected with plain text.
    UnknownText,
}

/// Rejected before the request is parsed.
const NO_NAMESPACE: &str = "Namespace parameter required.";
pub(super) const NO_NAME: &str = "name must be provided";

/// Returns the target of `path`. Every segment is percent-decoded.
pub(super) fn route(path: &str, catalog: &Catalog) -> Route {
    let path = decoded_path(path);
    let below = path.strip_prefix('/').unwrap_or(&path);
    let exact = Segments::of(below);
    let document = match exact.is_whole() {
        true => Document::named(exact.as_slice()),
        false => Document::named(&below.split('/').collect::<Vec<_>>()),
    };
    if let Some(document) = document {
        return Route::Document(document);
    }
    // A trailing slash is ignored, a second leading one is not.
    if path.starts_with("//") {
        return Route::UnknownText;
    }
    if let Some(resource) = ResourcePath::read(&path) {
        return below_version(&resource, catalog);
    }
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["api"] => Route::Document(Document::Discovery(Discovery::Versions)),
        ["apis"] if matches!(&*path, "/apis" | "/apis/") => {
            Route::Document(Document::Discovery(Discovery::Groups))
        }
        ["api", version] => discovered("", version, catalog),
        ["api", ..] => Route::Unknown,
        ["apis", group] => match catalog.kinds().iter().any(|kind| kind.group == *group) {
            true if !group.is_empty() => {
                Route::Document(Document::Discovery(Discovery::Group((*group).to_owned())))
            }
            _ => unknown(group, catalog),
        },
        ["apis", group, version] if !group.is_empty() => discovered(group, version, catalog),
        _ => Route::UnknownText,
    }
}

/// Returns the route of a discovery document of a group version.
fn discovered(group: &str, version: &str, catalog: &Catalog) -> Route {
    if !serves(group, version, catalog) {
        return unknown(group, catalog);
    }
    Route::Document(Document::Discovery(Discovery::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }))
}

fn serves(group: &str, version: &str, catalog: &Catalog) -> bool {
    let mut kinds = catalog.kinds().iter();
    kinds.any(|kind| kind.group == group && kind.version == version)
}

fn below_version(path: &ResourcePath<'_>, catalog: &Catalog) -> Route {
    let ResourcePath { group, version, .. } = *path;
    if path.grouped && group.is_empty() {
        return Route::UnknownText;
    }
    let found = catalog.find_version(group, version, path.resource);
    let watch = path.verb == Some("watch");
    let plain = path.verb.is_none() || watch && path.subresource.is_none();
    let is_known = plain && path.subresource != Some("");
    let ends = |kind: &ApiResource| {
        let part = path.subresource.unwrap_or_default();
        let known = kind.subresources().iter().any(|known| known.name == part);
        // The path after a proxied object belongs to its backend; any segment after a custom object is an unknown
        // subresource.
        !path.continues || known && part == "proxy" || kind.custom && !known
    };
    let Some(kind) = found.filter(|kind| is_known && ends(kind)).cloned() else {
        return unknown(group, catalog);
    };
    let whole = path.is_collection();
    if path.within.is_some() != kind.namespaced && !(whole && path.within.is_none()) {
        return unknown(group, catalog);
    }
    // An empty namespace means all namespaces.
    let namespace = path.within.filter(|namespace| !namespace.is_empty());
    let namespace = namespace.map(str::to_owned);
    match (path.name, path.subresource) {
        (Some(_), _) if kind.namespaced && namespace.is_none() => {
            return match kind.custom {
                true => unknown(group, catalog),
                false => Route::Incomplete(NO_NAMESPACE),
            };
        }
        (Some(""), Some(part)) if kind.subresources().iter().any(|known| known.name == part) => {
            return match kind.custom {
                true => Route::Nameless(kind),
                false => Route::Incomplete(NO_NAME),
            };
        }
        (Some(""), _) => return unknown(group, catalog),
        (_, _) => {}
    }
    if !kind.is_stored() {
        if watch || namespace.is_some() != kind.namespaced {
            return unknown(group, catalog);
        }
        return Route::Unstored {
            kind,
            namespace,
            name: path.name.map(str::to_owned),
        };
    }
    match path.name {
        None => Route::Collection {
            kind,
            namespace,
            watch,
        },
        Some(name) => Route::Object {
            kind,
            namespace,
            name: name.to_owned(),
            subresource: path.subresource.map(str::to_owned),
            watch,
        },
    }
}

fn unknown(group: &str, catalog: &Catalog) -> Route {
    if catalog.has_builtin_group(group) {
        Route::Unknown
    } else {
        Route::UnknownText
    }
}
