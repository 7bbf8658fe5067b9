//! Body of a response in process: a bounded queue of pieces between the task of a connection and its client.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Frame;
use trace::fault::{Ending, Http2Error};

use super::{Connection, Protocol};
use crate::net::pipe;

/// Bytes in flight per HTTP/2 stream: the window of hyper's client.
const WINDOW_BYTES: usize = 2 * 1024 * 1024;

/// Returns the two ends of a body.
pub(super) fn channel(protocol: Protocol) -> (Writer, Body) {
    let queue = Arc::new(Queue {
        state: Mutex::default(),
        capacity: match protocol {
            Protocol::Http1 => pipe::CAPACITY_BYTES,
            Protocol::Http2 => WINDOW_BYTES,
        },
    });
    let body = Body {
        queue: queue.clone(),
        connection: None,
    };
    (Writer { queue }, body)
}

/// How a connection or stream ended before its response was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The server closed the connection.
    #[error("connection closed before the message was complete")]
    Closed,
    /// The server reset the connection.
    #[error("connection reset")]
    Reset,
    /// The server reset the stream (HTTP/2).
    #[error("stream reset: {0:?}")]
    StreamReset(Http2Error),
}

impl Broken {
    /// Returns what a client sees of this ending.
    pub(super) fn of(how: Ending, protocol: Protocol) -> Self {
        match (how, protocol) {
            (Ending::RstStream(code), Protocol::Http2) => Self::StreamReset(code),
            (Ending::Rst | Ending::RstStream(_), _) => Self::Reset,
            (Ending::Eof | Ending::Fin | Ending::NoCloseNotify | Ending::Goaway(_) | Ending::Stall, _) => {
                Self::Closed
            }
        }
    }
}

/// The client dropped the body.
pub(super) struct Gone;

struct Queue {
    state: Mutex<State>,
    /// Bytes in flight at which the server waits.
    capacity: usize,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces`.
    bytes: usize,
    end: Option<Result<(), Broken>>,
    /// The body was dropped.
    gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's end. Dropping it without an end closes the connection.
pub(super) struct Writer {
    queue: Arc<Queue>,
}

impl Writer {
    /// Appends a piece. An empty one is no chunk.
    pub(super) fn push(&self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.queue.lock();
        state.bytes += bytes.len();
        state.pieces.push_back(bytes);
        wake(state, |state| state.reader.take());
    }

    /// Ends the body after the queued pieces. The first end stays.
    pub(super) fn end(&self, end: Result<(), Broken>) {
        let mut state = self.queue.lock();
        state.end.get_or_insert(end);
        wake(state, |state| state.reader.take());
    }

    /// Bytes queued.
    pub(super) fn unread(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Ready once the client has dropped the body.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.queue.lock();
        if state.gone {
            return Poll::Ready(());
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready once fewer bytes are queued than a connection has in flight.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let mut state = self.queue.lock();
        if state.gone {
            return Poll::Ready(Err(Gone));
        }
        if state.bytes < self.queue.capacity {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end(Err(Broken::Closed));
    }
}

/// Body of a response. Dropping it before its end closes its connection.
pub struct Body {
    queue: Arc<Queue>,
    connection: Option<Connection>,
}

impl Body {
    /// Keeps the connection open until the body is complete.
    pub(super) fn arrives_on(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    fn complete(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.complete();
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let mut state = self.queue.lock();
        if let Some(piece) = state.pieces.pop_front() {
            let was_full = state.bytes >= self.queue.capacity;
            state.bytes -= piece.len();
            wake(state, |state| if was_full { state.writer.take() } else { None });
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.end {
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Ok(())) => {
                drop(state);
                self.complete();
                Poll::Ready(None)
            }
            Some(Err(broken)) => {
                drop(state);
                self.connection = None;
                Poll::Ready(Some(Err(broken)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.queue.lock();
        state.pieces.is_empty() && state.end == Some(Ok(()))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.gone = true;
        let is_read = state.pieces.is_empty() && state.end == Some(Ok(()));
        state.pieces.clear();
        wake(state, |state| state.writer.take());
        if is_read {
            self.complete();
        }
    }
}

/// Wakes outside of the lock.
fn wake(mut state: MutexGuard<'_, State>, waker: impl FnOnce(&mut State) -> Option<Waker>) {
    let waker = waker(&mut state);
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
