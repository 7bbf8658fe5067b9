//! Upgrade of a watch to a WebSocket: detection, and the head of the response.
//!
//! Frames are handled in `net`. Source: recordings of probes 106 and watch-websocket-protocols; RFC 6455, section 4; Go
//! `x/net/websocket`, which kube-apiserver uses and which writes its errors without any header; apiserver
//! `pkg/authentication/request/websocket`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use tungstenite::handshake::derive_accept_key;

use super::{Header, HttpRequest};

/// The only supported version.
const VERSION: &str = "13";

/// Beginning of the subprotocol with the bearer token of a browser, which cannot set other headers.
pub(crate) const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// Returns the bearer token in the subprotocols of a request; `None`: it has none.
///
/// # Errors
///
/// The token is not encoded as it has to be, is one of several, or there is no other subprotocol to respond with.
pub(super) fn token(request: &HttpRequest) -> Result<Option<String>, ()> {
    if !asks(request) {
        return Ok(None);
    }
    let mut tokens = offered(request).filter_map(|protocol| protocol.strip_prefix(BEARER));
    let Some(encoded) = tokens.next() else {
        return Ok(None);
    };
    let decoded = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| ())?;
    let token = String::from_utf8(decoded).map_err(|_| ())?;
    let is_only = tokens.next().is_none();
    let others = offered(request).any(|protocol| !protocol.starts_with(BEARER));
    match is_only && (others || token.is_empty()) {
        true => Ok(Some(token).filter(|token| !token.is_empty())),
        false => Err(()),
    }
}

/// Returns the subprotocols of a request.
fn offered(request: &HttpRequest) -> impl Iterator<Item = &str> {
    let headers = request.headers.get_all("sec-websocket-protocol").into_iter();
    let headers = headers.filter_map(|value| value.to_str().ok());
    headers.flat_map(|value| value.split(',').map(str::trim))
}

/// Whether a request asks for a WebSocket.
fn asks(request: &HttpRequest) -> bool {
    let has_token = |name: &str, token: &str| {
        let mut tokens = request.header(name).unwrap_or_default().split(',');
        tokens.any(|each| each.trim().eq_ignore_ascii_case(token))
    };
    has_token("connection", "upgrade") && has_token("upgrade", "websocket")
}

/// Returns status and headers of the response to a watch that requests a WebSocket. `None`: it does not.
///
/// After a 101 each event is a text message; any other status is an error without a body.
pub fn handshake(request: &HttpRequest) -> Option<(u16, Vec<Header>)> {
    if !asks(request) {
        return None;
    }
    let key = request.header("sec-websocket-key").unwrap_or_default();
    if key.is_empty() || request.header("sec-websocket-version") != Some(VERSION) {
        return Some((400, Vec::new()));
    }
    // Browsers always send it, and the check is meant for pages in browsers.
    if request.header(http::header::ORIGIN).is_none_or(str::is_empty) {
        return Some((403, Vec::new()));
    }
    let accepted = HeaderValue::try_from(derive_accept_key(key.as_bytes())).expect("base64 is a value");
    let mut headers = vec![
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (SEC_WEBSOCKET_ACCEPT, accepted),
    ];
    // Authentication by the token removes it.
    let is_token = |protocol: &str| {
        protocol.starts_with(BEARER) && request.header(http::header::AUTHORIZATION).is_none()
    };
    let mut protocols = offered(request).filter(|protocol| !protocol.is_empty() && !is_token(protocol));
    if let Some(protocol) = protocols.next() {
        // The server has no list to choose by.
        if protocols.next().is_some() {
            return Some((400, Vec::new()));
        }
        let chosen = HeaderValue::try_from(protocol).expect("it is of a value");
        headers.push((SEC_WEBSOCKET_PROTOCOL, chosen));
    }
    Some((101, headers))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::not_asked(&[], None)]
    #[case::another_upgrade(&[("connection", "upgrade"), ("upgrade", "h2c")], None)]
    #[case::asked(
        &[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), ("origin", "http://localhost")],
        Some(101)
    )]
    #[case::from_nowhere(&[("connection", "upgrade"), ("upgrade", "websocket")], Some(403))]
    #[case::of_another_version(
        &[("connection", "upgrade"), ("upgrade", "websocket"), ("origin", "x"), ("sec-websocket-version", "8")],
        Some(400)
    )]
    #[case::without_a_key(
        &[("connection", "upgrade"), ("upgrade", "websocket"), ("origin", "x"), ("sec-websocket-key", "")],
        Some(400)
    )]
    #[case::with_a_protocol(
        &[("connection", "upgrade"), ("upgrade", "websocket"), ("origin", "x"), ("sec-websocket-protocol", "a")],
        Some(101)
    )]
    #[case::with_a_token(
        &[
            ("connection", "upgrade"), ("upgrade", "websocket"), ("origin", "x"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.dA, a"),
        ],
        Some(101)
    )]
    #[case::with_two_protocols(
        &[("connection", "upgrade"), ("upgrade", "websocket"), ("origin", "x"), ("sec-websocket-protocol", "a, b")],
        Some(400)
    )]
    fn upgrades_are_accepted_or_refused(#[case] sent: &[(&str, &str)], #[case] status: Option<u16>) {
        let mut headers = http::HeaderMap::new();
        // Example key of RFC 6455, section 1.3.
        headers.insert("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==".parse().unwrap());
        headers.insert("sec-websocket-version", "13".parse().unwrap());
        for (name, value) in sent {
            let name: http::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let answer = handshake(&HttpRequest {
            method: http::Method::GET,
            path: "/api/v1/pods".to_owned(),
            query: "watch=1".into(),
            headers,
            body: Bytes::new(),
        });
        assert_eq!(answer.as_ref().map(|(status, _)| *status), status);
        let key = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let accept = (SEC_WEBSOCKET_ACCEPT, key);
        let chosen = (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("a"));
        let offers = sent.iter().any(|(name, _)| *name == "sec-websocket-protocol");
        let responds = answer
            .as_ref()
            .is_some_and(|(_, headers)| headers.contains(&chosen));
        assert_eq!(responds, offers && status == Some(101));
        let accepted = answer.is_some_and(|(_, headers)| headers.contains(&accept));
        assert_eq!(accepted, status == Some(101));
    }

    #[rstest]
    #[case("", Ok(None))]
    #[case("a", Ok(None))]
    #[case("base64url.bearer.authorization.k8s.io.dA, a", Ok(Some("t")))]
    #[case("a,base64url.bearer.authorization.k8s.io.dA", Ok(Some("t")))]
    #[case("base64url.bearer.authorization.k8s.io.dA", Err(()))]
    #[case("base64url.bearer.authorization.k8s.io.?, a", Err(()))]
    #[case("base64url.bearer.authorization.k8s.io.dA, base64url.bearer.authorization.k8s.io.dA, a", Err(()))]
    fn a_token_can_be_a_subprotocol(#[case] sent: &str, #[case] expected: Result<Option<&str>, ()>) {
        let mut headers = http::HeaderMap::new();
        headers.insert("connection", "upgrade".parse().unwrap());
        headers.insert("upgrade", "websocket".parse().unwrap());
        headers.insert("sec-websocket-protocol", sent.parse().unwrap());
        let request = HttpRequest {
            method: http::Method::GET,
            path: "/api/v1/pods".to_owned(),
            query: "watch=1".into(),
            headers,
            body: Bytes::new(),
        };
        assert_eq!(
            token(&request).map(|token| token.is_some()),
            expected.map(|token| token.is_some())
        );
        assert_eq!(token(&request).ok().flatten().as_deref(), expected.ok().flatten());
    }
}
