//! What is asked for, as far as rights are a matter of it: method and path alone, before anything asks whether the path
//! leads anywhere, as on a real server. Also how a refusal reads.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`.

use http::Method;

use crate::model::selector::FieldSelector;

use super::super::options::truthy;
use super::super::{percent_decoded, query_pairs};
use super::{HttpRequest, Status, User};

/// What somebody wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// With a path that is no resource's.
    Path {
        /// The method, in lower case.
        verb: String,
        /// The path.
        path: String,
    },
    /// With a resource. What is not said is empty.
    Resource {
        /// `get`, `list`, `create` …
        verb: String,
        /// Its API group.
        group: String,
        /// `pods`.
        resource: String,
        /// `log`.
        subresource: String,
        /// Of one object.
        name: String,
        /// Empty: none, or all.
        namespace: String,
    },
}

impl Attributes {
    /// Of a request.
    pub(super) fn of(request: &HttpRequest) -> Self {
        let path = percent_decoded(&request.path, false);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, below) = match parts.as_slice() {
            ["api", _, below @ ..] if !below.is_empty() => ("", below),
            ["apis", group, _, below @ ..] if !below.is_empty() => (*group, below),
            _ => {
                return Self::Path {
                    verb: request.method.as_str().to_ascii_lowercase(),
                    path: path.into_owned(),
                };
            }
        };
        let (watch_path, below) = match below {
            ["watch", below @ ..] if !below.is_empty() => (true, below),
            _ => (false, below),
        };
        let (namespace, resource, below) = match below {
            ["namespaces", namespace, resource, below @ ..]
                if !matches!(*resource, "status" | "finalize") =>
            {
                (*namespace, *resource, below)
            }
            ["namespaces", below @ ..] => (below.first().copied().unwrap_or_default(), "namespaces", below),
            [resource, below @ ..] => ("", *resource, below),
            [] => ("", "", below),
        };
        let query = query_pairs(&request.query);
        let first = |name: &str| {
            let found = query.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str())
        };
        let selected = FieldSelector::parse(first("fieldSelector").unwrap_or_default()).ok();
        let selected = selected.as_ref().and_then(FieldSelector::exact_name);
        let watches = watch_path || first("watch").is_some_and(truthy);
        let verb = match (&request.method, below.is_empty()) {
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "deletecollection",
            (&Method::DELETE, false) => "delete",
            (_, _) if watch_path => "watch",
            (_, true) if watches => "watch",
            (_, true) => "list",
            (_, false) => "get",
        };
        Self::Resource {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: below.get(1).copied().unwrap_or_default().to_owned(),
            name: below.first().copied().or(selected).unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// The same, done as `prefix` and what it was.
    pub(super) fn with_verb_prefix(mut self, prefix: &str) -> Self {
        let (Self::Path { verb, .. } | Self::Resource { verb, .. }) = &mut self;
        verb.insert_str(0, prefix);
        self
    }

    /// What a user without the right to it is told.
    pub(super) fn refusal(&self, user: &User) -> Status {
        let user = &user.name;
        match self {
            Self::Path { verb, path } => {
                let why = format!("User \"{user}\" cannot {verb} path \"{path}\"");
                Status::forbidden_to("", "", "", &why)
            }
            Self::Resource {
                verb,
                group,
                resource,
                subresource,
                name,
                namespace,
            } => {
                let part = match subresource.as_str() {
                    "" => String::new(),
                    part => format!("/{part}"),
                };
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace \"{namespace}\""),
                };
                let why = format!(
                    "User \"{user}\" cannot {verb} resource \"{resource}{part}\" in API group \"{group}\" {place}"
                );
                Status::forbidden_to(group, resource, name, &why)
            }
        }
    }
}
