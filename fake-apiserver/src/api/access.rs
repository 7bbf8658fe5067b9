//! Authentication: by a client certificate, by one of two bearer tokens, by a service account token, or as anonymous user.
//!
//! Authorization is in `rights`; service account tokens are verified by their issuer.
//!
//! Source: "Authenticating" and "User impersonation"; apiserver `endpoints/handlers/responsewriters/errors.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use apimachinery::status::Status;
use http::HeaderValue;
use subtle::{Choice, ConstantTimeEq as _};

use super::{Answer, FLOW_CONTROL, HttpRequest, NO_SNIFF, websocket};

mod attributes;
mod impersonation;
mod issuer;
mod rights;
mod settings;

pub(crate) use attributes::Attributes;
pub(crate) use impersonation::impersonated;
pub(crate) use issuer::{ALGORITHM, Issuer};
pub use rights::Authorization;
pub(crate) use rights::{Authorizer, subject};
pub use settings::AccessSettings;

/// Group whose members are authorized to do everything ("Using RBAC Authorization").
pub const ADMINS: &str = "system:masters";

/// Group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";

/// Key of the credential in the extras of a user (KEP-4193).
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Audience and issuer of tokens for this server.
pub(crate) const API_AUDIENCE: &str = "https://kubernetes.default.svc";

/// Group of anonymous requests.
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Name of anonymous requests.
const ANONYMOUS: &str = "system:anonymous";

/// Group of all service accounts.
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// User of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// Name; of a client certificate, its CN.
    pub name: String,
    /// Distinguishes users of one name; may be empty.
    pub uid: String,
    /// Groups; of a client certificate, every O and [`AUTHENTICATED`]. A member of [`ADMINS`] is authorized to do everything.
    pub groups: Vec<String>,
    /// Additional attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns a user as a token file defines it (`--token-auth-file`).
    fn listed(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            uid: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            extra: BTreeMap::new(),
        }
    }

    /// Returns whether the user is anonymous.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.is_in(UNAUTHENTICATED)
    }

    /// Returns whether the user is a member of `group`.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|of| of == group)
    }
}

static ADMIN: LazyLock<Arc<User>> = LazyLock::new(|| User::listed("admin", &[ADMINS, AUTHENTICATED]).into());
static LIMITED: LazyLock<Arc<User>> = LazyLock::new(|| User::listed("limited", &[AUTHENTICATED]).into());
static NOBODY: LazyLock<Arc<User>> = LazyLock::new(|| {
    let user = User {
        uid: String::new(),
        ..User::listed(ANONYMOUS, &[UNAUTHENTICATED])
    };
    user.into()
});

/// User of a request, and its authorizer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requester<'a> {
    pub(crate) user: &'a User,
    pub(crate) authorizer: &'a Authorizer,
}

/// Accepted tokens. A request with another token gets 401; one without token and certificate is authorized to read version
/// and health only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Token of the user `admin`, who is authorized to do everything.
    pub token: String,
    /// Token of the user `limited`, who is authorized to read discovery and review their own rights only.
    pub limited_token: Option<String>,
    /// Secret from which the signing key of service account tokens is derived. It must be unpredictable.
    pub signing_secret: [u8; 32],
}

impl Access {
    /// Returns the user of a token, if it is one of these.
    pub(crate) fn user_of(&self, sent: &str) -> Option<&'static Arc<User>> {
        // Both tokens are compared, so that the time does not depend on which one matches.
        let full = same(sent, &self.token);
        let limited = self
            .limited_token
            .as_deref()
            .map_or(Choice::from(0), |token| same(sent, token));
        match (full.into(), limited.into()) {
            (true, _) => Some(&ADMIN),
            (false, true) => Some(&LIMITED),
            (false, false) => None,
        }
    }
}

/// Returns the user of a request. A client certificate takes precedence over a token; without `access`, a request with an
/// unknown token is anonymous.
///
/// # Errors
///
/// 401 for an unknown token.
pub(crate) fn authenticate(
    access: Option<&Access>,
    request: &HttpRequest,
    certified: Option<&Arc<User>>,
    service_account: impl FnOnce(&str) -> Option<User>,
) -> Result<Arc<User>, Status> {
    if let Some(user) = certified {
        return Ok(Arc::clone(user));
    }
    let header = request.headers.get(http::header::AUTHORIZATION);
    let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let sent = header
        .as_deref()
        .and_then(|header| header.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let of_browser = match sent {
        Some(_) => None,
        None => websocket::token(request).map_err(|()| Status::unauthorized())?,
    };
    let Some(sent) = sent.or(of_browser.as_deref()) else {
        return Ok(Arc::clone(&NOBODY));
    };
    if let Some(user) = access.and_then(|access| access.user_of(sent)) {
        return Ok(Arc::clone(user));
    }
    match (service_account(sent), access) {
        (Some(user), _) => Ok(user.into()),
        (None, None) => Ok(Arc::clone(&NOBODY)),
        (None, Some(_)) => Err(Status::unauthorized()),
    }
}

/// Returns the groups of every service account of a namespace.
pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    let of_namespace = format!("{SERVICE_ACCOUNTS}:{namespace}");
    vec![
        SERVICE_ACCOUNTS.to_owned(),
        of_namespace,
        AUTHENTICATED.to_owned(),
    ]
}

/// Returns the response to an unauthorized request. It has a header that responses of handlers do not have.
pub(crate) fn refused(status: Status) -> Answer {
    let mut answer = Answer::from(status);
    answer.headers.push(NO_SNIFF);
    answer
}

/// Returns the response to a request that fails authentication or impersonation, which precede flow control.
pub(crate) fn rejected_before_flow_control(status: Status) -> Answer {
    let mut answer = match status.code {
        401 => status.into(),
        _ => refused(status),
    };
    let unseen = FLOW_CONTROL.map(|(name, _)| (name, HeaderValue::from_static("")));
    answer.headers.extend(unseen);
    answer
}

/// Compares in constant time. An empty token matches nothing.
fn same(sent: &str, known: &str) -> Choice {
    sent.as_bytes().ct_eq(known.as_bytes()) & Choice::from(u8::from(!known.is_empty()))
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use bytes::Bytes;
    use rstest::rstest;

    use super::*;
    use crate::model::policy::default_policy;

    /// A user with a certificate, in this group.
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
    #[case("töken", "GET", "/version", UNKNOWN)]
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
    #[case("poor", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", MAY)]
    #[case("poor", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", MAY)]
    #[case(
        "",
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "403 selfsubjectreviews.authentication.k8s.io is forbidden: User \"system:anonymous\" cannot create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope"
    )]
    #[case("admin as user=bob,group=system:masters", "GET", "/api/v1/nodes", MAY)]
    #[case("admin as user=bob", "GET", "/version", MAY)]
    #[case(
        "admin as user=jörg",
        "GET",
        "/api/v1/nodes",
        "403 nodes is forbidden: User \"jörg\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    )]
    #[case("admin as user=bob,group=größe", "GET", "/version", MAY)]
    #[case(
        "admin as group=größe",
        "GET",
        "/version",
        "400 requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"größe\"}, Extra:map[string][]string(nil)} without impersonating a user name"
    )]
    #[case(
        "admin as user=bob",
        "GET",
        "/api/v1/nodes",
        "403 nodes is forbidden: User \"bob\" cannot list resource \"nodes\" in API group \"\" at the cluster scope"
    )]
    #[case(
        "admin as user=system:anonymous",
        "GET",
        "/api",
        "403 forbidden: User \"system:anonymous\" cannot get path \"/api\""
    )]
    #[case(
        "poor as user=bob",
        "GET",
        "/api/v1/namespaces/n/pods/x",
        "403 pods \"x\" is forbidden: User \"limited\" cannot impersonate-on:user-info:get resource \"pods\" in API group \"\" in the namespace \"n\""
    )]
    #[case(
        "poor as user=system:serviceaccount:n:a",
        "GET",
        "/nope",
        "403 forbidden: User \"limited\" cannot impersonate-on:serviceaccount:get path \"/nope\""
    )]
    #[case(
        "admin as group=g,extra-a%2fb=c",
        "GET",
        "/version",
        "400 requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string{\"a/b\":[]string{\"c\"}}} without impersonating a user name"
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
            signing_secret: [0; 32],
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = http::HeaderMap::new();
        let (credential, impersonation) = token.split_once(" as ").unwrap_or((token, ""));
        let certified = credential.strip_prefix(CERTIFIED).map(|group| {
            Arc::new(User {
                name: "alice".to_owned(),
                groups: vec!["first".to_owned(), group.to_owned(), AUTHENTICATED.to_owned()],
                ..User::default()
            })
        });
        if !credential.is_empty() && certified.is_none() {
            headers.insert(
                "authorization",
                format!("Bearer {credential}").try_into().unwrap(),
            );
        }
        for header in impersonation.split(',').filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once('=').unwrap();
            let name = format!("impersonate-{name}").parse::<http::HeaderName>().unwrap();
            headers.append(name, value.to_owned().try_into().unwrap());
        }
        let asked = HttpRequest {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.into(),
            headers,
            body: Bytes::new(),
        };
        let roles = Authorizer::Roles(Arc::new(default_policy(Version::NEWEST)));
        let outcome = authenticate(Some(&access), &asked, certified.as_ref(), |_| None)
            .and_then(|user| impersonated(user, &asked, || roles.clone(), Version::NEWEST))
            .and_then(|user| roles.check(&user, &asked));
        let outcome = outcome.map_or_else(
            |status| format!("{} {}", status.code, status.message),
            |()| String::new(),
        );
        assert_eq!(outcome, expected);
    }

    #[rstest]
    #[case("user", 403)]
    #[case("group", 400)]
    #[case("uid", 400)]
    #[case("extra-a", 400)]
    fn headers_that_are_not_utf_8_never_fall_back_to_the_caller(#[case] what: &str, #[case] code: u16) {
        let mut headers = http::HeaderMap::new();
        let name = format!("impersonate-{what}").parse::<http::HeaderName>().unwrap();
        headers.insert(name, http::HeaderValue::from_bytes(b"\xff").unwrap());
        let asked = HttpRequest {
            method: http::Method::GET,
            path: "/api/v1/nodes".to_owned(),
            query: "".into(),
            headers,
            body: Bytes::new(),
        };
        let roles = Authorizer::Roles(Arc::new(default_policy(Version::NEWEST)));
        let outcome = impersonated(Arc::clone(&ADMIN), &asked, || roles.clone(), Version::NEWEST)
            .and_then(|user| roles.check(&user, &asked));
        assert_eq!(outcome.unwrap_err().code, code);
    }

    #[test]
    fn an_unset_token_matches_nothing() {
        assert!(!bool::from(same("", "")));
    }
}
