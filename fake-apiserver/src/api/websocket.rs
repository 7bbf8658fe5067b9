//! Upgrade of a watch to a WebSocket: detection, and the head of the response.
//!
//! Frames are handled in `net`. Source: recordings of probe 106; RFC 6455, section 4; Go `x/net/websocket`, which
//! kube-apiserver uses and which writes its errors without any header.

use tungstenite::handshake::derive_accept_key;

use super::HttpRequest;

/// The only supported version.
const VERSION: &str = "13";

/// Returns status and headers of the response to a watch that requests a WebSocket. `None`: it does not.
///
/// After a 101 each event is a text message; any other status is an error without a body.
pub fn handshake(request: &HttpRequest) -> Option<(u16, Vec<(String, String)>)> {
    let has_token = |name: &str, token: &str| {
        let mut tokens = request.header(name).unwrap_or_default().split(',');
        tokens.any(|each| each.trim().eq_ignore_ascii_case(token))
    };
    if !(has_token("connection", "upgrade") && has_token("upgrade", "websocket")) {
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
    let headers = [
        ("Upgrade", "websocket".to_owned()),
        ("Connection", "Upgrade".to_owned()),
        ("Sec-WebSocket-Accept", derive_accept_key(key.as_bytes())),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value));
    Some((101, headers.to_vec()))
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
        let accept = (
            "Sec-WebSocket-Accept".to_owned(),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned(),
        );
        let accepted = answer.is_some_and(|(_, headers)| headers.contains(&accept));
        assert_eq!(accepted, status == Some(101));
    }
}
