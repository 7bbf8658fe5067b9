//! An HTTP/2 connection, by the `h2` crate: concurrent requests, a future for each, in one task.
//!
//! hyper hides what scenarios need: GOAWAY, RST_STREAM, and when the bytes of a stream are sent. No sockets.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use apimachinery::BODY_BYTES_MAX;
use apimachinery::status::Status;
use bytes::{Bytes, BytesMut};
use futures::stream::{FuturesUnordered, StreamExt as _};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use trace::fault::Ending;
use trace::record::{ConnId, Side};

use super::answer::{end_connection, response};
use super::deadline::Deadline;
use super::guard::Guard;
use super::http1::too_large_head;
use super::open::{HEAD_BYTES_MAX, Open, whole};
use super::wire::{Flow, Transport, Unread, Wire};
use super::{ConnectionSettings, Edge, Head, Piece, Ticket};
use crate::api::HttpRequest;

/// Receive window of a request body, and of the connection (apiserver `MaxUploadBufferPerStream`).
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Most bytes in flight per stream, whatever the client's window.
const SEND_BUFFER: usize = 64 * 1024;

/// Headers that HTTP/2 forbids (RFC 9113, section 8.2.2).
const OF_HTTP1: [HeaderName; 4] = [CONNECTION, TRANSFER_ENCODING, UPGRADE, TE];

/// Serves requests until either side closes the connection.
pub(crate) async fn serve_http2<T: Transport>(
    open: &mut Open,
    wire: Wire<T>,
    flow: Arc<Flow>,
    settings: &ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    let limits = &settings.limits;
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .handshake::<_, Bytes>(wire);
    let mut connection = match tokio::time::timeout(limits.head, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            open.by = Side::Client;
            tracing::debug!(conn = open.conn.0, %error, "no HTTP/2");
            return;
        }
        Err(_) => return,
    };
    let mut exchanges = FuturesUnordered::new();
    let mut stop = pin!(stop);
    let (mut stopped, mut idled) = (false, false);
    let mut idle = Deadline::default();
    let mut unread = Unread::default();
    let ended = poll_fn(|cx| {
        loop {
            // Exchanges first: their bytes are sent in this turn.
            while let Poll::Ready(Some(())) = exchanges.poll_next_unpin(cx) {}
            let stops = !stopped && stop.as_mut().poll(cx).is_ready();
            stopped |= stops;
            if stops || flow.take_goaway() {
                connection.graceful_shutdown();
            }
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    let exchange = Exchange {
                        edge: open.edge.clone(),
                        conn: open.conn,
                        flow: flow.clone(),
                        half: Half::Unanswered(respond),
                        guard: settings.guard.clone(),
                        patience: limits.write,
                    };
                    exchanges.push(exchange.serve(request, limits.body));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(error)),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {}
            }
            if !flow.is_dirty() {
                match flow.settle() {
                    None => {}
                    Some(Ending::Goaway(code)) => {
                        connection.abrupt_shutdown(Reason::from(code.code()));
                        continue;
                    }
                    // Carried out at the flush of the next turn.
                    Some(_) => continue,
                }
            }
            let over = flow.poll_over(exchanges.len(), cx).is_ready();
            if over && !flow.is_cut() && !flow.is_armed() {
                flow.arm(Ending::Fin);
                continue;
            }
            if over || unread.poll(&flow, limits.write, cx).is_ready() {
                return Poll::Ready(None);
            }
            flow.serves(!exchanges.is_empty());
            if !exchanges.is_empty() {
                idle.clear();
            } else if !idle.is_set() {
                idle.set(limits.idle);
            }
            ready!(idle.poll_passed(cx));
            if idled {
                return Poll::Ready(None);
            }
            // A client that does not close in time is not waited for again.
            idled = true;
            idle.set(limits.grace);
            connection.graceful_shutdown();
        }
    })
    .await;
    if stopped || idled || flow.is_ended() {
        // Before the responses are dropped: the client did not abort them.
        open.close(Side::Server);
    } else {
        open.by = Side::Client;
    }
    if let Some(error) = ended {
        tracing::debug!(conn = open.conn.0, %error, "HTTP/2 connection failed");
    }
}

/// Returns whether the connection accepts no more requests: after `Connection: close`, and over HTTP/2 after a 401 (apiserver
/// `endpoints/filters/authentication.go`).
pub(super) fn is_last<B>(response: &http::Response<B>, http2: bool) -> bool {
    let closes = response
        .headers()
        .get(CONNECTION)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    closes || http2 && response.status() == http::StatusCode::UNAUTHORIZED
}

/// One request and its response.
struct Exchange {
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    half: Half,
    guard: Guard,
    /// Longest time without progress of the client's reads.
    patience: Duration,
}

/// Sending half of a stream.
enum Half {
    /// Before the head.
    Unanswered(SendResponse<Bytes>),
    /// After the head.
    Answering(SendStream<Bytes>),
}

/// A complete request.
enum Asked {
    Whole(HttpRequest),
    /// Without its body.
    TooLarge(HttpRequest),
}

/// The client disconnected or reset the stream.
struct Gone;

impl Exchange {
    async fn serve(mut self, request: http::Request<RecvStream>, body_wait: Duration) {
        // A request that is too slow gets no response, which resets the stream.
        let Ok(Ok(asked)) = tokio::time::timeout(body_wait, read(request)).await else {
            return;
        };
        // The client is gone: dropping the exchange is enough.
        let _ = match asked {
            Asked::Whole(request) => self.answer(request).await,
            Asked::TooLarge(request) => self.refuse_too_large(&request).await,
        };
    }

    async fn refuse_too_large(&mut self, request: &HttpRequest) -> Result<(), Gone> {
        self.send_head(too_large_head(request, self.conn, ()), false)?;
        self.send(Status::too_large_body().to_bytes(), true).await
    }

    async fn answer(&mut self, request: HttpRequest) -> Result<(), Gone> {
        let checked = self
            .guard
            .check(http::Version::HTTP_2, &request.method, &request.headers);
        if let Err(refusal) = checked {
            self.send_head(refusal.head(()), false)?;
            return self.send(refusal.body(), true).await;
        }
        let head_only = request.method == http::Method::HEAD;
        let mut ticket = self.edge.request(self.conn, request, self.flow.clone());
        let head = poll_fn(|cx| self.half.unless_reset(cx, |cx| ticket.poll_head(cx))).await?;
        let head = match head {
            Ok(head) => head,
            Err(how) => return self.end(how).await,
        };
        let over = head_only || ticket.ends_cleanly_now();
        self.send_head(self.fitted(head), over)?;
        if head_only {
            return drain(&mut self.half, &mut ticket).await;
        }
        if over {
            return Ok(());
        }
        loop {
            match poll_fn(|cx| self.half.unless_reset(cx, |cx| ticket.poll_piece(cx))).await? {
                Piece::Data(bytes) => {
                    let last = ticket.ends_cleanly_now();
                    if let Err(Gone) = self.send(bytes, last).await {
                        ticket.cut();
                        return Err(Gone);
                    }
                    if last {
                        return Ok(());
                    }
                }
                Piece::End(Ending::Eof) => return self.send(Bytes::new(), true).await,
                Piece::End(how) => return self.end(how).await,
            }
        }
    }

    /// Converts a head to HTTP/2.
    fn fitted(&self, head: Head) -> http::Response<()> {
        let mut response = response(head, ());
        if is_last(&response, true) {
            self.flow.goaway();
        }
        for name in OF_HTTP1 {
            response.headers_mut().remove(name);
        }
        response
    }

    fn send_head(&mut self, head: http::Response<()>, over: bool) -> Result<(), Gone> {
        let Half::Unanswered(respond) = &mut self.half else {
            return Err(Gone);
        };
        let stream = respond.send_response(head, over).map_err(|_| Gone)?;
        self.half = Half::Answering(stream);
        self.flow.gave();
        Ok(())
    }

    /// Sends bytes on the stream, at most as many as its windows allow.
    async fn send(&mut self, mut bytes: Bytes, last: bool) -> Result<(), Gone> {
        let Half::Answering(stream) = &mut self.half else {
            return Err(Gone);
        };
        loop {
            let room = if bytes.is_empty() {
                0
            } else {
                stream.reserve_capacity(bytes.len());
                let room = poll_fn(|cx| poll_room(stream, cx));
                match tokio::time::timeout(self.patience, room).await {
                    Ok(room) => room?,
                    Err(_) => {
                        stream.send_reset(Reason::CANCEL);
                        return Err(Gone);
                    }
                }
            };
            let part = bytes.split_to(room.min(bytes.len()));
            let over = bytes.is_empty();
            stream.send_data(part, last && over).map_err(|_| Gone)?;
            self.flow.gave();
            if over {
                return Ok(());
            }
        }
    }

    async fn end(&mut self, how: Ending) -> Result<(), Gone> {
        if how != Ending::Stall {
            poll_fn(|cx| self.flow.poll_flushed(cx)).await;
        }
        if let Ending::RstStream(code) = how {
            self.half.reset(Reason::from(code.code()));
            return Ok(());
        }
        poll_fn(|cx| {
            end_connection(&self.flow, how, cx);
            Poll::Ready(())
        })
        .await;
        // Until the connection is closed, or the client resets the stream.
        let gone = poll_fn(|cx| self.half.unless_reset(cx, |_| Poll::<()>::Pending)).await;
        if how == Ending::Stall {
            self.flow.gave_up_stalled();
        }
        gone
    }
}

impl Half {
    /// Returns the result of `poll`, unless the client reset the stream.
    fn unless_reset<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Gone>> {
        let reset = match self {
            Self::Unanswered(respond) => respond.poll_reset(cx),
            Self::Answering(stream) => stream.poll_reset(cx),
        };
        if reset.is_ready() {
            return Poll::Ready(Err(Gone));
        }
        poll(cx).map(Ok)
    }

    fn reset(&mut self, reason: Reason) {
        match self {
            Self::Unanswered(respond) => respond.send_reset(reason),
            Self::Answering(stream) => stream.send_reset(reason),
        }
    }
}

/// Discards the body of a response to HEAD.
async fn drain(half: &mut Half, ticket: &mut Ticket) -> Result<(), Gone> {
    loop {
        if let Piece::End(_) = poll_fn(|cx| half.unless_reset(cx, |cx| ticket.poll_piece(cx))).await? {
            return Ok(());
        }
    }
}

fn poll_room(stream: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> Poll<Result<usize, Gone>> {
    loop {
        if stream.capacity() > 0 {
            return Poll::Ready(Ok(stream.capacity()));
        }
        if stream.poll_reset(cx).is_ready() {
            return Poll::Ready(Err(Gone));
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(Err(Gone)),
        }
    }
}

async fn read(request: http::Request<RecvStream>) -> Result<Asked, Gone> {
    let (mut head, mut body) = request.into_parts();
    let mut read = BytesMut::new();
    while let Some(part) = poll_fn(|cx| body.poll_data(cx)).await {
        let part = part.map_err(|_| Gone)?;
        if read.len() + part.len() > BODY_BYTES_MAX {
            return Ok(Asked::TooLarge(whole(head, Bytes::new())));
        }
        body.flow_control()
            .release_capacity(part.len())
            .map_err(|_| Gone)?;
        read.extend_from_slice(&part);
    }
    // HTTP/1.1 has a header for it.
    if !head.headers.contains_key(HOST)
        && let Some(authority) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
    Ok(Asked::Whole(whole(head, read.freeze())))
}
