//! Calls of webhooks: one HTTP/1.1 request over TLS each, without credentials, redirects and proxies. It must not know what is
//! asked.
//!
//! Source: Go's `net`, `crypto/tls` and `net/http`, for the words of errors.

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use builtin_kinds::webhook::Outcome;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use crate::server::HookCall;

/// Most bytes of a response.
const HOOK_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most calls at a time. A further one waits, within its timeout.
pub(super) const HOOK_CALLS_MAX: usize = 64;

/// Which webhooks are called. Without a call they fail as those that nobody listens for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Webhooks {
    /// None.
    None,
    /// Those at addresses of this machine: objects that a test stores cause no requests to others.
    #[default]
    Local,
    /// All.
    Any,
}

impl Webhooks {
    /// Whether an address may be called.
    fn allow(self, address: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::Local => is_local(address),
            Self::Any => true,
        }
    }
}

/// Whether an address is of this machine: only those can be bound to.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || !address.is_multicast() && UdpSocket::bind((address, 0)).is_ok()
}

/// Carries out a call, which takes no longer than its timeout. `turns`: one for each call at a time.
pub(super) async fn call(webhooks: Webhooks, turns: &Semaphore, call: &HookCall) -> Outcome {
    if webhooks == Webhooks::None {
        return call.refused();
    }
    let answered = async {
        let _turn = turns.acquire().await;
        match answer(webhooks, call).await {
            Ok(outcome) => outcome,
            Err(why) => Outcome::Failed(why),
        }
    };
    let answered = tokio::time::timeout(call.timeout, answered).await;
    answered.unwrap_or_else(|_| Outcome::Failed("context deadline exceeded".to_owned()))
}

async fn answer(webhooks: Webhooks, call: &HookCall) -> Result<Outcome, String> {
    let socket = connect(webhooks, call).await?;
    let name = ServerName::try_from(call.server_name.clone())
        .map_err(|_| format!("tls: invalid server name {:?}", call.server_name))?;
    let connector = TlsConnector::from(Arc::new(trusting(&call.authority_pem)?));
    let secured = connector
        .connect(name, socket)
        .await
        .map_err(|error| untrusted(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(secured))
        .await
        .map_err(|error| broken(&error))?;
    let exchange = async {
        let response = sender
            .send_request(request(call)?)
            .await
            .map_err(|error| broken(&error))?;
        let status = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let content_type = content_type.to_owned();
        let body = Limited::new(response.into_body(), HOOK_BODY_BYTES_MAX)
            .collect()
            .await;
        let body = body.map_err(|error| match error.downcast_ref::<hyper::Error>() {
            Some(error) => broken(error),
            None => format!("the response is longer than {HOOK_BODY_BYTES_MAX} bytes"),
        })?;
        Ok(Outcome::Answered {
            status,
            content_type,
            body: body.to_bytes().to_vec(),
        })
    };
    let connection = async {
        // An error reaches the exchange too.
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = exchange => outcome,
        () = connection => Err("EOF".to_owned()),
    }
}

fn request(call: &HookCall) -> Result<Request<Full<Bytes>>, String> {
    let rest = call.url.trim_start_matches("https://");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority)
        .header(USER_AGENT, "kube-apiserver-admission")
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(call.body.clone()))
        .map_err(|error| error.to_string())
}

async fn connect(webhooks: Webhooks, call: &HookCall) -> Result<TcpStream, String> {
    let (host, port) = match &call.address {
        Ok((host, port)) => (host.as_str(), *port),
        Err(why) => return Err(why.clone()),
    };
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = found
        .map_err(|_| format!("dial tcp: lookup {host}: no such host"))?
        .collect();
    let mut failed = format!("dial tcp: lookup {host}: no such host");
    for address in found {
        if !webhooks.allow(address.ip()) {
            failed = format!(
                "dial tcp {address}: fake-apiserver calls webhooks of this machine only; --webhooks any allows others"
            );
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = format!("dial tcp {address}: {}", not_connected(&error)),
        }
    }
    Err(failed)
}

fn not_connected(error: &io::Error) -> String {
    const KNOWN: [(io::ErrorKind, &str); 4] = [
        (io::ErrorKind::ConnectionRefused, "connection refused"),
        (io::ErrorKind::HostUnreachable, "no route to host"),
        (io::ErrorKind::NetworkUnreachable, "network is unreachable"),
        (io::ErrorKind::TimedOut, "connection timed out"),
    ];
    let known = KNOWN.iter().find(|(kind, _)| *kind == error.kind());
    match known {
        Some((_, words)) => format!("connect: {words}"),
        None => format!("connect: {error}"),
    }
}

/// A client that trusts these authorities and no others: what the system trusts is not read.
fn trusting(authority_pem: &[u8]) -> Result<ClientConfig, String> {
    let pinned: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(authority_pem).flatten().collect();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(pinned.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let by_roots = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|_| format!("{UNVERIFIED}{UNKNOWN}"))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { by_roots, pinned }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as Go does: a certificate that is in the bundle itself is trusted, also if it is an authority. It still needs the
/// name.
#[derive(Debug)]
struct Verifier {
    by_roots: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.by_roots
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(_) if self.pinned.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_roots.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_roots.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_roots.supported_verify_schemes()
    }
}

const UNVERIFIED: &str = "tls: failed to verify certificate: x509: ";
const UNKNOWN: &str = "certificate signed by unknown authority";

/// Go's words for a handshake that failed.
fn untrusted(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        )) => format!("{UNVERIFIED}{UNKNOWN}"),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::ExpiredContext { .. } | CertificateError::NotValidYetContext { .. },
        )) => format!("{UNVERIFIED}certificate has expired or is not yet valid"),
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
            expected,
            presented,
        })) => {
            let presented: Vec<&str> = presented.iter().map(|name| bare_name(name)).collect();
            let (presented, expected) = (presented.join(", "), expected.to_str());
            format!("{UNVERIFIED}certificate is valid for {presented}, not {expected}")
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None if error.kind() == io::ErrorKind::ConnectionReset => "read: connection reset by peer".to_owned(),
        None => error.to_string(),
    }
}

/// The name in `DnsName("a")` and `IpAddress(127.0.0.1)`.
fn bare_name(name: &str) -> &str {
    let inner = name.split_once('(').map_or(name, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

/// Go's words for a connection that breaks.
fn broken(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "EOF".to_owned();
    }
    let source = error.source();
    let cut = source
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::UnexpectedEof);
    match source {
        _ if cut => "EOF".to_owned(),
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}
