//! The HTTP stacks clients are given: over any way to connect, bare or inside TLS, HTTP/1.1 or HTTP/2.
//!
//! It must not know what the bytes go over.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use fake_apiserver::net::tls::{Authority, Protocols};
use fake_apiserver::net::{ConnectionSettings, InProcess};
use fake_apiserver::scenario::Transport;
use http::Uri;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::TokioExecutor;
use kube_client::client::Body;
use kube_client::client::middleware::BaseUriLayer;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tower::{BoxError, Layer as _, Service, service_fn};
use tower_http::decompression::DecompressionLayer;

/// What every server that this process joins to a client in memory shows, and what the client trusts: to make it is no part
/// of a run, and takes longer than most.
pub(super) struct Shared {
    http1: ConnectionSettings,
    http2: ConnectionSettings,
    /// The client's side, without a protocol.
    client: ClientConfig,
}

pub(super) static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let authority = Authority::generate().expect("a system without randomness runs nothing");
    let settings = |protocols| {
        let acceptor = authority.acceptor(&[], protocols);
        ConnectionSettings {
            tls: Some(acceptor.expect("an authority of ours certifies its own server")),
            ..ConnectionSettings::default()
        }
    };
    let mut client = trusting(authority.certificate_der());
    // Or one run would know the server of another.
    client.resumption = Resumption::disabled();
    Shared {
        http1: settings(Protocols::Http1),
        http2: settings(Protocols::Http2),
        client,
    }
});

impl Shared {
    /// TLS over `connector`, with such a server.
    pub(super) fn with_tls<C>(&self, connector: C, transport: Transport) -> HttpsConnector<C> {
        over_tls(connector, self.client.clone(), transport)
    }
}

/// The server's side of connections.
pub(super) fn settings(transport: Transport) -> ConnectionSettings {
    match transport {
        Transport::Http1 => ConnectionSettings::default(),
        Transport::TlsHttp1 => SHARED.http1.clone(),
        Transport::TlsHttp2 => SHARED.http2.clone(),
    }
}

/// Returns a `kube_client` over `connector`, without its layer of retries. `gzip`: with `Accept-Encoding: gzip`, as
/// kube_client's own stack has with the feature of this name.
pub fn client<C>(connector: C, base: Uri, gzip: bool) -> kube_client::Client
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let http = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    kube(BaseUriLayer::new(base).layer(http), gzip)
}

/// The same over a client without bytes.
pub(super) fn in_process(http: InProcess, gzip: bool) -> kube_client::Client {
    let service = service_fn(move |request: http::Request<Body>| {
        let http = http.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = if body.is_end_stream() {
                Bytes::new()
            } else {
                body.collect().await?.to_bytes()
            };
            Ok::<_, BoxError>(http.send(http::Request::from_parts(head, body)).await?)
        }
    });
    kube(service, gzip)
}

fn kube<S, B>(http: S, gzip: bool) -> kube_client::Client
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    if gzip {
        kube_client::Client::new(DecompressionLayer::new().layer(http), "default")
    } else {
        kube_client::Client::new(http, "default")
    }
}

/// TLS over `connector`, with a server that has a certificate of `authority`.
pub fn with_tls<C>(
    connector: C,
    authority: CertificateDer<'static>,
    transport: Transport,
) -> HttpsConnector<C> {
    over_tls(connector, trusting(authority), transport)
}

fn over_tls<C>(connector: C, config: ClientConfig, transport: Transport) -> HttpsConnector<C> {
    let builder = tls(config);
    match transport {
        Transport::Http1 | Transport::TlsHttp1 => builder.enable_http1().wrap_connector(connector),
        Transport::TlsHttp2 => builder.enable_http2().wrap_connector(connector),
    }
}

/// The same, with the version of HTTP that the server chooses (ALPN).
pub fn with_any_http<C>(connector: C, authority: CertificateDer<'static>) -> HttpsConnector<C> {
    tls(trusting(authority))
        .enable_all_versions()
        .wrap_connector(connector)
}

fn tls(config: ClientConfig) -> HttpsConnectorBuilder<WantsProtocols1> {
    let name = ServerName::try_from("localhost").expect("it is a host name");
    HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
}

fn trusting(authority: CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(authority)
        .expect("an authority of ours is a certificate of an authority");
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the versions rustls is built for")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
