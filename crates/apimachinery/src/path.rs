//! Paths and queries of requests, read from their text alone: authorization, routing, rules and checks share this parser.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A path to a resource, as far as its text alone tells: what is authorized and what is routed is read from this one
/// value. An empty segment stays where it is, as on a real server, and is never another path's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourcePath<'p> {
    /// Empty: the core group, or an empty segment below `/apis`.
    pub group: &'p str,
    /// `v1`.
    pub version: &'p str,
    /// `watch` or `proxy` before the resource.
    pub verb: Option<&'p str>,
    /// The namespace the resource is in.
    pub within: Option<&'p str>,
    /// The plural.
    pub resource: &'p str,
    /// `None`: the path is that of a collection.
    pub name: Option<&'p str>,
    /// The segment behind the name.
    pub subresource: Option<&'p str>,
    /// Does the path name a group (`/apis`)?
    pub grouped: bool,
    /// Are there segments behind the subresource?
    pub continues: bool,
}

impl<'p> ResourcePath<'p> {
    /// Reads a percent-decoded path; `None`: it names no resource.
    pub fn read(decoded: &'p str) -> Option<Self> {
        let segments: Vec<&str> = decoded.trim_matches('/').split('/').collect();
        let (grouped, group, version, below) = match segments.as_slice() {
            ["api", version, below @ ..] => (false, "", *version, below),
            ["apis", group, version, below @ ..] => (true, *group, *version, below),
            _ => return None,
        };
        let (verb, below) = match below {
            [verb @ ("watch" | "proxy"), below @ ..] if !below.is_empty() => (Some(*verb), below),
            _ => (None, below),
        };
        let (within, below) = match below {
            // A namespace has subresources; anything else below it is an object in it.
            ["namespaces", _, "status" | "finalize", ..] => (None, below),
            ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
            _ => (None, below),
        };
        let (resource, below) = below.split_first()?;
        Some(Self {
            group,
            version,
            verb,
            within,
            resource,
            name: below.first().copied(),
            subresource: below.get(1).copied().filter(|_| verb != Some("proxy")),
            grouped,
            continues: below.len() > 2,
        })
    }

    /// The namespace that rights are asked for: of a namespace, itself.
    pub fn namespace(&self) -> &'p str {
        let itself = self.name.filter(|_| self.resource == "namespaces");
        self.within.or(itself).unwrap_or_default()
    }

    /// Does it end where a collection does?
    pub fn is_collection(&self) -> bool {
        self.name.is_none()
    }
}

/// A path as it is read, or a part of it: percent-decoded. What is no escape stays as it is.
pub fn decoded_path(path: &str) -> Cow<'_, str> {
    percent_decode_str(path).decode_utf8_lossy()
}

/// The query's parameters, decoded, in the order sent. `+` is a space.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
