//! A connection that speaks HTTP/1.1, by hyper. It must not know sockets, nor what a request means.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

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

use super::answer::{AnswerBody, head_of, response};
use super::connection::{HEAD_BYTES_MAX, Open, whole};
use super::deadline::Deadline;
use super::streamed::{Closing, Streamed, stream};
use super::websocket::serve_websocket;
use super::wire::{Flow, Transport, Wire};
use super::{Edge, Head, ListenerLimits, Ticket};
use crate::api::{BODY_BYTES_MAX, HttpRequest, Status, common_headers};
use crate::fault::Ending;
use crate::record::{ConnId, Side};

/// What a connection without a request under way is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// Nothing: there is a request.
    Nothing,
    /// The first byte of the next request.
    Request,
    /// The rest of a head that has begun.
    Head,
}

/// An answer that hyper does not send.
enum Aside {
    /// The rest of it goes over another protocol.
    Upgraded(OnUpgrade, Ticket),
    /// Its end is not in sight.
    Streamed(Head, Ticket),
}

/// Serves requests, one at a time, until either side ends the connection.
pub(crate) async fn serve_http1<T: Transport>(
    open: &mut Open,
    mut wire: Wire<T>,
    flow: Arc<Flow>,
    limits: &ListenerLimits,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut closing = Closing::default();
    loop {
        // Boxed: thousands of connections stream, and are not to hold the room for hyper meanwhile.
        let requests = serve_requests(open, wire, &flow, limits, &mut closing.stopped, stop.as_mut());
        let Some((given_back, head, ticket)) = Box::pin(requests).await else {
            return;
        };
        wire = given_back;
        closing.closes = closing.stopped || flow.take_goaway();
        let streamed = stream(&mut wire, head, ticket, &mut closing, stop.as_mut()).await;
        if streamed == Streamed::Whole && !closing.closes {
            continue;
        }
        if streamed == Streamed::Whole {
            // It is over, however the peer takes it.
            let _ = wire.shutdown().await;
        }
        if !closing.stopped && !flow.is_armed() {
            open.by = Side::Client;
        }
        return;
    }
}

/// Serves requests until one is answered by a stream, and gives the connection back for it.
async fn serve_requests<T: Transport>(
    open: &mut Open,
    wire: Wire<T>,
    flow: &Arc<Flow>,
    limits: &ListenerLimits,
    stopped: &mut bool,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Option<(Wire<T>, Head, Ticket)> {
    let (edge, conn, body_wait) = (open.edge.clone(), open.conn, limits.body);
    let aside = Mutex::new(None);
    let put_aside = || aside.lock().unwrap_or_else(PoisonError::into_inner);
    let service = service_fn(|request| respond(edge.clone(), conn, flow.clone(), body_wait, &aside, request));
    let mut connection = http1::Builder::new()
        .max_header_size(HEAD_BYTES_MAX)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(wire), service)
        .with_upgrades();
    let (mut awaited, mut deadline) = (Awaited::Nothing, Deadline::default());
    let mut streamed = None;
    let ended = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
                return Poll::Ready(Some(ended));
            }
            // An upgrade is for hyper to carry out.
            if let Some(Aside::Streamed(head, ticket)) =
                put_aside().take_if(|aside| matches!(aside, Aside::Streamed(..)))
            {
                streamed = Some((head, ticket));
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
        deadline.poll_passed(cx).map(|()| None)
    })
    .await;
    if let Some((head, ticket)) = streamed {
        let parts = connection.into_parts()?;
        let mut wire = parts.io.into_inner();
        wire.unread(parts.read_buf);
        return Some((wire, head, ticket));
    }
    let upgraded = put_aside().take();
    if let Some(Aside::Upgraded(upgrade, ticket)) = upgraded
        && let Ok(io) = upgrade.await
    {
        open.by = serve_websocket(TokioIo::new(io), ticket).await;
        return None;
    }
    let by_server = ended.is_none() || *stopped || flow.is_armed();
    if !by_server {
        open.by = Side::Client;
    }
    if let Some(Err(error)) = ended {
        tracing::debug!(conn = conn.0, %error, "HTTP/1.1 broke off");
    }
    None
}

type Response = http::Response<Either<AnswerBody, Full<Bytes>>>;

async fn respond(
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    body_wait: Duration,
    aside: &Mutex<Option<Aside>>,
    mut request: http::Request<Incoming>,
) -> Result<Response, BodyLost> {
    flow.serves(true);
    let upgraded = request
        .headers()
        .contains_key(UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let may_stream = may_stream(&head) && body.is_end_stream();
    let body = if body.is_end_stream() {
        Bytes::new()
    } else {
        let body = Limited::new(body, BODY_BYTES_MAX).collect();
        match tokio::time::timeout(body_wait, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Ok(too_large(head, conn)),
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
    if may_stream && head.status == 200 && head.length.is_none() && ticket.is_open_ended() {
        put_aside(Aside::Streamed(head, ticket));
        // Whoever polls this takes the connection away.
        return std::future::pending().await;
    }
    Ok(response(head, Either::Left(AnswerBody::new(ticket))))
}

/// May the answer come in chunks, and another request after it?
fn may_stream(head: &http::request::Parts) -> bool {
    let closes = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
    head.method == http::Method::GET
        && head.version == http::Version::HTTP_11
        && !head.headers.get_all(CONNECTION).iter().any(closes)
}

/// The request's body did not come whole: there is no request, and no one to answer.
#[derive(Debug, thiserror::Error)]
#[error("the request's body broke off: {0}")]
struct BodyLost(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Refused before the server hears of it: what is not read whole is no request.
fn too_large(head: http::request::Parts, conn: ConnId) -> Response {
    let body = Either::Right(Full::new(Status::too_large_body().to_bytes()));
    let mut response = too_large_head(&whole(head, Bytes::new()), conn, body);
    // The rest of the body is still on its way; only closing gets rid of it.
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The head of that refusal, whatever is spoken, with the headers every answer has.
pub(crate) fn too_large_head<B>(request: &HttpRequest, conn: ConnId, body: B) -> http::Response<B> {
    let answer = Status::too_large_body().into_answer();
    let mut headers = common_headers(request, conn.0);
    headers.extend(answer.headers);
    let head = Head {
        status: answer.status,
        headers,
        length: None,
    };
    response(head, body)
}
