//! Which collection, object or document a path names, and which of the two 404 dialects a path that names nothing is
//! refused in.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`; apiextensions-apiserver `customresource_handler.go`.

use crate::model::catalog::{Catalog, Kind};

use super::document::{Discovery, Document};
use super::percent_decoded;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// To a collection.
    Collection {
        kind: &'static Kind,
        namespace: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// To one object, or to a subresource of it.
    Object {
        kind: &'static Kind,
        namespace: Option<String>,
        name: String,
        subresource: Option<String>,
        /// Below the deprecated `/watch/` prefix.
        watch: bool,
    },
    /// To something that discovery shows and no object is of: reviews, bindings.
    Unstored {
        kind: &'static Kind,
        namespace: Option<String>,
        /// A collection, not one of its objects.
        whole: bool,
    },
    /// To no object.
    Document(Document),
    /// Nowhere, below a group that the apiserver itself serves: refused as a Status.
    Unknown,
    /// Nowhere at all: refused as plain text.
    UnknownText,
}

/// Nearly no path has more.
const SEGMENTS: usize = 8;

/// Where `path` leads. Every segment is percent-decoded.
pub(super) fn route(path: &str, catalog: &Catalog) -> Route {
    let path = percent_decoded(path, false);
    let mut exact = Vec::with_capacity(SEGMENTS);
    exact.extend(path.strip_prefix('/').unwrap_or(&path).split('/'));
    if let Some(document) = Document::named(&exact) {
        return Route::Document(document);
    }
    // Slashes at either end mean nothing from here on.
    let before = exact.iter().take_while(|name| name.is_empty()).count();
    let behind = exact.iter().rev().take_while(|name| name.is_empty()).count();
    match exact.get(before..exact.len() - behind).unwrap_or_default() {
        ["api"] => Route::Document(Document::Discovery(Discovery::Versions)),
        ["apis"] => Route::Document(Document::Discovery(Discovery::Groups)),
        ["api", "v1", rest @ ..] => below_version("", "v1", rest, catalog),
        ["api", ..] => Route::Unknown,
        ["apis", group] => match catalog.kinds().iter().any(|kind| kind.group == *group) {
            true => Route::Document(Document::Discovery(Discovery::Group((*group).to_owned()))),
            false => unknown(group, catalog),
        },
        ["apis", group, version, rest @ ..] => below_version(group, version, rest, catalog),
        _ => Route::UnknownText,
    }
}

fn below_version(group: &str, version: &str, rest: &[&str], catalog: &Catalog) -> Route {
    if !catalog
        .kinds()
        .iter()
        .any(|kind| kind.group == group && kind.version == version)
    {
        return unknown(group, catalog);
    }
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        _ => (false, rest),
    };
    let find = |plural: &str| catalog.find_version(group, version, plural);
    let (namespace, rest) = match rest {
        [] if watch => return unknown(group, catalog),
        [] => {
            return Route::Document(Document::Discovery(Discovery::Resources {
                group: group.to_owned(),
                version: version.to_owned(),
            }));
        }
        // `namespaces/x/status` is a part of the namespace, `namespaces/x/pods` is in it.
        ["namespaces", namespace, plural, below @ ..] if find(plural).is_some() => {
            (Some((*namespace).to_owned()), (*plural, below))
        }
        [plural, below @ ..] => (None, (*plural, below)),
    };
    let (plural, below) = rest;
    let Some(kind) = find(plural) else {
        return unknown(group, catalog);
    };
    let whole_collection = below.is_empty();
    if namespace.is_some() != kind.namespaced && !(whole_collection && namespace.is_none()) {
        return unknown(group, catalog);
    }
    if !kind.is_stored() {
        if watch || namespace.is_some() != kind.namespaced {
            return unknown(group, catalog);
        }
        return Route::Unstored {
            kind,
            namespace,
            whole: whole_collection,
        };
    }
    match below {
        [] => Route::Collection {
            kind,
            namespace,
            watch,
        },
        [name, subresource @ ..] if subresource.len() <= 1 => Route::Object {
            kind,
            namespace,
            name: (*name).to_owned(),
            subresource: subresource.first().map(|&subresource| subresource.to_owned()),
            watch,
        },
        _ => unknown(group, catalog),
    }
}

fn unknown(group: &str, catalog: &Catalog) -> Route {
    if catalog.has_builtin_group(group) {
        Route::Unknown
    } else {
        Route::UnknownText
    }
}
