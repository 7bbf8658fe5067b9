//! The server as a [`tower::Service`]: a client of any library, and of any version of kube, without sockets. It must not depend on a
//! client library.

use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};

use fake_apiserver::net::pipe::{Pipe, connect};
use fake_apiserver::net::{ConnectionSettings, Edge};
use fake_apiserver::record::Replica;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::watch;
use tower::{BoxError, Service};

use crate::FakeApiserver;

/// A host that is never resolved.
pub(crate) const HOST: &str = "fake-apiserver";

/// The server as a [`tower::Service`] of requests with any body; [`FakeApiserver::service`] returns one.
///
/// A clone shares its connections: to the server both are one client.
pub struct HttpService<B> {
    http: legacy::Client<Dialer, B>,
    user_agent: Option<HeaderValue>,
}

impl<B> Clone for HttpService<B> {
    fn clone(&self) -> Self {
        Self {
            http: self.http.clone(),
            user_agent: self.user_agent.clone(),
        }
    }
}

impl<B> fmt::Debug for HttpService<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl FakeApiserver {
    /// Returns a [`tower::Service`] for a client of any library, with separate connections through pipes in this process: without
    /// sockets and TLS, also where the server has them. It retries nothing.
    ///
    /// `kube::Client::new` of every version of kube since 0.88 takes it, so that the tests do not depend on the version of this crate:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # use fake_apiserver_testing::FakeApiserver;
    /// let server = FakeApiserver::builder().in_memory().start().await;
    /// let client = kube_client::Client::new(server.service(), "default");
    /// # assert!(client.apiserver_version().await.is_ok());
    /// # }
    /// ```
    pub fn service<B>(&self) -> HttpService<B>
    where
        B: http_body::Body + Send + 'static + Unpin,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        HttpService::new(self.edge.at(Replica::Primary), self.running.subscribe())
    }
}

impl<B> HttpService<B>
where
    B: http_body::Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    /// Returns a service of `edge`. Its connections close when the sender of `running` is dropped.
    pub(crate) fn new(edge: Edge, running: watch::Receiver<()>) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new()).build(Dialer { edge, running });
        Self {
            http,
            user_agent: None,
        }
    }

    /// Sends this User-Agent with requests that have none; verdicts and [`Matcher::user_agent`](crate::Matcher::user_agent)
    /// distinguish clients by it.
    ///
    /// # Panics
    /// `name` cannot be a header.
    #[must_use]
    #[track_caller]
    pub fn user_agent(mut self, name: &str) -> Self {
        let value = HeaderValue::from_str(name);
        self.user_agent = Some(value.unwrap_or_else(|_| panic!("`{name}` cannot be a User-Agent")));
        self
    }
}

impl<B> Service<Request<B>> for HttpService<B>
where
    B: http_body::Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = legacy::ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> legacy::ResponseFuture {
        // Clients whose base URL is set elsewhere send paths alone.
        if request.uri().authority().is_none() {
            let mut parts = request.uri().clone().into_parts();
            parts.scheme = Some(Scheme::HTTP);
            parts.authority = Some(Authority::from_static(HOST));
            parts
                .path_and_query
                .get_or_insert_with(|| "/".parse().expect("`/` is a path"));
            *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path make a URI");
        }
        if let Some(agent) = &self.user_agent {
            let headers = request.headers_mut();
            headers
                .entry(http::header::USER_AGENT)
                .or_insert_with(|| agent.clone());
        }
        self.http.request(request)
    }
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
        if running.has_changed().is_err() {
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        }
        // No value is ever sent: it changes when the server is dropped.
        let dropped = async move { drop(running.changed().await) };
        let near = connect(&self.edge, ConnectionSettings::default(), dropped);
        ready(near.map(TokioIo::new))
    }
}
