//! A connection that speaks HTTP/1.1, by hyper. It must not know sockets, nor what a request means.

use std::future::{Future, poll_fn};
use std::pin::pin;
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

use super::answer::{AnswerBody, head_of, response};
use super::connection::{HEAD_BYTES_MAX, Open, whole};
use super::deadline::Deadline;
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

/// Serves requests, one at a time, until either side ends the connection.
pub(crate) async fn serve_http1<T: Transport>(
    open: &mut Open,
    wire: Wire<T>,
    flow: Arc<Flow>,
    limits: &ListenerLimits,
    stop: impl Future<Output = ()>,
) {
    let (edge, conn, body_wait) = (open.edge.clone(), open.conn, limits.body);
    let upgrade = Mutex::new(None);
    let service =
        service_fn(|request| respond(edge.clone(), conn, flow.clone(), body_wait, &upgrade, request));
    let mut connection = pin!(
        http1::Builder::new()
            .max_header_size(HEAD_BYTES_MAX)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(wire), service)
            .with_upgrades()
    );
    let mut stop = pin!(stop);
    let mut stopped = false;
    let (mut awaited, mut deadline) = (Awaited::Nothing, Deadline::default());
    let ended = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
            let stops = !stopped && stop.as_mut().poll(cx).is_ready();
            stopped |= stops;
            if !stops && !flow.take_goaway() {
                break;
            }
            connection.as_mut().graceful_shutdown();
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
    let upgrade = upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((upgrade, ticket)) = upgrade
        && let Ok(io) = upgrade.await
    {
        open.by = serve_websocket(TokioIo::new(io), ticket).await;
        return;
    }
    let by_server = ended.is_none() || stopped || flow.is_armed();
    if !by_server {
        open.by = Side::Client;
    }
    if let Some(Err(error)) = ended {
        tracing::debug!(conn = conn.0, %error, "HTTP/1.1 broke off");
    }
}

type Response = http::Response<Either<AnswerBody, Full<Bytes>>>;

async fn respond(
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    body_wait: Duration,
    upgrade: &Mutex<Option<(OnUpgrade, Ticket)>>,
    mut request: http::Request<Incoming>,
) -> Result<Response, BodyLost> {
    flow.serves(true);
    let upgraded = request
        .headers()
        .contains_key(UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
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
    if let (101, Some(upgraded)) = (head.status, upgraded) {
        *upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgraded, ticket));
        return Ok(response(head, Either::Right(Full::default())));
    }
    Ok(response(head, Either::Left(AnswerBody::new(ticket))))
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
