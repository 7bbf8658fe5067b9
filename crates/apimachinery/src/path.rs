//! Parser of request paths and queries, shared by authorization, routing, rules and checks.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Path of a resource, by its text alone. Authorization and routing use the same value. An empty segment keeps its position,
/// as in kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourcePath<'p> {
    /// API group. Empty: the core group, or an empty segment below `/apis`.
    pub group: &'p str,
    /// API version: `v1`.
    pub version: &'p str,
    /// `watch` or `proxy` before the resource.
    pub verb: Option<&'p str>,
    /// Namespace of the resource.
    pub within: Option<&'p str>,
    /// Plural of the resource.
    pub resource: &'p str,
    /// Name of the object; `None`: the path of a collection.
    pub name: Option<&'p str>,
    /// Segment after the name.
    pub subresource: Option<&'p str>,
    /// Whether the path has a group (`/apis`).
    pub grouped: bool,
    /// Whether segments follow the subresource.
    pub continues: bool,
}

/// Bytes that are escaped in a segment of a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Returns the path of an object; a name cannot leave its segment. `namespace`: `None` for cluster-scoped objects.
pub fn object_path(
    group: &str,
    version: &str,
    namespace: Option<&str>,
    resource: &str,
    name: &str,
) -> String {
    let mut path = collection_path(group, version, namespace, resource);
    path.push('/');
    path.extend(utf8_percent_encode(name, ESCAPED));
    path
}

/// Returns the path of a collection; a name cannot leave its segment. `namespace`: `None` for all namespaces.
pub fn collection_path(group: &str, version: &str, namespace: Option<&str>, resource: &str) -> String {
    let mut path = match group {
        "" => String::from("/api"),
        group => format!("/apis/{}", utf8_percent_encode(group, ESCAPED)),
    };
    let within = namespace.map(|namespace| ["namespaces", namespace]);
    for segment in [version]
        .into_iter()
        .chain(within.into_iter().flatten())
        .chain([resource])
    {
        path.push('/');
        path.extend(utf8_percent_encode(segment, ESCAPED));
    }
    path
}

/// The first segments of a path. Every request is parsed more than once, so that this allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct Segments<'p> {
    all: [&'p str; SEGMENTS_MAX],
    count: usize,
    is_whole: bool,
}

/// Number of segments that decide about a path: group (3), verb (1), namespace (2), resource, name, subresource, and one more.
const SEGMENTS_MAX: usize = 10;

impl<'p> Segments<'p> {
    /// Splits a path at each `/`. Of a longer path the first ten segments are kept.
    pub fn of(path: &'p str) -> Self {
        let (mut all, mut count, mut start) = ([""; SEGMENTS_MAX], 0, 0);
        // Segments are short: to look at each byte costs less than a search for each slash.
        for (end, byte) in path.bytes().enumerate() {
            if byte == b'/' {
                all[count] = &path[start..end];
                (start, count) = (end + 1, count + 1);
                if count == SEGMENTS_MAX {
                    break;
                }
            }
        }
        let is_whole = count < SEGMENTS_MAX;
        if is_whole {
            all[count] = &path[start..];
            count += 1;
        }
        Self { all, count, is_whole }
    }

    /// Returns whether the path has no further segment.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns the segments, in order.
    pub fn as_slice(&self) -> &[&'p str] {
        &self.all[..self.count]
    }
}

/// Removes the slashes at both ends of a path. Every request is split a few times, and most have one slash.
fn without_outer_slashes(mut path: &str) -> &str {
    while let Some(rest) = path.strip_prefix('/') {
        path = rest;
    }
    while let Some(rest) = path.strip_suffix('/') {
        path = rest;
    }
    path
}

impl<'p> ResourcePath<'p> {
    /// Parses a percent-decoded path; `None` if it is not the path of a resource.
    pub fn read(decoded: &'p str) -> Option<Self> {
        let segments = Segments::of(without_outer_slashes(decoded));
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
            // A namespace has subresources; any other segment below it is a resource in it.
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

    /// Returns the namespace for authorization; for the path of a namespace, its name.
    pub fn namespace(&self) -> &'p str {
        let itself = self.name.filter(|_| self.resource == "namespaces");
        self.within.or(itself).unwrap_or_default()
    }

    /// Returns whether this is the path of a collection.
    pub fn is_collection(&self) -> bool {
        self.name.is_none()
    }
}

/// Percent-decodes a path or a part of it. Invalid escapes are left unchanged.
pub fn decoded_path(path: &str) -> Cow<'_, str> {
    // Most paths have no escape, and are text already.
    if !path.as_bytes().contains(&b'%') {
        return Cow::Borrowed(path);
    }
    percent_decode_str(path).decode_utf8_lossy()
}

/// Decodes the parameters of a query, in the order sent. `+` is a space.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

#[cfg(test)]
mod tests {
    use super::{Segments, object_path};

    #[test]
    fn a_name_stays_in_its_segment() {
        let named = |name| object_path("", "v1", Some("n"), "configmaps", name);
        assert_eq!(named("a.b-c"), "/api/v1/namespaces/n/configmaps/a.b-c");
        assert_eq!(
            named("../../secrets/s?dryRun=All#%2f"),
            "/api/v1/namespaces/n/configmaps/..%2F..%2Fsecrets%2Fs%3FdryRun%3DAll%23%252f"
        );
        let role = object_path(
            "rbac.authorization.k8s.io",
            "v1",
            None,
            "clusterroles",
            "system:node",
        );
        assert_eq!(
            role,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        );
    }

    #[test]
    fn the_first_ten_segments_are_kept() {
        for (path, kept, is_whole) in [
            ("", 1, true),
            ("a/b/", 3, true),
            ("1/2/3/4/5/6/7/8/9/10", 10, true),
            ("1/2/3/4/5/6/7/8/9/10/", 10, false),
            ("1/2/3/4/5/6/7/8/9/10/11/12", 10, false),
        ] {
            let segments = Segments::of(path);
            let expected: Vec<&str> = path.split('/').take(kept).collect();
            assert_eq!(segments.as_slice(), expected, "{path}");
            assert_eq!(segments.is_whole(), is_whole, "{path}");
        }
    }
}
