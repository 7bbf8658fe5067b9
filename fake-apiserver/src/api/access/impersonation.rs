//! Impersonation: the user of a request with `Impersonate-` headers, and its authorization.
//!
//! Source: "User impersonation"; apiserver `endpoints/filters/impersonation`; KEP-5284 for the verbs since 1.36.

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::path::decoded_path;
use apimachinery::status::Status;
use apimachinery::{Version, go_text};

use super::{
    ANONYMOUS, AUTHENTICATED, Attributes, Authorizer, HttpRequest, UNAUTHENTICATED, User, attributes,
    service_account_groups,
};

const PREFIX: &str = "impersonate-";

/// API group of the resources for uids and extras.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Returns the impersonated user, or the user itself if the request has no `Impersonate-` headers.
///
/// # Errors
///
/// 400 for groups, uid or extras without a user name, 403 for a user who is not authorized.
pub(crate) fn impersonated(
    user: Arc<User>,
    request: &HttpRequest,
    authorizer: impl FnOnce() -> Authorizer,
    version: Version,
) -> Result<Arc<User>, Status> {
    let wanted = wanted(request);
    if wanted == User::default() {
        return Ok(user);
    }
    if wanted.name.is_empty() {
        return Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(&wanted)
        )));
    }
    let account = service_account(&wanted.name);
    let authorizer = authorizer();
    let mut refused = rights(&wanted, account).into_iter();
    let Some(refusal) = refused.find_map(|right| authorizer.require(&user, &right).err()) else {
        return Ok(completed(wanted).into());
    };
    if version < Version::V1_36 {
        return Err(refusal);
    }
    let mode = match account {
        Some(_) => "serviceaccount",
        None if wanted.name.starts_with("system:node:") => "arbitrary-node",
        None => "user-info",
    };
    let attributes =
        attributes::with_verb_prefix(attributes::of(request), &format!("impersonate-on:{mode}:"));
    Err(attributes::refusal(&attributes, &user, ""))
}

/// Returns the rights that the impersonation requires, one for each value of the headers.
fn rights(wanted: &User, account: Option<(&str, &str)>) -> Vec<Attributes> {
    let right =
        |group: &str, resource: &str, subresource: &str, name: &str, namespace: &str| Attributes::Resource {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        };
    let mut rights = vec![match account {
        Some((namespace, name)) => right("", "serviceaccounts", "", name, namespace),
        None => right("", "users", "", &wanted.name, ""),
    }];
    rights.extend(
        wanted
            .groups
            .iter()
            .map(|group| right("", "groups", "", group, "")),
    );
    for (key, values) in &wanted.extra {
        rights.extend(
            values
                .iter()
                .map(|value| right(AUTHENTICATION, "userextras", key, value, "")),
        );
    }
    if !wanted.uid.is_empty() {
        rights.push(right(AUTHENTICATION, "uids", "", &wanted.uid, ""));
    }
    rights
}

/// Returns the user of the headers.
fn wanted(request: &HttpRequest) -> User {
    let headers = &request.headers;
    let mut wanted = User::default();
    for (name, value) in headers {
        // Nearly all requests have none of these headers.
        let Some(what) = name.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        // A value that is not UTF-8 names another user than the caller, too.
        let value = || String::from_utf8_lossy(value.as_bytes()).into_owned();
        match what {
            "user" if wanted.name.is_empty() => wanted.name = value(),
            "uid" if wanted.uid.is_empty() => wanted.uid = value(),
            "group" => wanted.groups.push(value()),
            _ => {
                if let Some(key) = what.strip_prefix("extra-") {
                    let key = decoded_path(key).into_owned();
                    wanted.extra.entry(key).or_default().push(value());
                }
            }
        }
    }
    wanted
}

/// Adds the groups that every user of that name has.
fn completed(mut user: User) -> User {
    if user.groups.is_empty()
        && let Some((namespace, _)) = service_account(&user.name)
    {
        user.groups = service_account_groups(namespace);
    }
    let known = user.is_in(UNAUTHENTICATED) || (user.name != ANONYMOUS && user.is_in(AUTHENTICATED));
    if !known {
        let group = match user.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ => AUTHENTICATED,
        };
        user.groups.push(group.to_owned());
    }
    user
}

/// Returns namespace and name of the service account of a user name.
fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// Formats a user as Go's `%#v` does.
fn go_syntax(user: &User) -> String {
    let texts = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| go_text::quote(text)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => texts(groups),
    };
    let extra = |extra: &BTreeMap<String, Vec<String>>| match extra.is_empty() {
        true => "(nil)".to_owned(),
        false => {
            let entries: Vec<String> = extra
                .iter()
                .map(|(key, values)| format!("{}:{}", go_text::quote(key), texts(values)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:map[string][]string{}}}",
        go_text::quote(&user.name),
        go_text::quote(&user.uid),
        extra(&user.extra)
    )
}
