//! Attributes of a request for authorization: method and path only, whether or not the path exists, as in kube-apiserver; and
//! the text of a 403.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`.

use apimachinery::path::{ResourcePath, decoded_path};
use apimachinery::selector::FieldSelector;
use apimachinery::status::Status;
use http::Method;

use super::super::options::truthy;
use super::{HttpRequest, User};

pub(crate) use builtin_kinds::rbac::Attributes;

/// Returns the attributes of a request.
pub(super) fn of(request: &HttpRequest) -> Attributes {
    let path = decoded_path(&request.path);
    let Some(place) = ResourcePath::read(&path) else {
        return Attributes::Path {
            verb: request.method.as_str().to_ascii_lowercase(),
            path: path.into_owned(),
        };
    };
    let query = request.query.pairs();
    let first = |name: &str| {
        let found = query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    let selected = FieldSelector::parse(first("fieldSelector").unwrap_or_default()).ok();
    let selected = selected.as_ref().and_then(FieldSelector::exact_name);
    let name = place.name.filter(|name| !name.is_empty());
    let verb = match (&request.method, name) {
        (_, _) if place.verb.is_some() => place.verb.unwrap_or_default(),
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, None) => "deletecollection",
        (&Method::DELETE, Some(_)) => "delete",
        (&(Method::GET | Method::HEAD), Some(_)) => "get",
        (&(Method::GET | Method::HEAD), None) if first("watch").is_some_and(truthy) => "watch",
        (&(Method::GET | Method::HEAD), None) => "list",
        (_, _) => "",
    };
    let reads_all = matches!(verb, "list" | "watch") && place.verb.is_none();
    Attributes::Resource {
        verb: verb.to_owned(),
        group: place.group.to_owned(),
        resource: place.resource.to_owned(),
        subresource: place.subresource.unwrap_or_default().to_owned(),
        name: name
            .or(selected.filter(|_| reads_all))
            .unwrap_or_default()
            .to_owned(),
        namespace: place.namespace().to_owned(),
    }
}

/// Returns the attributes with a prefix to the verb.
pub(super) fn with_verb_prefix(mut attributes: Attributes, prefix: &str) -> Attributes {
    let (Attributes::Path { verb, .. } | Attributes::Resource { verb, .. }) = &mut attributes;
    verb.insert_str(0, prefix);
    attributes
}

/// Returns the 403 for a user who is not authorized. `reason`: that of the authorizer; often empty.
pub(super) fn refusal(attributes: &Attributes, user: &User, reason: &str) -> Status {
    let user = &user.name;
    let reason = match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    match attributes {
        Attributes::Path { verb, path } => {
            let why = format!("User \"{user}\" cannot {verb} path \"{path}\"{reason}");
            Status::forbidden_to("", "", "", &why)
        }
        Attributes::Resource {
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
                "User \"{user}\" cannot {verb} resource \"{resource}{part}\" in API group \"{group}\" {place}{reason}"
            );
            Status::forbidden_to(group, resource, name, &why)
        }
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use builtin_kinds::catalog::Catalog;
    use bytes::Bytes;
    use http::HeaderMap;
    use proptest::prelude::*;

    use super::*;
    use crate::api::path::{Route, route};

    /// Random sequences of path segments and slashes.
    fn paths() -> impl Strategy<Value = String> {
        const PIECES: &[&str] = &[
            "/",
            "/",
            "/",
            "//",
            "%2f",
            "/api",
            "/apis",
            "/v1",
            "/apps",
            "/watch",
            "/proxy",
            "/namespaces",
            "/secrets",
            "/%73ecrets",
            "/pods",
            "/deployments",
            "/status",
            "/finalize",
            "/log",
            "/x",
            "/..",
        ];
        prop::collection::vec(prop::sample::select(PIECES), 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// No request is authorized as another than the one it is routed to.
        #[test]
        fn requests_are_authorized_as_they_are_routed(path in paths()) {
            let catalog = Catalog::builtin(Version::NEWEST);
            let request = HttpRequest {
                method: Method::GET,
                path,
                query: Default::default(),
                headers: HeaderMap::new(),
                body: Bytes::new(),
            };
            let (kind, within, named, part) = match route(&request.path, &catalog) {
                Route::Collection { kind, namespace, .. } => (kind, namespace, String::new(), None),
                Route::Object { kind, namespace, name, subresource, .. } => (kind, namespace, name, subresource),
                Route::Unstored { kind, namespace, name } => (kind, namespace, name.unwrap_or_default(), None),
                Route::Document(_) => {
                    let attributes = of(&request);
                    let is_path = matches!(attributes, Attributes::Path { .. });
                    prop_assert!(is_path, "{}: {attributes:?}", request.path);
                    return Ok(());
                }
                Route::Incomplete(_) | Route::Nameless(_) | Route::Unknown | Route::UnknownText => return Ok(()),
            };
            let attributes = of(&request);
            let Attributes::Resource { group, resource, subresource, name, namespace, .. } = &attributes else {
                return Err(TestCaseError::fail(format!("{}: {attributes:?}", request.path)));
            };
            prop_assert_eq!((group.as_str(), resource.as_str()), (&*kind.group, &*kind.plural));
            if kind.is_stored() {
                prop_assert_eq!((name, subresource), (&named, &part.unwrap_or_default()));
            }
            // The namespace of a namespace is itself.
            let itself = if kind.plural == "namespaces" { named } else { String::new() };
            prop_assert_eq!(namespace, &within.unwrap_or(itself));
        }
    }
}
