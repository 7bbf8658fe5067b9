//! A response of unknown length, written without hyper: an idle watch keeps nothing but its ticket, while hyper keeps read
//! and head buffers for as long as it has a connection.
//!
//! The bytes are those hyper sends: the head, then a chunk per piece (RFC 9112, section 7.1), each flushed before the next.

use std::future::{Future, poll_fn};
use std::io::{self, Cursor, IoSlice, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use hyper::ext::ReasonPhrase;
use tokio::io::AsyncWrite as _;
use trace::fault::Ending;

use super::answer::{end_connection, response};
use super::wire::{Transport, Unread, Wire};
use super::{Head, Leaving, Piece, Ticket};

/// Suffix of a chunk.
pub(crate) const END_OF_CHUNK: &[u8] = b"\r\n";

/// Last chunk.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Capacity for the size line of a chunk.
const SIZE_LINE: usize = 16;

/// Appends the size line of a chunk.
pub(crate) fn begin_chunk(out: &mut Vec<u8>, length: usize) {
    let _to_memory = write!(out, "{length:X}\r\n");
}

/// End of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streamed {
    /// Complete.
    Whole,
    /// With the connection, closed by either side.
    Broken,
}

/// Whether a connection accepts more requests.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Closing {
    /// The server stops.
    pub(crate) stopped: bool,
    /// No more requests are accepted, for this or another reason.
    pub(crate) closes: bool,
}

/// How the end of a response is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// By the last chunk.
    Chunks,
    /// By the end of the connection (HTTP/1.0).
    UntilClosed,
}

/// Sends the response of `ticket`, and tracks whether it is the last. A client that reads nothing for `patience` is
/// disconnected.
pub(crate) async fn stream<T: Transport>(
    wire: &mut Wire<T>,
    (head, framing): (Head, Framing),
    mut ticket: Ticket,
    patience: Duration,
    closing: &mut Closing,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Streamed {
    closing.closes |= framing == Framing::UntilClosed;
    let mut due = Due::head(head, framing, closing.closes);
    let mut unread = Unread::default();
    // Whether a write is in progress, and whether it has the end.
    let (mut on_its_way, mut over) = (false, false);
    let streamed = poll_fn(|cx| {
        if !closing.stopped && stop.as_mut().poll(cx).is_ready() {
            closing.stopped = true;
        }
        if wire.poll_gone(cx).is_ready() || ticket.flow().poll_over(1, cx).is_ready() {
            return Poll::Ready(Streamed::Broken);
        }
        loop {
            if !on_its_way {
                let idle = due.is_out();
                match ticket.poll_leaving(
                    cx,
                    (idle && due.framing == Framing::Chunks).then(|| wire.outlet()),
                ) {
                    Poll::Ready(Leaving {
                        piece,
                        begun,
                        is_last,
                    }) => {
                        over = is_last;
                        match piece {
                            Piece::Data(bytes) => due.chunk(bytes, begun),
                            Piece::End(Ending::Eof) => over = true,
                            // The flush carries it out.
                            Piece::End(how) => end_connection(ticket.flow(), how, cx),
                        }
                    }
                    Poll::Pending if idle => {
                        return ticket.flow().poll_over(1, cx).map(|()| Streamed::Broken);
                    }
                    Poll::Pending => {}
                }
                if over {
                    due.end();
                }
                closing.closes |= closing.stopped | ticket.flow().take_goaway() | ticket.flow().is_closing();
                on_its_way = true;
            }
            match due.poll_out(wire, cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Streamed::Broken),
                Poll::Pending => {
                    ready!(unread.poll(ticket.flow(), patience, cx));
                    return Poll::Ready(Streamed::Broken);
                }
            }
            if over {
                return Poll::Ready(Streamed::Whole);
            }
            on_its_way = false;
        }
    })
    .await;
    ticket.flow().serves(false);
    streamed
}

/// One write: a head, a chunk, the end, or several of them.
struct Due {
    /// Head and size line of the chunk.
    before: Cursor<Vec<u8>>,
    data: Bytes,
    after: &'static [u8],
    framing: Framing,
}

impl Due {
    fn head(head: Head, framing: Framing, closes: bool) -> Self {
        let mut response = response(head, ());
        let headers = response.headers_mut();
        if closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if framing == Framing::Chunks {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let status = response.status();
        let words = response.extensions().get::<ReasonPhrase>();
        let words = words.map_or_else(
            || status.canonical_reason().unwrap_or("<none>").as_bytes(),
            ReasonPhrase::as_bytes,
        );
        let version: &[u8] = match framing {
            Framing::Chunks => b"HTTP/1.1 ",
            Framing::UntilClosed => b"HTTP/1.0 ",
        };
        let start = [version, status.as_str().as_bytes(), b" ", words, b"\r\n"];
        let mut before = start.concat();
        for (name, value) in response.headers() {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                before.extend_from_slice(part);
            }
        }
        before.extend_from_slice(b"\r\n");
        Self {
            before: Cursor::new(before),
            data: Bytes::new(),
            after: b"",
            framing,
        }
    }

    /// Adds a chunk, of which `begun` bytes are already written. An empty chunk is skipped: it would end the body.
    fn chunk(&mut self, data: Bytes, begun: usize) {
        if data.is_empty() {
            return;
        }
        if self.framing == Framing::UntilClosed {
            self.data = data;
            return;
        }
        begin_chunk(self.before.get_mut(), data.len());
        self.data = data;
        self.after = END_OF_CHUNK;
        self.advance(begun);
    }

    fn end(&mut self) {
        if self.framing == Framing::UntilClosed {
            return;
        }
        self.after = if self.after.is_empty() {
            LAST_CHUNK
        } else {
            b"\r\n0\r\n\r\n"
        };
    }

    fn is_out(&self) -> bool {
        !self.before.has_remaining() && self.data.is_empty() && self.after.is_empty()
    }

    /// Removes written bytes.
    fn advance(&mut self, mut written: usize) {
        for part in [&mut self.before as &mut dyn Buf, &mut self.data, &mut self.after] {
            let taken = written.min(part.remaining());
            part.advance(taken);
            written -= taken;
        }
    }

    /// Writes and flushes.
    fn poll_out<T: Transport>(&mut self, wire: &mut Wire<T>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_out() {
            let parts = [
                IoSlice::new(self.before.chunk()),
                IoSlice::new(&self.data),
                IoSlice::new(self.after),
            ];
            let written = ready!(Pin::new(&mut *wire).poll_write_vectored(cx, &parts))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        // While idle it keeps neither its head nor its last event.
        self.data = Bytes::new();
        self.before.set_position(0);
        let before = self.before.get_mut();
        before.clear();
        before.shrink_to(SIZE_LINE);
        Pin::new(wire).poll_flush(cx)
    }
}
