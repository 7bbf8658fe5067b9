//! Sends requests by the connections and credentials of a configuration. It must not know what they are for.
//!
//! kube-client's own client has a queue in front of its connections, which costs a switch between tasks for each request, and
//! traces each request. Through a proxy, whose connections kube-client makes, its client is used as it is.

use fake_apiserver::net::UpstreamBody;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube_client::client::{Body, ConfigExt as _};
use kube_client::{Client, Config, Error};
use tower::util::{BoxCloneSyncService, option_layer};
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

/// A client of one identity.
#[derive(Debug, Clone)]
pub(crate) struct Requests(BoxCloneSyncService<Request<Body>, Response<UpstreamBody>, BoxError>);

impl Requests {
    /// Returns a client. Call inside a tokio runtime.
    ///
    /// # Errors
    /// The configuration has unusable credentials or certificates.
    pub(crate) fn of(config: Config) -> Result<Self, Error> {
        if config.proxy_url.is_some() {
            let client = Client::try_from(config)?;
            let send = move |request| {
                let client = client.clone();
                async move { Ok::<_, BoxError>(client.send(request).await?.map(boxed)) }
            };
            return Ok(Self(BoxCloneSyncService::new(service_fn(send))));
        }
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Around TLS: a server that accepts a connection may never answer its handshake.
        let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_read_timeout(config.read_timeout);
        connector.set_write_timeout(config.write_timeout);
        connector.set_reset_reader_on_write(config.reset_reader_on_write);
        let http = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
        let http = config.extra_headers_layer()?.layer(http);
        let http = config.base_uri_layer().layer(http.map_err(BoxError::from));
        let http = option_layer(config.auth_layer()?).layer(http);
        let http = http.map_err(BoxError::from);
        Ok(Self(BoxCloneSyncService::new(
            http.map_response(|response| response.map(boxed)),
        )))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// There is no response.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<UpstreamBody>, BoxError> {
        self.0.clone().oneshot(request).await
    }
}

fn boxed<B>(body: B) -> UpstreamBody
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Box::pin(body.map_err(Into::into))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_server_that_never_shakes_hands_is_given_up() {
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
        let url = format!("https://{}", silent.local_addr().expect("it is bound"));
        let mut config = Config::new(url.parse().expect("a URL"));
        config.accept_invalid_certs = true;
        config.connect_timeout = Some(Duration::from_millis(100));
        let requests = Requests::of(config).expect("it has no credentials");
        let request = Request::get("/version").body(Body::empty()).expect("a request");
        let answered = tokio::time::timeout(Duration::from_secs(20), requests.send(request)).await;
        assert!(matches!(answered, Ok(Err(_))), "it still waits");
    }
}
