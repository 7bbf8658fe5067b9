//! The wrapper around a connection's bytes: knows when what was written is flushed, and carries out [`Ending`]s then.
//!
//! It must not know HTTP. The body of an answer arms an ending and waits; the HTTP machinery writes what it holds and
//! flushes; the flush is the moment at which nothing is left before the ending, and there it happens.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::fault::Ending;

/// The bytes of one connection: a socket, or one end of an in-memory pipe.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// From now on the peer reads what was already delivered, and then a reset. The transport is dropped after it.
    fn reset(&mut self);

    /// Shuts down what the bytes go over, with no word of farewell of any protocol in between (TLS's close_notify).
    fn poll_cut(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_mut().poll_shutdown(cx)
    }
}

impl Transport for TcpStream {
    /// A lingering time of zero turns the close into an RST (`socket(7)`, `SO_LINGER`). Bytes the peer's window had
    /// no room for are lost with it; bytes it already received stay readable on Linux.
    fn reset(&mut self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::warn!(%error, "the connection will end with a FIN instead of a RST");
        }
    }
}

impl<T: Transport> Transport for TlsStream<T> {
    fn reset(&mut self) {
        self.get_mut().0.reset();
    }

    fn poll_cut(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(TlsStream::get_mut(self.get_mut()).0).poll_cut(cx)
    }
}

/// What the body of an answer and the connection under it tell each other. Shared by both.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    state: Mutex<FlowState>,
}

#[derive(Debug, Default)]
struct FlowState {
    unflushed: bool,
    armed: Option<Ending>,
    waiting: Option<Waker>,
}

impl Flow {
    /// The body has given a piece to be written.
    pub(crate) fn gave(&self) {
        self.lock().unflushed = true;
    }

    /// Is the piece given last flushed? If not, the task is woken when it is.
    pub(crate) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.unflushed {
            state.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The connection ends so at the next flush.
    pub(crate) fn arm(&self, ending: Ending) {
        self.lock().armed = Some(ending);
    }

    /// Was the connection told to end?
    pub(crate) fn is_armed(&self) -> bool {
        self.lock().armed.is_some()
    }

    fn flushed(&self) -> Option<Ending> {
        let mut state = self.lock();
        state.unflushed = false;
        let waiting = state.waiting.take();
        let armed = state.armed;
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        armed
    }

    fn lock(&self) -> MutexGuard<'_, FlowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that can be ended in every way of [`Ending`].
#[derive(Debug)]
pub(crate) struct Wire<T> {
    transport: T,
    flow: Arc<Flow>,
}

impl<T> Wire<T> {
    pub(crate) fn new(transport: T, flow: Arc<Flow>) -> Self {
        Self { transport, flow }
    }
}

impl<T: Transport> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_read(cx, buf)
    }
}

impl<T: Transport> AsyncWrite for Wire<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.transport).poll_flush(cx))?;
        match self.flow.flushed() {
            None | Some(Ending::Eof | Ending::Stall) => return Poll::Ready(Ok(())),
            Some(Ending::Fin) => ready!(Pin::new(&mut self.transport).poll_shutdown(cx))?,
            Some(Ending::Rst) => self.transport.reset(),
        }
        // An error is what makes the HTTP machinery let go of the connection at once and write nothing more.
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "ended as the script says",
        )))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(cx)
    }
}
