//! Requests on their way to the upstream: what each reads, whose credentials it has, and the headers that it keeps.
//!
//! Source: RFC 9110, section 7.6.1 (hop-by-hop headers); "User impersonation".

use apimachinery::path::{ResourcePath, decoded_path};
use apimachinery::status::Status;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use subtle::ConstantTimeEq as _;
use trace::record::Verb;

use super::{Identity, Lends, Outbound, Settings};
use crate::api::access::{ADMINS, AUTHENTICATED, User};
use crate::api::options::truthy;
use crate::api::websocket::BEARER;
use crate::api::{Header, HttpRequest};

/// Headers of one connection, beside those that `Connection` names.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    http::header::PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// What the proxy answers instead of lending an identity that it has not.
pub(crate) const NOTHING_LENT: &str = "this proxy lends nobody its rights, and the request has no credentials but the \
     proxy's token: send your own credentials (a bearer token) instead of it, or start the proxy again with --as USER \
     (it impersonates that user) or with --as-me (it lends the identity of its kubeconfig)";

/// Returns the verb of a request, by its method, path and query alone.
pub(crate) fn verb(request: &HttpRequest) -> Verb {
    let path = decoded_path(&request.path);
    let is_read = request.method == http::Method::GET && upgrade(&request.headers).is_none();
    let Some(place) = ResourcePath::read(&path).filter(|_| is_read) else {
        return Verb::Other;
    };
    let query = request.query.pairs();
    let value = |wanted: &str| {
        query
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.as_str())
    };
    let watch = value("watch").is_some_and(truthy);
    match place.verb {
        Some("proxy") => Verb::Other,
        None if !place.is_collection() => Verb::Other,
        None if !watch => Verb::List,
        _ if value("sendInitialEvents") == Some("true") => Verb::WatchList,
        _ => Verb::Watch,
    }
}

/// Whose credentials a request is forwarded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Its own.
    Own,
    /// Those that are lent, with these headers that let them act as another user; none: as themselves, or as the request asks.
    Lent { acts_as: Vec<(HeaderName, HeaderValue)> },
}

impl Settings {
    /// Returns whose credentials a request is forwarded with; `certified`: user of the client certificate.
    ///
    /// # Errors
    /// 401 without any; 400 if they are ambiguous or would be lost on the way; 403 if there is no identity to lend, or the
    /// request asks the lent one to impersonate.
    pub(crate) fn credentials(
        &self,
        headers: &HeaderMap,
        certified: Option<&User>,
    ) -> Result<Credentials, Status> {
        if let Some(name) = named_by_connection(headers).find(is_credential) {
            return Err(Status::bad_request(format!(
                "the header Connection names {name}: a proxy would drop it, and the request would have another user"
            )));
        }
        if self.lends == Lends::ForCertificate {
            return self.credentials_of_certificate(headers, certified);
        }
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        match (sent.next(), sent.next()) {
            (Some(_), Some(_)) => {
                return Err(Status::bad_request("there is more than one Authorization header"));
            }
            (Some(value), None) if self.is_token(value) => {}
            (Some(_), None) => return Ok(Credentials::Own),
            (None, _) if has_bearer_protocol(headers) => return Ok(Credentials::Own),
            (None, _) => return Err(Status::unauthorized()),
        }
        if self.lends == Lends::Nothing {
            return Err(forbidden(NOTHING_LENT));
        }
        if let Some(name) = headers
            .keys()
            .find(|name| is_credential(name) && **name != AUTHORIZATION)
        {
            return Err(forbidden(&format!(
                "a request with the proxy's token has the identity that the proxy lends, and cannot choose another: \
                 remove the header {name}, or send your own credentials"
            )));
        }
        Ok(Credentials::Lent { acts_as: Vec::new() })
    }

    /// Returns whose credentials a request has if certificates are lent an identity. An apiserver prefers a certificate to a token.
    fn credentials_of_certificate(
        &self,
        headers: &HeaderMap,
        certified: Option<&User>,
    ) -> Result<Credentials, Status> {
        let as_asked = || Credentials::Lent { acts_as: Vec::new() };
        let Some(user) = certified else {
            let is_token = headers
                .get(AUTHORIZATION)
                .is_some_and(|value| self.is_token(value));
            return Ok(if is_token { as_asked() } else { Credentials::Own });
        };
        if is_impersonating(headers) {
            return if user.is_in(ADMINS) {
                Ok(as_asked())
            } else {
                Err(forbidden(&format!(
                    "{name} asks to impersonate another user, and the proxy in front of this apiserver already impersonates \
                     {name}, so that its right to do so cannot be checked: use a token, or a certificate of the group {ADMINS}",
                    name = user.name
                )))
            };
        }
        // Without its user a request would have all rights of the lent identity.
        match impersonation(user) {
            Some(acts_as) => Ok(Credentials::Lent { acts_as }),
            None => Err(Status::bad_request(
                "the name or a group of the client certificate cannot be sent in a header",
            )),
        }
    }

    /// Compares in constant time.
    fn is_token(&self, header: &HeaderValue) -> bool {
        let sent = header.as_bytes();
        let scheme = sent
            .get(..7)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
        let token = sent.get(7..).unwrap_or_default().trim_ascii();
        scheme && !self.token.is_empty() && bool::from(token.ct_eq(self.token.as_bytes()))
    }
}

/// Returns the headers by which the lent identity acts as this user; `None`: a value cannot be in a header.
fn impersonation(user: &User) -> Option<Vec<(HeaderName, HeaderValue)>> {
    // Impersonation adds the group of all authenticated users itself.
    let groups = user.groups.iter().filter(|group| *group != AUTHENTICATED);
    let groups = groups.map(|group| ("impersonate-group", group));
    let headers = std::iter::once(("impersonate-user", &user.name)).chain(groups);
    let headers = headers.map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes())
            .ok()
            .filter(|value| !value.is_empty())?;
        Some((HeaderName::from_static(name), value))
    });
    headers.collect()
}

/// Returns the request for the upstream. Of LIST and WATCH it asks for JSON without a content coding, because rules, judge and
/// trace read them.
pub(crate) fn outbound(request: &HttpRequest, verb: Verb, credentials: Credentials, query: &str) -> Outbound {
    let mut headers = request.headers.clone();
    let upgrade = upgrade(&headers).cloned();
    let named: Vec<HeaderName> = named_by_connection(&headers).collect();
    for name in HOP_BY_HOP.iter().chain(&named).chain([&HOST, &CONTENT_LENGTH]) {
        headers.remove(name);
    }
    let identity = match credentials {
        Credentials::Own => {
            if let Some(sent) = headers.get_mut(AUTHORIZATION) {
                sent.set_sensitive(true);
            }
            Identity::Own
        }
        Credentials::Lent { acts_as } => {
            headers.remove(AUTHORIZATION);
            for (name, value) in acts_as {
                headers.append(name, value);
            }
            Identity::Lent
        }
    };
    if verb != Verb::Other {
        let accepted = in_json(&headers);
        headers.insert(ACCEPT, accepted);
        headers.remove(ACCEPT_ENCODING);
    } else if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, upgrade);
    }
    Outbound {
        method: request.method.clone(),
        target: match query {
            "" => request.path.clone(),
            query => format!("{}?{query}", request.path),
        },
        headers,
        body: request.body.clone(),
        identity,
    }
}

/// Returns the end-to-end headers of a response, as names and values; `upgraded`: with those of the upgrade. `Date` is kept,
/// and the length is of the framing.
pub(crate) fn end_to_end(headers: &HeaderMap, upgraded: bool) -> Vec<Header> {
    let named: Vec<HeaderName> = named_by_connection(headers).collect();
    let is_kept = |name: &HeaderName| {
        let of_upgrade = upgraded && (*name == CONNECTION || *name == UPGRADE);
        let hop_by_hop = HOP_BY_HOP.contains(name) || named.contains(name) || *name == CONTENT_LENGTH;
        of_upgrade || !hop_by_hop
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns `Accept` without the media types other than JSON.
fn in_json(headers: &HeaderMap) -> HeaderValue {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).map(str::trim);
    let json: Vec<&str> = ranges
        .filter(|range| {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            ["application/json", "application/*", "*/*"]
                .iter()
                .any(|kept| kept.eq_ignore_ascii_case(media_type))
        })
        .collect();
    let joined = HeaderValue::try_from(json.join(","));
    joined
        .ok()
        .filter(|_| !json.is_empty())
        .unwrap_or(HeaderValue::from_static("application/json"))
}

/// Returns the protocol of a connection to a pod that the client asks to upgrade to. Others are for the next hop only: some
/// clients ask every server for `h2c`.
fn upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
    let value = headers.get(UPGRADE)?;
    let protocol = value.to_str().unwrap_or_default().to_ascii_lowercase();
    (protocol == "websocket" || protocol.starts_with("spdy/")).then_some(value)
}

/// Returns the headers that `Connection` names.
fn named_by_connection(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let values = headers.get_all(CONNECTION).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
}

/// Whether a header decides whose request it is: credentials, impersonation, or what an authenticating proxy sets.
fn is_credential(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "authorization" || name.starts_with("impersonate-") || name.starts_with("x-remote-")
}

fn is_impersonating(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| name.as_str().starts_with("impersonate-"))
}

fn has_bearer_protocol(headers: &HeaderMap) -> bool {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut protocols = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().starts_with(BEARER.as_bytes()))
}

fn forbidden(why: &str) -> Status {
    Status {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: why.to_owned(),
        ..Status::default()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;
    use rstest::rstest;

    use super::*;

    const LENDING: Lends = Lends::ForToken;
    const NOT: Lends = Lends::Nothing;

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header");
            let name = HeaderName::try_from(name).expect("a name");
            headers.append(name, HeaderValue::try_from(value).expect("a value"));
        }
        headers
    }

    fn request(method: Method, target: &str, lines: &[&str]) -> HttpRequest {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        HttpRequest {
            method,
            path: path.to_owned(),
            query: query.into(),
            headers: headers(lines),
            body: Bytes::new(),
        }
    }

    #[rstest]
    #[case("/api/v1/pods", Verb::List)]
    #[case("/api/v1/pods?watch=0", Verb::List)]
    #[case("/api/v1/namespaces/n/pods?watch=1", Verb::Watch)]
    #[case(
        "/apis/example.com/v1/widgets?watch=true&sendInitialEvents=true",
        Verb::WatchList
    )]
    #[case("/api/v1/watch/namespaces/n/pods/p", Verb::Watch)]
    #[case("/api/v1/namespaces/n", Verb::Other)]
    #[case("/api/v1/namespaces/n/pods/p?watch=1", Verb::Other)]
    #[case("/api/v1/proxy/nodes/n?watch=1", Verb::Other)]
    #[case("/api/v1", Verb::Other)]
    #[case("/apis/apps/v1", Verb::Other)]
    #[case("/metrics", Verb::Other)]
    fn a_verb_needs_no_catalog(#[case] target: &str, #[case] expected: Verb) {
        assert_eq!(verb(&request(Method::GET, target, &[])), expected);
        assert_eq!(verb(&request(Method::DELETE, target, &[])), Verb::Other);
        let upgraded = request(Method::GET, target, &["Upgrade: websocket"]);
        assert_eq!(verb(&upgraded), Verb::Other);
        let h2c = request(Method::GET, target, &["Upgrade: h2c"]);
        assert_eq!(verb(&h2c), expected);
    }

    #[rstest]
    #[case::no_credentials(LENDING, &[], "401")]
    #[case::token(LENDING, &["Authorization: Bearer secret"], "lent")]
    #[case::token_and_case(LENDING, &["authorization: bearer  secret "], "lent")]
    #[case::nothing_to_lend(NOT, &["Authorization: Bearer secret"], "403")]
    #[case::own_token(LENDING, &["Authorization: Bearer secret2"], "own")]
    #[case::own_token_with_impersonation(NOT, &["Authorization: Bearer mine", "Impersonate-User: bob"], "own")]
    #[case::own_basic(NOT, &["Authorization: Basic c2VjcmV0"], "own")]
    #[case::own_web_socket(NOT, &["Sec-WebSocket-Protocol: v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.bWluZQ"], "own")]
    #[case::empty_token(LENDING, &["Authorization: Bearer "], "own")]
    #[case::two(LENDING, &["Authorization: Bearer secret", "Authorization: Bearer mine"], "400")]
    #[case::impersonation(LENDING, &["Authorization: Bearer secret", "Impersonate-User: system:admin"], "403")]
    #[case::impersonated_group(LENDING, &["Authorization: Bearer secret", "IMPERSONATE-GROUP: system:masters"], "403")]
    #[case::impersonated_extra(LENDING, &["Authorization: Bearer secret", "Impersonate-Extra-scopes: x"], "403")]
    #[case::front_proxy(LENDING, &["Authorization: Bearer secret", "X-Remote-User: admin"], "403")]
    #[case::dropped(LENDING, &["Authorization: Bearer secret", "Connection: close, Impersonate-User"], "400")]
    #[case::dropped_token(NOT, &["Authorization: Bearer mine", "Connection: authorization"], "400")]
    fn whose_request_it_is(#[case] lends: Lends, #[case] lines: &[&str], #[case] expected: &str) {
        let settings = Settings {
            token: "secret".to_owned(),
            lends,
            may_write: false,
        };
        let found = match settings.credentials(&headers(lines), None) {
            Ok(Credentials::Own) => "own".to_owned(),
            Ok(Credentials::Lent { .. }) => "lent".to_owned(),
            Err(status) => status.code.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_refusal_names_the_three_choices() {
        let settings = Settings {
            token: "secret".to_owned(),
            lends: NOT,
            may_write: false,
        };
        let refused = settings.credentials(&headers(&["Authorization: Bearer secret"]), None);
        let message = refused.expect_err("nothing is lent").message;
        for choice in ["your own credentials", "--as USER", "--as-me"] {
            assert!(message.contains(choice), "{message}");
        }
    }

    #[test]
    fn hop_by_hop_headers_and_the_proxy_s_token_stay_here() {
        let lines = [
            "Host: 127.0.0.1:1",
            "Authorization: Bearer secret",
            "Connection: keep-alive, X-Hop",
            "Keep-Alive: timeout=5",
            "X-Hop: 1",
            "Te: trailers",
            "Transfer-Encoding: chunked",
            "Upgrade: SPDY/3.1",
            "User-Agent: test",
            "Accept: application/vnd.kubernetes.protobuf;as=Table, application/cbor",
            "Accept-Encoding: gzip",
            "X-Mine: 1",
        ];
        let asked = request(Method::GET, "/api/v1/pods?limit=5", &lines);
        let sent = outbound(
            &asked,
            Verb::List,
            Credentials::Lent { acts_as: Vec::new() },
            asked.query.as_str(),
        );
        let mut kept: Vec<String> = { sent.headers.iter() }
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        kept.sort();
        assert_eq!(
            kept,
            ["accept: application/json", "user-agent: test", "x-mine: 1"]
        );
        assert_eq!(sent.target, "/api/v1/pods?limit=5");

        let own = outbound(&asked, Verb::Other, Credentials::Own, "");
        assert_eq!(own.headers[AUTHORIZATION], "Bearer secret");
        assert_eq!(own.headers[ACCEPT_ENCODING], "gzip");
        assert_eq!(own.headers[UPGRADE], "SPDY/3.1");
        assert_eq!(own.headers[CONNECTION], "Upgrade");
    }

    #[rstest]
    #[case::anonymous(None, &[], "own", "")]
    #[case::token(None, &["Authorization: Bearer mine"], "own", "")]
    #[case::token_of_the_proxy(None, &["Authorization: Bearer secret"], "lent", "")]
    #[case::certificate(Some(&["dev", AUTHENTICATED][..]), &[], "lent", "group: dev, user: jane")]
    #[case::certificate_before_token(Some(&[][..]), &["Authorization: Bearer mine"], "lent", "user: jane")]
    #[case::admin_as_another(Some(&[ADMINS][..]), &["Impersonate-User: bob"], "lent", "user: bob")]
    #[case::user_as_another(Some(&["dev"][..]), &["Impersonate-User: bob"], "403", "")]
    #[case::dropped(Some(&["dev"][..]), &["Connection: Impersonate-User"], "400", "")]
    #[case::no_header(Some(&["dev\nX: y"][..]), &[], "400", "")]
    #[case::no_group(Some(&[""][..]), &[], "400", "")]
    fn a_certificate_is_sent_on_as_its_user(
        #[case] groups: Option<&[&str]>,
        #[case] lines: &[&str],
        #[case] expected: &str,
        #[case] acts_as: &str,
    ) {
        let user = groups.map(|groups| User {
            name: "jane".to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..User::default()
        });
        let settings = Settings {
            token: "secret".to_owned(),
            lends: Lends::ForCertificate,
            may_write: false,
        };
        let asked = request(Method::GET, "/api/v1/pods", lines);
        let credentials = match settings.credentials(&asked.headers, user.as_ref()) {
            Ok(credentials) => credentials,
            Err(status) => return assert_eq!(status.code.to_string(), expected),
        };
        let sent = outbound(&asked, Verb::List, credentials, "");
        let found = match sent.identity {
            Identity::Lent => "lent",
            Identity::Own => "own",
        };
        let mut headers: Vec<String> = { sent.headers.iter() }
            .filter_map(|(name, value)| {
                let name = name.as_str().strip_prefix("impersonate-")?;
                Some(format!("{name}: {}", value.to_str().expect("text")))
            })
            .collect();
        headers.sort();
        assert_eq!((found, headers.join(", ").as_str()), (expected, acts_as));
        assert_eq!(
            sent.headers.contains_key(AUTHORIZATION),
            sent.identity == Identity::Own && !lines.is_empty()
        );
    }

    #[rstest]
    #[case(&[], "application/json")]
    #[case(&["Accept: */*"], "*/*")]
    #[case(&["Accept: application/vnd.kubernetes.protobuf,application/json"], "application/json")]
    #[case(&["Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml", "Accept: application/json"], "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")]
    fn lists_are_asked_for_in_json(#[case] lines: &[&str], #[case] expected: &str) {
        assert_eq!(in_json(&headers(lines)), expected);
    }
}
