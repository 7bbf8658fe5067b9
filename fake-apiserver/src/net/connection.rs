//! One connection: the handshake where there is one, then whole requests in and answers out, bounded on every side.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::answer::{AnswerBody, answer};
use super::tls::named_by;
use super::wire::{Flow, Transport, Wire};
use super::{Edge, ListenerLimits};
use crate::api::{BODY_BYTES_MAX, HttpRequest, Status, User};
use crate::record::{ConnId, Side};

/// Largest request head (Go `http.DefaultMaxHeaderBytes` is 1 MiB; no client under test needs a tenth of this).
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// Most headers a request may have.
const HEADERS_MAX: usize = 128;

/// How long a connection may stay without a whole request head (apiserver `IdleTimeout`, 90 s).
const HEAD_WAIT: Duration = Duration::from_secs(90);

/// How connections are spoken with.
#[derive(Clone, Default)]
pub struct ConnectionSettings {
    /// TLS; `None`: bare bytes.
    pub tls: Option<TlsAcceptor>,
    /// What a connection may take.
    pub limits: ListenerLimits,
}

/// Serves the requests of an accepted connection until either side ends it, and tells the server so.
///
/// When `stop` completes, no further request is taken; an answer that has begun may come to its end.
pub async fn serve_connection<T: Transport>(
    edge: Edge,
    conn: ConnId,
    transport: T,
    settings: ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    // Whoever drops this future without polling it to its end ends the connection on the server's behalf.
    let mut open = Open {
        edge: edge.clone(),
        conn,
        by: Side::Server,
    };
    let Some(acceptor) = settings.tls else {
        return serve_http1(&mut open, transport, stop).await;
    };
    match tokio::time::timeout(settings.limits.handshake, acceptor.accept(transport)).await {
        Ok(Ok(stream)) => {
            if let Some(user) = certified(&stream) {
                edge.authenticated(conn, user);
            }
            serve_http1(&mut open, stream, stop).await;
        }
        Ok(Err(error)) => {
            open.by = Side::Client;
            tracing::debug!(conn = conn.0, %error, "no TLS");
        }
        Err(_) => tracing::debug!(conn = conn.0, "the TLS handshake took too long"),
    }
}

/// Whom the client's certificate names. The handshake has verified it.
fn certified<T>(stream: &TlsStream<T>) -> Option<User> {
    let certificates = stream.get_ref().1.peer_certificates()?;
    named_by(certificates.first()?)
}

async fn serve_http1<T: Transport>(open: &mut Open, transport: T, stop: impl Future<Output = ()>) {
    let (edge, conn) = (open.edge.clone(), open.conn);
    let flow = Arc::new(Flow::default());
    let service = service_fn(|request| respond(edge.clone(), conn, flow.clone(), request));
    let wire = TokioIo::new(Wire::new(transport, flow.clone()));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .serve_connection(wire, service)
    );
    let (ended, stopped) = tokio::select! {
        biased;
        ended = connection.as_mut() => (ended, false),
        () = stop => {
            connection.as_mut().graceful_shutdown();
            (connection.await, true)
        }
    };
    let by_server = stopped || flow.is_armed() || ended.as_ref().is_err_and(hyper::Error::is_timeout);
    if !by_server {
        open.by = Side::Client;
    }
    tracing::debug!(conn = conn.0, by = ?open.by, error = ended.err().map(tracing::field::display), "connection over");
}

/// A connection the server knows of. Dropped however the connection ends, and after its answers.
struct Open {
    edge: Edge,
    conn: ConnId,
    by: Side,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.edge.disconnected(self.conn, self.by);
    }
}

type Response = http::Response<Either<AnswerBody, Full<Bytes>>>;

async fn respond(
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    request: http::Request<Incoming>,
) -> Result<Response, BodyLost> {
    let (head, body) = request.into_parts();
    let body = if body.is_end_stream() {
        Bytes::new()
    } else {
        match Limited::new(body, BODY_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(too_large()),
            Err(error) => return Err(BodyLost(error)),
        }
    };
    let request = HttpRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body,
    };
    Ok(answer(edge.request(conn, request), flow).await.map(Either::Left))
}

/// The request's body did not come whole: there is no request, and no one to answer.
#[derive(Debug, thiserror::Error)]
#[error("the request's body broke off: {0}")]
struct BodyLost(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Refused before the server hears of it: what is not read whole is no request.
fn too_large() -> Response {
    let body = Status::too_large_body().to_bytes();
    let mut response = http::Response::new(Either::Right(Full::new(body)));
    *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    // The rest of the body is still on its way; only closing gets rid of it.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
