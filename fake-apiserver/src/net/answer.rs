//! A response as an HTTP body: one frame per piece, each flushed before the next.
//!
//! No sockets: the end of the connection is stored in [`Flow`] and carried out by `wire`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE, HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use hyper::ext::ReasonPhrase;
use trace::fault::Ending;

use super::wire::Flow;
use super::{Head, Next, Piece, Ticket};
use crate::api::reason_phrase;

/// Body of a response, in pieces.
pub(crate) struct AnswerBody {
    ticket: Ticket,
}

impl AnswerBody {
    /// Returns the body of the response of `ticket`, whose head was sent.
    pub(crate) fn new(ticket: Ticket) -> Self {
        Self { ticket }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.ticket.flow().serves(false);
    }
}

/// Waits for the head of the response of `ticket`. If the response ends without a head, it never completes, and the
/// connection ends instead.
pub(crate) async fn head_of(ticket: &mut Ticket) -> Head {
    std::future::poll_fn(|cx| match ready!(ticket.poll_head(cx)) {
        Ok(head) => Poll::Ready(head),
        Err(how) => {
            end_connection(ticket.flow(), how, cx);
            Poll::Pending
        }
    })
    .await
}

/// Returns a response with this head.
pub(crate) fn response<B>(head: Head, body: B) -> http::Response<B> {
    let Head {
        status,
        headers,
        length,
    } = head;
    let mut response = http::Response::new(body);
    match http::StatusCode::from_u16(status) {
        Ok(status) => *response.status_mut() = status,
        Err(_) => tracing::error!(status, "no HTTP status; sent as 200"),
    }
    if let Some(words) = reason_phrase(status) {
        response
            .extensions_mut()
            .insert(ReasonPhrase::from_static(words.as_bytes()));
    }
    // Plus Content-Length and Date.
    *response.headers_mut() = HeaderMap::with_capacity(headers.len() + 2);
    for (name, value) in headers {
        response.headers_mut().append(name, value);
    }
    if let Some(length) = length {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().remove(DATE);
    } else if !response.headers().contains_key(DATE) {
        response.headers_mut().insert(DATE, now());
    }
    response
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Only data needs a separate write: the end may share one, as on a real server.
        // While nothing is queued, a wake-up for the flush would only cost a turn.
        if self.ticket.flow().is_unflushed() {
            match self.ticket.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::CleanEnd) => {}
                Poll::Ready(Next::Piece) => ready!(self.ticket.flow().poll_flushed(cx)),
            }
        }
        match ready!(self.ticket.poll_piece(cx)) {
            Piece::Data(bytes) => {
                self.ticket.flow().gave();
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Piece::End(Ending::Eof) => Poll::Ready(None),
            Piece::End(how) => {
                end_connection(self.ticket.flow(), how, cx);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ticket.ends_cleanly_now()
    }
}

/// Stores how `wire` ends the connection.
pub(crate) fn end_connection(flow: &Flow, how: Ending, cx: &mut Context<'_>) {
    // One more turn of the connection, to flush once more.
    cx.waker().wake_by_ref();
    let how = match how {
        Ending::Stall => return flow.stalls(),
        // Only a response without a head gets here with it, and HTTP has no end for that.
        Ending::Eof => Ending::Fin,
        Ending::Fin | Ending::Rst | Ending::NoCloseNotify | Ending::RstStream(_) | Ending::Goaway(_) => how,
    };
    flow.arm(how);
}

/// `Date`, in seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "HTTP wants the date, and it is the edge that speaks HTTP"
)]
fn now() -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now())).expect("a date is ASCII")
}
