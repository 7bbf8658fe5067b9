//! HTTP/1.1 without bytes: requests and responses of a client in this process are handed over as values.
//!
//! A client sees of each piece and each [`Ending`] what hyper shows it of a connection over a [`pipe`](super::pipe): tests
//! compare both. Requests are sent to connections as by hyper's client: to the idle connection used last, or to a new one.
//! No TLS, no HTTP/2, no HTTP library.

mod body;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http::header::HOST;
use tokio::sync::{mpsc, oneshot};
use trace::fault::Ending;
use trace::record::{ConnId, Side};

pub use self::body::{Body, Broken};
use super::answer::response;
use super::deadline::Deadline;
use super::open::{Open, whole};
use super::wire::Flow;
use super::{Edge, ListenerLimits, Piece, Ticket};
use crate::api::HttpRequest;

/// An HTTP client whose connections are served by an [`Edge`] in this process, each in a task of the current runtime.
///
/// Dropping it and its responses closes its connections.
#[derive(Clone)]
pub struct InProcess {
    edge: Edge,
    limits: ListenerLimits,
    idle: Idle,
}

/// Idle connections, the one used last at the end.
type Idle = Arc<Mutex<Vec<Connection>>>;

/// The client's end of a connection. Dropping it closes the connection.
type Connection = mpsc::UnboundedSender<Exchange>;

/// A request, and where its response is sent.
struct Exchange {
    request: HttpRequest,
    respond: oneshot::Sender<Result<http::Response<Body>, NoResponse>>,
}

/// Why there is no response.
enum NoResponse {
    /// The connection was closed before it took the request, which is sent again.
    NotTaken(Box<HttpRequest>),
    /// The connection ended.
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
    pub fn new(edge: Edge, limits: ListenerLimits) -> Self {
        Self {
            edge,
            limits,
            idle: Idle::default(),
        }
    }

    /// Sends a request and returns the head of its response. Dropping the future gives the request up and closes its connection.
    ///
    /// # Errors
    /// The server refuses connections, or the connection ended before the head.
    pub async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, SendError> {
        let (mut head, body) = request.into_parts();
        let host = HeaderValue::from_static("fake");
        head.headers.entry(HOST).or_insert(host);
        let mut request = whole(head, body);
        loop {
            let connection = self.connection().ok_or(SendError::Refused)?;
            let (respond, response) = oneshot::channel();
            if let Err(unsent) = connection.send(Exchange { request, respond }) {
                request = unsent.0.request;
                continue;
            }
            match response.await {
                Ok(Ok(mut response)) => {
                    response.body_mut().on(connection, self.idle.clone());
                    return Ok(response);
                }
                Ok(Err(NoResponse::NotTaken(given_back))) => request = *given_back,
                Ok(Err(NoResponse::Ended(broken))) => return Err(SendError::NoResponse(broken)),
                Err(_) => return Err(SendError::NoResponse(Broken::Closed)),
            }
        }
    }

    /// Returns an idle connection, or a new one; `None`: the server refuses it.
    fn connection(&self) -> Option<Connection> {
        let open = |idle: &mut Vec<Connection>| {
            while let Some(connection) = idle.pop() {
                if !connection.is_closed() {
                    return Some(connection);
                }
            }
            None
        };
        let reused = open(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        if reused.is_some() {
            return reused;
        }
        let conn = self.edge.accept()?;
        let (connection, exchanges) = mpsc::unbounded_channel();
        let server = Server {
            flow: Arc::new(Flow::default()),
            conn,
            edge: self.edge.clone(),
            patience: self.limits.write,
        };
        tokio::spawn(server.serve(exchanges, self.limits.idle));
        Some(connection)
    }
}

/// The server's end of a connection.
struct Server {
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    /// Timeout of a client that does not read.
    patience: Duration,
}

/// How an exchange ended.
enum Ended {
    /// The response is complete.
    Complete,
    /// The client gave it up.
    ByClient,
    /// The server ended the connection.
    ByServer,
}

impl Server {
    /// Serves requests, one at a time, until either side closes the connection. A connection without a request is closed after
    /// `idle_limit`.
    async fn serve(self, mut exchanges: mpsc::UnboundedReceiver<Exchange>, idle_limit: Duration) {
        // Dropped after all responses.
        let mut open = Open {
            edge: self.edge.clone(),
            conn: self.conn,
            by: Side::Server,
            closed: false,
        };
        self.edge.carries(self.conn, &self.flow);
        loop {
            let mut idle = Deadline::default();
            idle.set(idle_limit);
            let next = poll_fn(|cx| match exchanges.poll_recv(cx) {
                Poll::Ready(Some(exchange)) => Poll::Ready(Ok(exchange)),
                Poll::Ready(None) => Poll::Ready(Err(Side::Client)),
                Poll::Pending => {
                    let over = self.flow.poll_over(0, cx).is_ready() || idle.poll_passed(cx).is_ready();
                    if over {
                        Poll::Ready(Err(Side::Server))
                    } else {
                        Poll::Pending
                    }
                }
            });
            let exchange = match next.await {
                Ok(exchange) => exchange,
                Err(by) => {
                    open.by = by;
                    break;
                }
            };
            let ended = self.exchange(exchange).await;
            self.flow.serves(false);
            match ended {
                Ended::Complete if !self.flow.take_goaway() && !self.flow.is_closing() => {}
                Ended::Complete | Ended::ByServer => break,
                Ended::ByClient => {
                    if !self.flow.is_ended() {
                        open.by = Side::Client;
                    }
                    break;
                }
            }
        }
        exchanges.close();
        while let Ok(Exchange { request, respond }) = exchanges.try_recv() {
            // The client may have given it up.
            let _ = respond.send(Err(NoResponse::NotTaken(Box::new(request))));
        }
    }

    async fn exchange(&self, exchange: Exchange) -> Ended {
        let Exchange { request, mut respond } = exchange;
        self.flow.serves(true);
        let mut ticket = self.edge.request(self.conn, request, self.flow.clone());
        let head = poll_fn(|cx| {
            let gone = |cx: &mut Context<'_>| respond.poll_closed(cx);
            self.unless_over(cx, gone, |cx| ticket.poll_head(cx))
        });
        let head = match head.await {
            Ok(Ok(head)) => head,
            Ok(Err(Ending::Stall)) => {
                return self.stalled(|cx| respond.poll_closed(cx)).await;
            }
            Ok(Err(how)) => {
                self.flow.arm(how);
                // The client may have given it up.
                let _ = respond.send(Err(NoResponse::Ended(Broken::of(how))));
                return Ended::ByServer;
            }
            Err(ended) => return ended,
        };
        let (mut writer, body) = body::channel();
        if respond.send(Ok(response(head, body))).is_err() {
            return Ended::ByClient;
        }
        self.send_body(&mut ticket, &mut writer).await
    }

    async fn send_body(&self, ticket: &mut Ticket, writer: &mut body::Writer) -> Ended {
        loop {
            let piece = poll_fn(|cx| {
                let gone = |cx: &mut Context<'_>| writer.poll_gone(cx);
                self.unless_over(cx, gone, |cx| ticket.poll_piece(cx))
            });
            match piece.await {
                Ok(Piece::Data(bytes)) => {
                    writer.push(bytes);
                    if let Err(ended) = self.room(writer).await {
                        return ended;
                    }
                }
                Ok(Piece::End(Ending::Eof)) => {
                    writer.end(Ok(()));
                    return Ended::Complete;
                }
                Ok(Piece::End(Ending::Stall)) => return self.stalled(|cx| writer.poll_gone(cx)).await,
                Ok(Piece::End(how)) => {
                    self.flow.arm(how);
                    writer.end(Err(Broken::of(how)));
                    return Ended::ByServer;
                }
                Err(ended) => return ended,
            }
        }
    }

    /// Waits until the client has read enough. A client that reads nothing for too long is disconnected.
    async fn room(&self, writer: &mut body::Writer) -> Result<(), Ended> {
        let mut deadline = Deadline::default();
        let mut unread = None;
        poll_fn(|cx| {
            let left = writer.unread();
            if unread != Some(left) {
                unread = Some(left);
                deadline.clear();
            }
            match self.unless_over(cx, |_| Poll::Pending, |cx| writer.poll_room(cx)) {
                Poll::Ready(Ok(Ok(()))) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(Err(body::Gone))) => return Poll::Ready(Err(Ended::ByClient)),
                Poll::Ready(Err(ended)) => return Poll::Ready(Err(ended)),
                Poll::Pending => {}
            }
            if !deadline.is_set() {
                deadline.set(self.patience);
            }
            ready!(deadline.poll_passed(cx));
            self.flow.cut();
            Poll::Ready(Err(Ended::ByServer))
        })
        .await
    }

    /// Sends nothing more, until the client gives up or the connection is closed.
    async fn stalled(&self, mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>) -> Ended {
        self.flow.stalls();
        let ended = poll_fn(|cx| self.unless_over(cx, &mut gone, |_| Poll::<()>::Pending)).await;
        ended.err().unwrap_or(Ended::ByServer)
    }

    /// Polls, unless the client gave the response up or the connection must be closed.
    fn unless_over<T>(
        &self,
        cx: &mut Context<'_>,
        mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Ended>> {
        if gone(cx).is_ready() {
            return Poll::Ready(Err(Ended::ByClient));
        }
        if self.flow.poll_over(1, cx).is_ready() {
            return Poll::Ready(Err(Ended::ByServer));
        }
        poll(cx).map(Ok)
    }
}
