//! Sends requests by the connections and credentials of a configuration. It must not know what they are for.
//!
//! kube-client's own client has a queue in front of its connections, which costs a switch between tasks for each request, and
//! traces each request. Through a proxy, whose connections kube-client makes, its client is used as it is.

use fake_apiserver::net::UpstreamBody;
use http::{Request, Response};
use http_body_util::BodyExt as _;
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
        tcp.set_connect_timeout(config.connect_timeout);
        let http = legacy::Client::builder(TokioExecutor::new());
        let http = http.build::<_, Body>(config.rustls_https_connector_with_connector(tcp)?);
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
