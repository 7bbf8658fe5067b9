//! Which collection, object or document a path names, and which of the two 404 dialects a path that names nothing is
//! refused in. It is the only reader of paths: authorization takes its attributes from here, too.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`; apiextensions-apiserver `customresource_handler.go`.

use apimachinery::kind::ApiResource;
use apimachinery::path::{ResourcePath, decoded_path};
use builtin_kinds::catalog::Catalog;

use super::document::{Discovery, Document};

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// To a collection.
    Collection {
        kind: &'static ApiResource,
        namespace: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// To one object, or to a subresource of it.
    Object {
        kind: &'static ApiResource,
        namespace: Option<String>,
        name: String,
        subresource: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// To something that discovery shows and nothing is stored of: reviews, bindings, component statuses.
    Unstored {
        kind: &'static ApiResource,
        namespace: Option<String>,
        /// `None`: the collection.
        name: Option<String>,
    },
    /// To no object.
    Document(Document),
    /// To one object of which the path leaves the name or the namespace empty: refused in these words.
    Incomplete(&'static str),
    /// To a subresource of a custom object whose name the path leaves empty.
    Nameless(&'static ApiResource),
    /// Nowhere, below a group that the apiserver itself serves: refused as a Status.
    Unknown,
    /// Nowhere at all: refused as plain text.
    UnknownText,
}

/// What is refused without a look at what is asked.
const NO_NAMESPACE: &str = "Namespace parameter required.";
pub(super) const NO_NAME: &str = "name must be provided";

/// Nearly no path has more.
const SEGMENTS: usize = 8;

/// Where `path` leads. Every segment is percent-decoded.
pub(super) fn route(path: &str, catalog: &Catalog) -> Route {
    let path = decoded_path(path);
    let mut exact = Vec::with_capacity(SEGMENTS);
    exact.extend(path.strip_prefix('/').unwrap_or(&path).split('/'));
    if let Some(document) = Document::named(&exact) {
        return Route::Document(document);
    }
    // A slash too many at the end means nothing, one at the beginning is of another path.
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

/// The resources of a group and version.
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
        // What is behind a proxied object is its own affair; of a custom object, anything is a part that is not there.
        !path.continues || known && part == "proxy" || kind.custom && !known
    };
    let Some(kind) = found.filter(|kind| is_known && ends(kind)) else {
        return unknown(group, catalog);
    };
    let whole = path.is_collection();
    if path.within.is_some() != kind.namespaced && !(whole && path.within.is_none()) {
        return unknown(group, catalog);
    }
    // An empty namespace is all of them.
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
