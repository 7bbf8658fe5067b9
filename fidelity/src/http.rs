//! HTTP/1.1 for probes: one connection per request, nothing added and nothing hidden. It must not know the meaning of the
//! bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::api::Access;
use fake_apiserver::net::{ServeOptions, Standalone};
use fake_apiserver::scenario::Version;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::in_process;
use crate::probe::{Control, User};
use crate::transport::{ANSWER_LIMIT, Call, Chunk, Head, Transport};

/// Address of a server, and credentials.
#[derive(Clone)]
pub struct Target {
    authority: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    token: Option<String>,
    limited_token: Option<String>,
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

    /// Sends a request and returns when the headers are received.
    async fn open(&self, call: &Call) -> Result<(Head, hyper::Response<Incoming>), Error> {
        let Call { method, path, .. } = call;
        let authorization = self.authorization(call.user)?;
        let mut builder = hyper::Request::builder().method(method.as_str()).uri(path);
        for (name, value) in call.all_headers(&self.authority, authorization) {
            builder = builder.header(name, value);
        }
        let request = builder
            .body(Full::new(Bytes::from(call.body.clone().unwrap_or_default())))
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
        // hyper keeps the reason phrase only if it is not the standard one.
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
}

/// A server at a socket, in real time.
pub struct Remote {
    target: Target,
    /// Controls compaction of the store and restarts of the apiserver.
    control: Option<Target>,
    fixture_is_there: bool,
    began: Instant,
    /// The fake behind it: no probe has to wait for it.
    fake: Option<Standalone>,
}

/// Body of a response.
pub(crate) enum Stream {
    ReadResponse(Box<hyper::Response<Incoming>>),
    Upgraded(TokioIo<hyper::upgrade::Upgraded>),
    Gone,
}

impl Remote {
    /// `control` controls compaction of the store and restarts of the apiserver; `fixture_is_there` is for a read-only
    /// server.
    pub fn new(target: Target, control: Option<Target>, fixture_is_there: bool) -> Self {
        Self {
            target,
            control,
            fixture_is_there,
            began: Instant::now(),
            fake: None,
        }
    }

    /// Serves a new fake of `version` with an empty store, with the settings of the oracle.
    ///
    /// # Errors
    /// No port is available.
    pub(crate) async fn fake(version: Version) -> Result<Self, Error> {
        let options = ServeOptions {
            access: Some(in_process::access()),
            ..ServeOptions::default()
        };
        let fake = Standalone::bare(in_process::settings(version), options).await;
        let fake = fake.map_err(|why| Error::caller(format!("the fake is not served: {why}")))?;
        let Access {
            token, limited_token, ..
        } = in_process::access();
        let target = Target::new(fake.url(), None, Some(token), limited_token)?;
        Ok(Self {
            fake: Some(fake),
            ..Self::new(target, None, false)
        })
    }

    /// Returns the body of a document, requested as the admin.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or has no such document.
    pub async fn document(&mut self, path: &str) -> Result<Vec<u8>, Error> {
        self.succeed(Call::new("GET", path, None)).await
    }

    /// Creates an object in the collection at `path`, as the admin.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or rejects it.
    pub async fn create(&mut self, path: &str, object: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.succeed(Call::new("POST", path, Some(object))).await
    }

    async fn succeed(&mut self, call: Call) -> Result<Vec<u8>, Error> {
        let answer = self.send(&call).await?;
        let why = match (answer.head.status, answer.broken) {
            (200 | 201, None) => return Ok(answer.body),
            (_, Some(why)) => why,
            (_, None) => answer.head.line,
        };
        Err(Error::server(format!("{} {}: {why}", call.method, call.path)))
    }
}

impl Transport for Remote {
    type Stream = Stream;

    fn authority(&self) -> &str {
        self.target.authority()
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    async fn sleep_until(&mut self, at: Duration) {
        sleep_until(self.began + at).await;
    }

    async fn settle(&mut self, time: Duration) {
        if self.fake.is_none() {
            tokio::time::sleep(time).await;
        }
    }

    async fn open(&mut self, call: &Call) -> Result<(Head, Stream), Error> {
        let (head, response) = self.target.open(call).await?;
        Ok((head, Stream::ReadResponse(Box::new(response))))
    }

    async fn next(&mut self, stream: &mut Stream, until: Duration) -> Chunk {
        let until = self.began + until;
        match stream {
            Stream::ReadResponse(response) => loop {
                return match timeout_at(until, response.body_mut().frame()).await {
                    Ok(None) => Chunk::End,
                    Ok(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) => Chunk::Bytes(data.to_vec()),
                        Err(_trailers) => continue,
                    },
                    Ok(Some(Err(why))) => Chunk::Broken(why.to_string()),
                    Err(_) => Chunk::TimeUp,
                };
            },
            Stream::Upgraded(io) => {
                let mut chunk = [0_u8; 4096];
                match timeout_at(until, io.read(&mut chunk)).await {
                    Ok(Ok(0)) => Chunk::End,
                    Ok(Ok(count)) => Chunk::Bytes(chunk[..count].to_vec()),
                    Ok(Err(why)) => Chunk::Broken(why.to_string()),
                    Err(_) => Chunk::TimeUp,
                }
            }
            Stream::Gone => Chunk::End,
        }
    }

    async fn upgrade(&mut self, stream: &mut Stream) -> Result<(), Error> {
        if let Stream::ReadResponse(response) = std::mem::replace(stream, Stream::Gone) {
            let io = hyper::upgrade::on(*response)
                .await
                .map_err(|why| Error::server(format!("upgrade: {why}")))?;
            *stream = Stream::Upgraded(TokioIo::new(io));
        }
        Ok(())
    }

    fn close(&mut self, stream: Stream) {
        drop(stream);
    }

    async fn control(&mut self, control: Control) -> Result<(), Error> {
        let path = match control {
            Control::Compact => "/compact",
            Control::RestartApiserver => "/restart-apiserver",
        };
        let Some(target) = self.control.clone() else {
            return Err(Error::caller(format!(
                "a probe needs {path} of a control endpoint: --control is missing"
            )));
        };
        let call = Call {
            user: User::Anonymous,
            ..Call::new("POST", path, None)
        };
        let (head, response) = target.open(&call).await?;
        let (body, _) = self.read_to_end(Stream::ReadResponse(Box::new(response))).await;
        if head.status != 200 {
            let body = String::from_utf8_lossy(&body).into_owned();
            return Err(Error::server(format!("control {path}: {} {body}", head.line)));
        }
        Ok(())
    }

    fn fixture_is_there(&self) -> bool {
        self.fixture_is_there
    }
}

async fn handshake<I>(io: I) -> Result<http1::SendRequest<Full<Bytes>>, hyper::Error>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(io).await?;
    // The task that waits for the response receives the connection's error.
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
