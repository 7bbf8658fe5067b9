//! HTTP stacks of clients: over any connector, with or without TLS, HTTP/1.1 or HTTP/2.
//!
//! Independent of the transport below the connector.

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
use kube_client::client::middleware::{AuthLayer, BaseUriLayer};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tower::util::option_layer;
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn};
use tower_http::decompression::DecompressionLayer;

/// TLS settings of all servers in memory and their clients. Shared, because generating them takes longer than a run.
pub(super) struct Shared {
    http1: ConnectionSettings,
    http2: ConnectionSettings,
    /// Settings of the client, without ALPN.
    client: ClientConfig,
}

pub(super) static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let authority = Authority::generate().expect("the system has randomness");
    let settings = |protocols| {
        let acceptor = authority.acceptor(&[], protocols);
        ConnectionSettings {
            tls: Some(acceptor.expect("the authority signs the certificate of its server")),
            ..ConnectionSettings::default()
        }
    };
    let mut client = trusting(authority.certificate_der());
    // A run must not resume the session of another.
    client.resumption = Resumption::disabled();
    Shared {
        http1: settings(Protocols::Http1),
        http2: settings(Protocols::Http2),
        client,
    }
});

impl Shared {
    /// Returns TLS over `connector`, to such a server.
    pub(super) fn with_tls<C>(&self, connector: C, transport: Transport) -> HttpsConnector<C> {
        over_tls(connector, self.client.clone(), transport)
    }
}

/// Returns the server's settings of connections.
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
    client_with(connector, base, None, gzip)
}

/// Returns the same with credentials in its requests.
pub(crate) fn client_with<C>(
    connector: C,
    base: Uri,
    credentials: Option<AuthLayer>,
    gzip: bool,
) -> kube_client::Client
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let http = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
    let http = BaseUriLayer::new(base).layer(http).map_err(BoxError::from);
    kube(option_layer(credentials).layer(http), gzip)
}

/// Returns the same over an in-process client.
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

/// Returns TLS over `connector`, to a server with a certificate of `authority`.
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

/// Like [`with_tls`], with the version of HTTP that the server selects (ALPN).
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
        .expect("it is the certificate of an authority");
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
