//! HTTP/1.1 as the probes need it: one connection per request, nothing added and
//! nothing hidden. It must not know what the bytes mean.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::probe::User;

/// No answer of any server takes longer: handlers give up after 60 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// A server: where it is, and as whom we speak to it.
#[derive(Clone)]
pub struct Target {
    authority: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    token: Option<String>,
    limited_token: Option<String>,
}

pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) line: String,
    /// Lower-case names, sorted.
    pub(crate) headers: Vec<(String, String)>,
}

pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// Set when the body broke off: what hyper said.
    pub(crate) broken: Option<String>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

impl Target {
    /// `url` is `http://host:port` or `https://host:port`; the latter needs `ca_file`.
    pub fn new(
        url: &str,
        ca_file: Option<&Path>,
        token: Option<String>,
        limited_token: Option<String>,
    ) -> Result<Self, Error> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            Error::caller(format!(
                "--url {url}: expected http://host:port or https://host:port"
            ))
        })?;
        let authority = rest.trim_end_matches('/').to_owned();
        let tls = match (scheme, ca_file) {
            ("http", _) => None,
            ("https", Some(file)) => Some(tls(&authority, file)?),
            ("https", None) => return Err(Error::caller("--url is https, so --ca is needed")),
            _ => return Err(Error::caller(format!("--url {url}: unknown scheme"))),
        };
        Ok(Target {
            authority,
            tls,
            token,
            limited_token,
        })
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    fn authorization(&self, user: User) -> Result<Option<String>, Error> {
        let token = match user {
            User::Anonymous => return Ok(None),
            User::BadToken => Some("not-a-token"),
            User::Admin => self.token.as_deref(),
            User::Limited => match self.limited_token.as_deref() {
                Some(token) => Some(token),
                None => {
                    return Err(Error::caller(
                        "a probe plays the user without rights: --limited-token is needed",
                    ));
                }
            },
        };
        Ok(token.map(|token| format!("Bearer {token}")))
    }

    /// Sends a request and returns when the headers are there.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        user: User,
        headers: &BTreeMap<String, Option<String>>,
        body: Option<Vec<u8>>,
    ) -> Result<(Head, hyper::Response<Incoming>), Error> {
        let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
        all.insert("host".into(), Some(self.authority.clone()));
        all.insert("accept".into(), Some("application/json".into()));
        all.insert("user-agent".into(), Some("probe/1".into()));
        if let Some(value) = self.authorization(user)? {
            all.insert("authorization".into(), Some(value));
        }
        if body.is_some() {
            all.insert("content-type".into(), Some("application/json".into()));
        }
        for (name, value) in headers {
            all.insert(name.to_ascii_lowercase(), value.clone());
        }
        let mut builder = hyper::Request::builder().method(method).uri(path);
        for (name, value) in &all {
            if let Some(value) = value {
                builder = builder.header(name, value);
            }
        }
        let request = builder
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|why| Error::author(format!("{method} {path}: {why}")))?;

        let failed = |what: &str, why: &dyn std::fmt::Display| {
            Error::server(format!("{method} {path}: {what} {}: {why}", self.authority))
        };
        let tcp = TcpStream::connect(&self.authority)
            .await
            .map_err(|why| failed("connect to", &why))?;
        tcp.set_nodelay(true).map_err(|why| failed("configure", &why))?;
        let mut sender = match &self.tls {
            None => handshake(TokioIo::new(tcp)).await,
            Some((connector, name)) => {
                let stream = connector
                    .connect(name.clone(), tcp)
                    .await
                    .map_err(|why| failed("TLS with", &why))?;
                handshake(TokioIo::new(stream)).await
            }
        }
        .map_err(|why| failed("HTTP with", &why))?;

        let response = timeout(ANSWER_LIMIT, sender.send_request(request))
            .await
            .map_err(|why| failed("no answer from", &why))?
            .map_err(|why| failed("HTTP with", &why))?;
        let status = response.status();
        let mut headers: Vec<(String, String)> = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        headers.sort();
        // hyper gives the words only when they are not the usual ones for the number.
        let words = match response.extensions().get::<hyper::ext::ReasonPhrase>() {
            Some(words) => String::from_utf8_lossy(words.as_bytes()).into_owned(),
            None => status.canonical_reason().unwrap_or_default().to_owned(),
        };
        let line = format!("{:?} {} {words}", response.version(), status.as_u16());
        Ok((
            Head {
                status: status.as_u16(),
                line,
                headers,
            },
            response,
        ))
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        user: User,
        headers: &BTreeMap<String, Option<String>>,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Error> {
        let (head, response) = self.open(method, path, user, headers, body).await?;
        let (body, broken) = read_to_end(response.into_body()).await;
        Ok(Answer { head, body, broken })
    }
}

/// Reads a body to its end; the second value says how it broke off, if it did.
pub(crate) async fn read_to_end(mut incoming: Incoming) -> (Vec<u8>, Option<String>) {
    let mut body = Vec::new();
    loop {
        match timeout(ANSWER_LIMIT, incoming.frame()).await {
            Ok(None) => return (body, None),
            Ok(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    body.extend_from_slice(data);
                }
            }
            Ok(Some(Err(why))) => return (body, Some(why.to_string())),
            Err(_) => return (body, Some(format!("nothing more within {ANSWER_LIMIT:?}"))),
        }
    }
}

async fn handshake<I>(io: I) -> Result<http1::SendRequest<Full<Bytes>>, hyper::Error>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(io).await?;
    // The connection's own error is told to whoever waits for the answer.
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(sender)
}

fn tls(authority: &str, ca_file: &Path) -> Result<(TlsConnector, ServerName<'static>), Error> {
    let bad = |why: &dyn std::fmt::Display| Error::caller(format!("--ca {}: {why}", ca_file.display()));
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).map_err(|why| bad(&why))? {
        roots
            .add(certificate.map_err(|why| bad(&why))?)
            .map_err(|why| bad(&why))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| bad(&why))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host)
        .to_owned();
    let name = ServerName::try_from(host).map_err(|why| Error::caller(format!("--url: {why}")))?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}
