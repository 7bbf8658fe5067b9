//! Clients connected by in-process pipes: no sockets, so that a paused clock decides every wait.

use std::future::{Ready, pending, ready};
use std::io;
use std::task::{Context, Poll};

use fake_apiserver::net::pipe::{Pipe, pipe};
use fake_apiserver::net::{ConnectionSettings, Edge, serve_connection};
use http::Uri;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::client::retry::RetryPolicy;
use kube_client::client::{Body, ConfigExt as _};
use kube_client::{Client, Config};
use tokio::sync::watch;
use tower::retry::RetryLayer;
use tower::{BoxError, Service, ServiceBuilder};

/// A host that is never resolved.
const BASE: &str = "http://fake-apiserver";

/// Returns the configuration of a client in memory.
pub(crate) fn config() -> Config {
    Config::new(Uri::from_static(BASE))
}

/// Returns a client of `edge` with the layers of kube-client's default stack. Its connections close when the sender of
/// `running` is dropped.
///
/// # Errors
/// As `ConfigExt::extra_headers_layer`.
pub(crate) fn client(
    edge: Edge,
    running: watch::Receiver<()>,
    config: &Config,
) -> Result<Client, kube_client::Error> {
    let dialer = Dialer { edge, running };
    let http = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(dialer);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(stack, config.default_namespace.clone()))
}

/// Connects to the server over a pipe.
#[derive(Clone)]
struct Dialer {
    edge: Edge,
    running: watch::Receiver<()>,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let mut running = self.running.clone();
        let accepted = if running.has_changed().is_ok() {
            self.edge.accept()
        } else {
            None
        };
        let Some(conn) = accepted else {
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        };
        let (near, far) = pipe();
        let settings = ConnectionSettings::default();
        let serving = serve_connection(self.edge.clone(), conn, far, settings, pending());
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                // No value is ever sent: it changes when the server is dropped.
                _ = running.changed() => {}
            }
        });
        ready(Ok(TokioIo::new(near)))
    }
}
