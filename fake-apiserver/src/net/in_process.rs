//! HTTP without bytes: requests and responses of a client in this process are handed over as values.
//!
//! A client sees of each piece and each [`Ending`] what hyper shows it of a connection over a [`pipe`](super::pipe): tests
//! compare both. Requests are sent to connections as by hyper's client: over HTTP/1.1 to the idle connection used last, or
//! to a new one; over HTTP/2 all to one connection. No TLS, no HTTP library.

mod body;
mod server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderValue;
use http::header::HOST;
use tokio::sync::{mpsc, oneshot};

pub use self::body::{Body, Broken};
use self::server::Server;
use super::open::whole;
use super::{Edge, ListenerLimits};
use crate::api::HttpRequest;

/// An HTTP client whose connections are served by an [`Edge`] in this process, each in a task of the current runtime.
///
/// Dropping it and its responses closes its connections.
#[derive(Clone)]
pub struct InProcess {
    edge: Edge,
    limits: ListenerLimits,
    protocol: Protocol,
    pool: Pool,
}

/// Protocol whose connections are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time on a connection.
    Http1,
    /// HTTP/2: requests share a connection, up to the limit of its concurrent streams.
    Http2,
}

/// The client's end of a connection. Dropping the last one closes the connection.
type Requests = mpsc::UnboundedSender<Exchange>;

/// Connections that accept a request: idle ones, the one used last at the end; over HTTP/2 the one that all requests share.
#[derive(Clone, Default)]
struct Pool(Arc<Mutex<Vec<Requests>>>);

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Vec<Requests>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that a request uses.
struct Connection {
    requests: Requests,
    /// Where it returns once the response is complete; `None`: it is shared.
    pool: Option<Pool>,
}

impl Connection {
    /// The response on it is complete.
    fn complete(self) {
        if let Some(pool) = self.pool {
            pool.lock().push(self.requests);
        }
    }
}

/// A request, and where its response is sent.
struct Exchange {
    request: HttpRequest,
    respond: oneshot::Sender<Result<http::Response<Body>, NoResponse>>,
}

/// Why there is no response.
enum NoResponse {
    /// The connection was closed before it took the request, which is sent again.
    NotTaken(Box<HttpRequest>),
    /// The connection or the stream ended.
    Ended(Broken),
}

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server refuses connections.
    #[error("connection refused")]
    Refused,
    /// The connection ended before the head of the response.
    #[error("no response")]
    NoResponse(#[source] Broken),
}

impl InProcess {
    /// Returns a client of `edge`; `limits` are those of the server.
    pub fn new(edge: Edge, protocol: Protocol, limits: ListenerLimits) -> Self {
        Self {
            edge,
            limits,
            protocol,
            pool: Pool::default(),
        }
    }

    /// Sends a request and returns the head of its response. Dropping the future gives the request up; over HTTP/1.1 this closes
    /// its connection.
    ///
    /// # Errors
    /// The server refuses connections, or the connection or stream ended before the head.
    pub async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, SendError> {
        let (mut head, body) = request.into_parts();
        let host = HeaderValue::from_static("fake");
        head.headers.entry(HOST).or_insert(host);
        let mut request = whole(head, body);
        loop {
            let connection = self.connection().ok_or(SendError::Refused)?;
            let (respond, response) = oneshot::channel();
            if let Err(unsent) = connection.requests.send(Exchange { request, respond }) {
                request = unsent.0.request;
                continue;
            }
            match response.await {
                Ok(Ok(mut response)) => {
                    response.body_mut().arrives_on(connection);
                    return Ok(response);
                }
                Ok(Err(NoResponse::NotTaken(given_back))) => request = *given_back,
                Ok(Err(NoResponse::Ended(broken))) => return Err(SendError::NoResponse(broken)),
                Err(_) => return Err(SendError::NoResponse(Broken::Closed)),
            }
        }
    }

    /// Returns a connection that accepts a request, or a new one; `None`: the server refuses it.
    fn connection(&self) -> Option<Connection> {
        let shared = self.protocol == Protocol::Http2;
        let requests = self.pooled(shared).or_else(|| self.connect(shared))?;
        let pool = (!shared).then(|| self.pool.clone());
        Some(Connection { requests, pool })
    }

    fn pooled(&self, shared: bool) -> Option<Requests> {
        let mut pool = self.pool.lock();
        pool.retain(|requests| !requests.is_closed());
        if shared { pool.last().cloned() } else { pool.pop() }
    }

    fn connect(&self, shared: bool) -> Option<Requests> {
        let conn = self.edge.accept()?;
        let (requests, taken) = mpsc::unbounded_channel();
        let server = Server::new(self.edge.clone(), conn, self.protocol, &self.limits);
        tokio::spawn(server.serve(taken));
        if shared {
            self.pool.lock().push(requests.clone());
        }
        Some(requests)
    }
}
