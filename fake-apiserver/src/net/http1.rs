//! An HTTP/1.1 connection, by hyper. No sockets.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use apimachinery::BODY_BYTES_MAX;
use apimachinery::status::Status;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use trace::fault::Ending;
use trace::record::{ConnId, Side};

use super::answer::{AnswerBody, head_of, response};
use super::deadline::Deadline;
use super::guard::{Guard, Refusal};
use super::open::{HEAD_BYTES_MAX, Open, whole};
use super::streamed::{Closing, Framing, Streamed, stream};
use super::upstream::serve_tunnel;
use super::websocket::serve_websocket;
use super::wire::{Flow, Transport, Unread, Wire};
use super::{ConnectionSettings, Edge, Head, Ticket};
use crate::api::{Answer, HttpRequest, common_headers};

/// What the deadline of a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// None: a request is open.
    Nothing,
    /// The first byte of the next request.
    Request,
    /// The rest of a request head.
    Head,
}

/// How a response is streamed.
struct Streaming {
    head: Head,
    framing: Framing,
    /// Whether it is the last of its connection.
    closes: bool,
}

/// A response that hyper does not send.
enum Aside {
    /// It continues as another protocol.
    Upgraded(OnUpgrade, Ticket),
    /// It has no known end.
    Streamed(Streaming, Ticket),
}

/// Serves requests, one at a time, until either side closes the connection.
pub(crate) async fn serve_http1<T: Transport>(
    open: &mut Open,
    mut wire: Wire<T>,
    flow: Arc<Flow>,
    settings: &ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut closing = Closing::default();
    loop {
        // Boxed: thousands of connections stream, and need no memory for hyper meanwhile.
        let requests = serve_requests(open, wire, &flow, settings, &mut closing.stopped, stop.as_mut());
        let Some((given_back, streaming, ticket)) = Box::pin(requests).await else {
            return;
        };
        wire = given_back;
        closing.closes = closing.stopped || flow.take_goaway() || streaming.closes;
        let head = (streaming.head, streaming.framing);
        let patience = settings.limits.write;
        let streamed = stream(&mut wire, head, ticket, patience, &mut closing, stop.as_mut()).await;
        if streamed == Streamed::Whole && !closing.closes {
            continue;
        }
        if streamed == Streamed::Whole {
            // The connection is over in any case.
            let _ = wire.shutdown().await;
        }
        if !closing.stopped && !flow.is_ended() {
            open.by = Side::Client;
        }
        return;
    }
}

/// Serves requests until a response is streamed, and returns the connection for it.
async fn serve_requests<T: Transport>(
    open: &mut Open,
    wire: Wire<T>,
    flow: &Arc<Flow>,
    settings: &ConnectionSettings,
    stopped: &mut bool,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Option<(Wire<T>, Streaming, Ticket)> {
    let limits = &settings.limits;
    let asked_by = RequestContext {
        edge: open.edge.clone(),
        conn: open.conn,
        flow: flow.clone(),
        guard: settings.guard.clone(),
        body_wait: limits.body,
    };
    let aside = Mutex::new(None);
    let put_aside = || aside.lock().unwrap_or_else(PoisonError::into_inner);
    let service = service_fn(|request| respond(asked_by.clone(), &aside, request));
    let mut connection = http1::Builder::new()
        .max_header_size(HEAD_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(wire), service)
        .with_upgrades();
    let (mut awaited, mut deadline) = (Awaited::Nothing, Deadline::default());
    let mut unread = Unread::default();
    let mut streamed = None;
    let ended = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(Some(ended));
            }
            // hyper carries out the upgrade.
            if let Some(Aside::Streamed(streaming, ticket)) =
                put_aside().take_if(|aside| matches!(aside, Aside::Streamed(..)))
            {
                streamed = Some((streaming, ticket));
                return Poll::Ready(None);
            }
            let stops = !*stopped && stop.as_mut().poll(cx).is_ready();
            *stopped |= stops;
            if !stops && !flow.take_goaway() {
                break;
            }
            Pin::new(&mut connection).graceful_shutdown();
        }
        let heard = flow.take_heard();
        if flow.take_asked() {
            awaited = Awaited::Nothing;
        }
        if flow.is_serving() {
            awaited = Awaited::Nothing;
            deadline.clear();
        } else if heard && awaited != Awaited::Head {
            awaited = Awaited::Head;
            deadline.set(limits.head);
        } else if awaited == Awaited::Nothing {
            awaited = Awaited::Request;
            deadline.set(limits.idle);
        }
        let open = usize::from(flow.is_serving());
        if flow.poll_over(open, cx).is_ready() || unread.poll(flow, limits.write, cx).is_ready() {
            return Poll::Ready(None);
        }
        deadline.poll_passed(cx).map(|()| None)
    })
    .await;
    if let Some((streaming, ticket)) = streamed {
        let parts = connection.into_parts()?;
        let mut wire = parts.io.into_inner();
        wire.unread(parts.read_buf);
        return Some((wire, streaming, ticket));
    }
    let upgraded = put_aside().take();
    if let Some(Aside::Upgraded(upgrade, ticket)) = upgraded
        && let Ok(io) = upgrade.await
    {
        let (client, mut ticket) = (TokioIo::new(io), ticket);
        open.by = match ticket.take_tunnel() {
            Some(upstream) => serve_tunnel(client, upstream, ticket).await,
            None => serve_websocket(client, ticket, limits.write).await,
        };
        return None;
    }
    let by_server = ended.is_none() || *stopped || flow.is_ended();
    if !by_server {
        open.by = Side::Client;
    }
    if let Some(Err(error)) = ended {
        tracing::debug!(conn = open.conn.0, %error, "HTTP/1.1 connection failed");
    }
    None
}

type Response = http::Response<Either<AnswerBody, Full<Bytes>>>;

/// Shared state of the requests of a connection.
#[derive(Clone)]
struct RequestContext {
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    guard: Guard,
    body_wait: Duration,
}

async fn respond(
    context: RequestContext,
    aside: &Mutex<Option<Aside>>,
    mut request: http::Request<Incoming>,
) -> Result<Response, BodyLost> {
    let RequestContext {
        edge,
        conn,
        flow,
        guard,
        body_wait,
    } = context;
    flow.serves(true);
    if let Err(refusal) = guard.check(request.version(), request.method(), request.headers()) {
        return Ok(refused(&flow, refusal));
    }
    let upgraded = request
        .headers()
        .contains_key(UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let may_stream = may_stream(&head).filter(|_| body.is_end_stream());
    let body = if body.is_end_stream() {
        Bytes::new()
    } else {
        let body = Limited::new(body, BODY_BYTES_MAX).collect();
        match tokio::time::timeout(body_wait, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                flow.linger();
                return Ok(too_large(head, conn));
            }
            Ok(Err(error)) if is_malformed(&*error) => {
                let refusal = Refusal::new(400, "400 Bad Request: malformed chunked encoding");
                return Ok(refused(&flow, refusal));
            }
            Ok(Err(error)) => return Err(BodyLost(error)),
            Err(elapsed) => {
                flow.arm(Ending::Fin);
                return Err(BodyLost(Box::new(elapsed)));
            }
        }
    };
    let mut ticket = edge.request(conn, whole(head, body), flow);
    let head = head_of(&mut ticket).await;
    let put_aside = |answer| *aside.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    if let (101, Some(upgraded)) = (head.status, upgraded) {
        put_aside(Aside::Upgraded(upgraded, ticket));
        return Ok(response(head, Either::Right(Full::default())));
    }
    if let Some((framing, closes)) = may_stream
        && head.status == 200
        && head.length.is_none()
        && ticket.is_open_ended()
    {
        let streaming = Streaming {
            head,
            framing,
            closes,
        };
        put_aside(Aside::Streamed(streaming, ticket));
        // Polling this returns the connection.
        return std::future::pending().await;
    }
    Ok(response(head, Either::Left(AnswerBody::new(ticket))))
}

/// Returns how to stream the response, if it can be streamed.
fn may_stream(head: &http::request::Parts) -> Option<(Framing, bool)> {
    let other = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
    let closes = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"close");
    let connection = || head.headers.get_all(CONNECTION).iter();
    if head.method != http::Method::GET || connection().any(|value| other(value) && !closes(value)) {
        return None;
    }
    match head.version {
        http::Version::HTTP_11 => Some((Framing::Chunks, connection().any(closes))),
        http::Version::HTTP_10 => Some((Framing::UntilClosed, true)),
        _ => None,
    }
}

/// Sends the response of a rejected request. Further bytes of the client are not parsed.
fn refused(flow: &Flow, refusal: Refusal) -> Response {
    flow.linger();
    refusal.into_response().map(Either::Right)
}

/// Whether the request body is malformed and the client still connected.
fn is_malformed(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData
        )
    })
}

/// The request body is incomplete: there is no request to answer.
#[derive(Debug, thiserror::Error)]
#[error("the request body ended early: {0}")]
struct BodyLost(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Rejected before the server handles it.
fn too_large(head: http::request::Parts, conn: ConnId) -> Response {
    let body = Either::Right(Full::new(Status::too_large_body().to_bytes()));
    let mut response = too_large_head(&whole(head, Bytes::new()), conn, body);
    // The rest of the body is still in flight: the connection must close.
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns the head of the rejection for any protocol, with the common headers.
pub(crate) fn too_large_head<B>(request: &HttpRequest, conn: ConnId, body: B) -> http::Response<B> {
    let answer = Answer::from(Status::too_large_body());
    let mut headers = common_headers(request, conn.0);
    headers.extend(answer.headers);
    let head = Head {
        status: answer.status,
        headers,
        length: None,
    };
    response(head, body)
}
