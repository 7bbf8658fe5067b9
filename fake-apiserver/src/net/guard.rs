//! Requests rejected before the server handles them: malformed HTTP by the rules of Go's server, and requests that a web page
//! may have sent to a server without authentication on this machine.
//!
//! A page reaches such a server by a name that resolves to 127.0.0.1 (DNS rebinding), by a WebSocket, and by a simple request
//! (a POST without preflight).
//!
//! Source: Go `net/http` `server.go` (`readRequest`); Fetch standard, "CORS-safelisted request-header"; RFC 6455, section
//! 10.2.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AsHeaderName, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, UPGRADE};
use http::{Method, Version};
use http_body_util::Full;

use super::Head;
use super::answer::response;
use crate::api::TEXT;

/// Content types that need no preflight.
const SIMPLE_TYPES: [&str; 3] = [
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
];

/// Checks of request heads. Default: only the rules of HTTP.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Accepted names beside the local ones; `None`: the server needs a token, and accepts any name.
    names: Option<Arc<[String]>>,
    /// Whether it needs a token nevertheless.
    needs_token: bool,
}

/// Rejection: status and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// Returns the response, which is the last of its connection.
    pub(crate) fn into_response(self) -> http::Response<Full<Bytes>> {
        let mut response = self.head(Full::new(Bytes::from(self.message.clone())));
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }

    /// Text.
    pub(crate) fn body(&self) -> Bytes {
        self.message.clone().into()
    }

    /// Returns the response with this body.
    pub(crate) fn head<B>(&self, body: B) -> http::Response<B> {
        let head = Head {
            status: self.status,
            headers: vec![(CONTENT_TYPE, TEXT)],
            length: Some(self.message.len() as u64),
        };
        response(head, body)
    }
}

impl Guard {
    /// Returns the checks of a server without authentication, reachable as `names`, `localhost` and loopback addresses.
    pub fn of_open_server(names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self {
            names: Some(names.into()),
            needs_token: false,
        }
    }

    /// Returns the same checks for a server that needs a token.
    pub fn of_guarded_server(names: impl IntoIterator<Item = String>) -> Self {
        Self {
            needs_token: true,
            ..Self::of_open_server(names)
        }
    }

    /// Checks the head of a request.
    ///
    /// # Errors
    /// 400 without exactly one Host over HTTP/1.1, 405 for CONNECT; without authentication also 421 for an unknown Host, 403 for
    /// a write or a WebSocket from a foreign page, 415 for a body from a page in a type that needs no preflight.
    pub(crate) fn check(
        &self,
        version: Version,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let hosts = headers.get_all(HOST).iter().count();
        if version == Version::HTTP_11 && hosts != 1 {
            let wrong = match hosts {
                0 => "missing required Host header",
                _ => "too many Host headers",
            };
            return Err(Refusal::new(400, format!("400 Bad Request: {wrong}")));
        }
        if method == Method::CONNECT {
            return Err(Refusal::new(405, "405 Method Not Allowed: this is no proxy"));
        }
        match &self.names {
            None => Ok(()),
            Some(names) => Visitor {
                names,
                needs_token: self.needs_token,
                headers,
            }
            .check(method),
        }
    }
}

/// Origin of a request, as far as its headers show.
struct Visitor<'a> {
    names: &'a [String],
    needs_token: bool,
    headers: &'a HeaderMap,
}

impl Visitor<'_> {
    fn check(&self, method: &Method) -> Result<(), Refusal> {
        // HTTP/1.0 needs no Host, and no browser uses it.
        if let Some(host) = self.header(HOST)
            && !self.is_local(host)
        {
            let otherwise = match self.needs_token {
                true => "",
                false => ", or serve it with --tls --tls-name NAME or with --token",
            };
            return Err(Refusal::new(
                421,
                format!(
                    "421 Misdirected Request: this server is not called {host:?}; use localhost or 127.0.0.1{otherwise}"
                ),
            ));
        }
        let changes = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if !changes && !self.headers.contains_key(UPGRADE) {
            // A page cannot read the response.
            return Ok(());
        }
        let origin = self.header(ORIGIN);
        let cross_site = self.header("sec-fetch-site") == Some("cross-site");
        let foreign = origin.is_some_and(|origin| {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            !authority.is_some_and(|authority| self.is_local(authority))
        });
        if foreign || cross_site {
            let otherwise = match self.needs_token {
                true => "",
                false => "; serve it with --token for that",
            };
            return Err(Refusal::new(
                403,
                format!("403 Forbidden: a page of another site may not use this server{otherwise}"),
            ));
        }
        let carries = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        if carries && origin.is_some() && self.is_simple() {
            return Err(Refusal::new(
                415,
                "415 Unsupported Media Type: a request of a web page needs a Content-Type such as application/json",
            ));
        }
        Ok(())
    }

    fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap_or(""))
    }

    /// Whether a page can send it without preflight.
    fn is_simple(&self) -> bool {
        let kind = self.header(CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.is_empty()
            || SIMPLE_TYPES
                .iter()
                .any(|simple| simple.eq_ignore_ascii_case(kind))
    }

    /// Whether `authority` (host and port) is this machine, or an accepted name.
    fn is_local(&self, authority: &str) -> bool {
        let host = host_of(authority);
        is_loopback(&host)
            || match host.parse::<IpAddr>() {
                Ok(address) => self.names.iter().any(|name| name.parse() == Ok(address)),
                Err(_) => self.names.contains(&host),
            }
    }
}

/// Whether `authority` (host and port) is a loopback address or `localhost`: no name that somebody else resolves.
pub fn is_this_machine(authority: &str) -> bool {
    is_loopback(&host_of(authority))
}

fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Returns the host of an authority in lower case, without port, brackets and final dot.
fn host_of(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            Some(_) | None => authority,
        },
    };
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;
    use rstest::rstest;

    use super::*;

    fn status(guard: &Guard, method: &str, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let checked = guard.check(Version::HTTP_11, &method.parse().unwrap(), &map);
        checked.map_or_else(|refusal| refusal.status, |()| 200)
    }

    #[rstest]
    #[case::localhost("localhost", 200)]
    #[case::with_port("localhost:6443", 200)]
    #[case::case_does_not_matter("LocalHost", 200)]
    #[case::absolute("localhost.:80", 200)]
    #[case::below_localhost("kind.localhost:1", 200)]
    #[case::address("127.0.0.1:80", 200)]
    #[case::another_loopback("127.8.8.8", 200)]
    #[case::version_6("[::1]:80", 200)]
    #[case::served("fake.test:443", 200)]
    #[case::rebound("evil.example:80", 421)]
    #[case::looks_local("localhost.evil.example", 421)]
    #[case::looks_like_an_address("127.0.0.1.evil.example", 421)]
    #[case::address_of_another("192.0.2.1", 421)]
    #[case::empty("", 421)]
    fn an_open_server_answers_to_its_own_names(#[case] host: &str, #[case] expected: u16) {
        let guard = Guard::of_open_server(["fake.test".to_owned()]);
        assert_eq!(status(&guard, "GET", &[("host", host)]), expected);
        // With a token the name does not matter, and a proxy may use any.
        assert_eq!(status(&Guard::default(), "GET", &[("host", host)]), 200);
    }

    const EVIL: (&str, &str) = ("origin", "https://evil.example");
    const DEV: (&str, &str) = ("origin", "http://localhost:3000");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const PLAIN: (&str, &str) = ("content-type", "text/plain;charset=UTF-8");
    const SOCKET: (&str, &str) = ("upgrade", "websocket");
    const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");

    #[rstest]
    #[case::a_program("POST", &[], 200)]
    #[case::a_program_with_a_type("POST", &[PLAIN], 200)]
    #[case::foreign_read("GET", &[EVIL], 200)]
    #[case::foreign_socket("GET", &[EVIL, SOCKET], 403)]
    #[case::local_socket("GET", &[DEV, SOCKET], 200)]
    #[case::foreign_create("POST", &[EVIL], 403)]
    #[case::foreign_create_as_json("POST", &[EVIL, JSON], 403)]
    #[case::foreign_delete("DELETE", &[EVIL], 403)]
    #[case::from_a_file("POST", &[("origin", "null")], 403)]
    #[case::without_an_origin("POST", &[CROSS], 403)]
    #[case::local_create("POST", &[DEV, JSON], 200)]
    #[case::local_create_without_a_type("POST", &[DEV], 415)]
    #[case::local_create_of_a_form("PUT", &[DEV, PLAIN], 415)]
    #[case::local_delete("DELETE", &[DEV], 200)]
    #[case::a_tunnel("CONNECT", &[], 405)]
    fn pages_of_other_sites_change_nothing(
        #[case] method: &str,
        #[case] headers: &[(&str, &str)],
        #[case] expected: u16,
    ) {
        let headers = [&[("host", "127.0.0.1:1")], headers].concat();
        assert_eq!(status(&Guard::of_open_server([]), method, &headers), expected);
    }

    #[rstest]
    #[case::missing(&[], 400)]
    #[case::one(&[("host", "a")], 200)]
    #[case::two(&[("host", "a"), ("host", "a")], 400)]
    fn there_is_one_host(#[case] headers: &[(&str, &str)], #[case] expected: u16) {
        assert_eq!(status(&Guard::default(), "GET", headers), expected);
    }
}
