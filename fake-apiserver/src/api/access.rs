//! Who asks, and whether they may: by a client certificate or by one of two bearer tokens, either as one who may do
//! everything or as one who may do nothing but look what there is.
//!
//! It decides by method and path alone, before anything asks whether the path leads anywhere, as a real server does.
//!
//! Source: apiserver `endpoints/request/requestinfo.go`, `endpoints/handlers/responsewriters/errors.go`; the role
//! `system:discovery` of "Using RBAC Authorization".

use http::Method;
use subtle::{Choice, ConstantTimeEq as _};

use crate::model::selector::FieldSelector;

use super::options::truthy;
use super::status::{Details, Status};
use super::{Answer, HttpRequest, percent_decoded, query_pairs};

/// The name of the user who may do nothing.
const LIMITED: &str = "limited";

/// The name of whoever does not say who they are.
const ANONYMOUS: &str = "system:anonymous";

/// What everybody may read (role `system:public-info-viewer`).
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// What every user may read beside it, and all below (role `system:discovery`).
const DISCOVERY: [&str; 3] = ["/api", "/apis", "/openapi"];

/// The group whose members may do everything ("Using RBAC Authorization").
pub const ADMINS: &str = "system:masters";

/// Whom a client certificate names, once it was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name (CN).
    pub name: String,
    /// The groups (every O). A member of [`ADMINS`] may do everything.
    pub groups: Vec<String>,
}

/// The tokens that are known. Whoever comes with another is not let in, and whoever comes with neither a token nor a
/// certificate may ask for version and health, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Of the user who may do everything.
    pub token: String,
    /// Of the user `limited`, who may read discovery only.
    pub limited_token: Option<String>,
}

impl Access {
    /// May this be asked? A certificate, where there is one, is asked first.
    ///
    /// # Errors
    /// 401 for a token nobody knows, 403 for what the user has no right to.
    pub fn check(&self, request: &HttpRequest, certified: Option<&User>) -> Result<(), Status> {
        if let Some(user) = certified {
            let admin = user.groups.iter().any(|group| group == ADMINS);
            let refused = if admin { None } else { refusal(request, &user.name) };
            return refused.map_or(Ok(()), Err);
        }
        let sent = request
            .header("authorization")
            .and_then(|header| header.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        let Some(sent) = sent else {
            return refusal(request, ANONYMOUS).map_or(Ok(()), Err);
        };
        // Both are compared, so that the time taken tells neither.
        let full = same(sent, &self.token);
        let limited = self
            .limited_token
            .as_deref()
            .map_or(Choice::from(0), |token| same(sent, token));
        match (full.into(), limited.into()) {
            (true, _) => Ok(()),
            (false, true) => refusal(request, LIMITED).map_or(Ok(()), Err),
            (false, false) => Err(Status::unauthorized()),
        }
    }
}

/// The answer to whom [`Access::check`] refuses. A 403 of it has a header that those of handlers have not.
pub fn refused(status: Status) -> Answer {
    let mut answer = status.into_answer();
    if answer.status == 403 {
        let header = ("X-Content-Type-Options".to_owned(), "nosniff".to_owned());
        answer.headers.push(header);
    }
    answer
}

/// Compares without telling by its time where the texts differ. An empty token is nobody's.
fn same(sent: &str, known: &str) -> Choice {
    sent.as_bytes().ct_eq(known.as_bytes()) & Choice::from(u8::from(!known.is_empty()))
}

/// What a user without rights is told; `None` for what they may read nevertheless.
fn refusal(request: &HttpRequest, user: &str) -> Option<Status> {
    let path = percent_decoded(&request.path, false);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, below) = match parts.as_slice() {
        ["api", _, below @ ..] if !below.is_empty() => ("", below),
        ["apis", group, _, below @ ..] if !below.is_empty() => (*group, below),
        _ => {
            let below = |root: &&str| {
                path.strip_prefix(*root)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let discovery = user != ANONYMOUS && DISCOVERY.iter().any(below);
            if request.method == Method::GET && (discovery || PUBLIC.contains(&&*path)) {
                return None;
            }
            let verb = request.method.as_str().to_ascii_lowercase();
            let why = format!("User \"{user}\" cannot {verb} path \"{path}\"");
            return Some(Status::forbidden_to("", "", "", &why));
        }
    };
    let (watch_path, below) = match below {
        ["watch", below @ ..] if !below.is_empty() => (true, below),
        _ => (false, below),
    };
    let (namespace, resource, below) = match below {
        ["namespaces", namespace, resource, below @ ..] if !matches!(*resource, "status" | "finalize") => {
            (Some(*namespace), *resource, below)
        }
        ["namespaces", below @ ..] => (below.first().copied(), "namespaces", below),
        [resource, below @ ..] => (None, *resource, below),
        [] => return None,
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
    let name = below.first().copied().or(selected).unwrap_or_default();
    let part = below.get(1).map(|part| format!("/{part}")).unwrap_or_default();
    let place = match namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User \"{user}\" cannot {verb} resource \"{resource}{part}\" in API group \"{group}\" {place}"
    );
    Some(Status::forbidden_to(group, resource, name, &why))
}

impl Status {
    /// 401: a user that is not known.
    pub fn unauthorized() -> Self {
        Self {
            code: 401,
            reason: "Unauthorized".to_owned(),
            message: "Unauthorized".to_owned(),
            ..Self::default()
        }
    }

    /// 403: this user has no right to this. `resource` is empty for a path that names none.
    fn forbidden_to(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = match (resource, group) {
            ("", _) => String::new(),
            (resource, "") => resource.to_owned(),
            (resource, group) => format!("{resource}.{group}"),
        };
        let what = match (qualified.as_str(), name) {
            ("", _) => "forbidden".to_owned(),
            (qualified, "") => format!("{qualified} is forbidden"),
            (qualified, name) => format!("{qualified} \"{name}\" is forbidden"),
        };
        Self {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: format!("{what}: {why}"),
            ..Self::default()
        }
        .with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: resource.to_owned(),
            ..Details::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rstest::rstest;

    use super::*;

    /// Somebody with a certificate, of this group.
    const CERTIFIED: &str = "alice of ";

    const MAY: &str = "";
    const UNKNOWN: &str = "401 Unauthorized";

    #[rstest]
    #[case("admin", "GET", "/api/v1/namespaces/probe/configmaps", MAY)]
    #[case("admin", "DELETE", "/nope", MAY)]
    #[case("", "GET", "/version", MAY)]
    #[case("", "GET", "/livez", MAY)]
    #[case(
        "",
        "GET",
        "/livez/ping",
        "403 forbidden: User \"system:anonymous\" cannot get path \"/livez/ping\""
    )]
    #[case(
        "",
        "GET",
        "/api",
        "403 forbidden: User \"system:anonymous\" cannot get path \"/api\""
    )]
    #[case(
        "",
        "GET",
        "/api/v1/nodes",
        "403 nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    )]
    #[case("poor", "GET", "/openapi/v3/apis/apps/v1", MAY)]
    #[case(
        "poor",
        "GET",
        "/metrics",
        "403 forbidden: User \"limited\" cannot get path \"/metrics\""
    )]
    #[case(
        "poor",
        "HEAD",
        "/version",
        "403 forbidden: User \"limited\" cannot head path \"/version\""
    )]
    #[case("adm", "GET", "/version", UNKNOWN)]
    #[case("admin1", "GET", "/version", UNKNOWN)]
    #[case("poor", "GET", "/version", MAY)]
    #[case("alice of system:masters", "DELETE", "/nope", MAY)]
    #[case("alice of dev", "GET", "/version", MAY)]
    #[case(
        "alice of dev",
        "GET",
        "/api/v1/pods",
        "403 pods is forbidden: User \"alice\" cannot list resource \"pods\" in API group \"\" at the cluster scope"
    )]
    #[case("poor", "GET", "/apis/apps/v1", MAY)]
    #[case(
        "poor",
        "POST",
        "/version",
        "403 forbidden: User \"limited\" cannot post path \"/version\""
    )]
    #[case("poor", "GET", "/", "403 forbidden: User \"limited\" cannot get path \"/\"")]
    #[case(
        "poor",
        "GET",
        "/api/v1/namespaces/probe/configmaps",
        "403 configmaps is forbidden: User \"limited\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"probe\""
    )]
    #[case(
        "poor",
        "GET",
        "/api/v1/configmaps?watch=1",
        "403 configmaps is forbidden: User \"limited\" cannot watch resource \"configmaps\" in API group \"\" at the cluster scope"
    )]
    #[case(
        "poor",
        "GET",
        "/api/v1/pods?fieldSelector=metadata.name%3Dx",
        "403 pods \"x\" is forbidden: User \"limited\" cannot list resource \"pods\" in API group \"\" at the cluster scope"
    )]
    #[case(
        "poor",
        "PUT",
        "/apis/apps/v1/namespaces/n/deployments/d/status",
        "403 deployments.apps \"d\" is forbidden: User \"limited\" cannot update resource \"deployments/status\" in API group \"apps\" in the namespace \"n\""
    )]
    #[case(
        "poor",
        "DELETE",
        "/apis/probe.example.com/v1/namespaces/n/widgets",
        "403 widgets.probe.example.com is forbidden: User \"limited\" cannot deletecollection resource \"widgets\" in API group \"probe.example.com\" in the namespace \"n\""
    )]
    #[case(
        "poor",
        "GET",
        "/api/v1/namespaces/n",
        "403 namespaces \"n\" is forbidden: User \"limited\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"n\""
    )]
    fn who_may_do_what(
        #[case] token: &str,
        #[case] method: &str,
        #[case] target: &str,
        #[case] expected: &str,
    ) {
        let access = Access {
            token: "admin".to_owned(),
            limited_token: Some("poor".to_owned()),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = http::HeaderMap::new();
        let certified = token.strip_prefix(CERTIFIED).map(|group| User {
            name: "alice".to_owned(),
            groups: vec!["first".to_owned(), group.to_owned()],
        });
        if !token.is_empty() && certified.is_none() {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let asked = HttpRequest {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: Bytes::new(),
        };
        let told = access.check(&asked, certified.as_ref());
        let told = told.map_or_else(
            |status| format!("{} {}", status.code, status.message),
            |()| String::new(),
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn a_token_that_is_not_set_lets_nobody_in() {
        assert!(!bool::from(same("", "")));
    }
}
