//! The wrapper around a connection's bytes: knows when what was written is flushed, and carries out [`Ending`]s then.
//!
//! It must not know HTTP. The body of an answer arms an ending and waits; the HTTP machinery writes what it holds and
//! flushes; the flush is the moment at which nothing is left before the ending, and there it happens.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use trace::fault::Ending;

use super::deadline::Deadline;

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

/// The way out of a connection.
pub(crate) type Outlet = Arc<Mutex<dyn Transport>>;

/// Bytes that are read at a time of what a peer says before it is its turn.
const READ_AHEAD: usize = 512;

/// Bytes that are kept of it. Who says more is not listened to: its connection ends.
const READ_AHEAD_MAX: usize = 16 * 1024;

/// How long a peer that still sends is read on after the last word was said to it, so that it gets to read that: closing
/// on unread bytes would be a reset (Go `net/http`, `rstAvoidanceDelay`).
const LINGER: Duration = Duration::from_secs(1);

/// State shared by the answers of a connection, its byte stream, and the task that drives it.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    state: Mutex<FlowState>,
    /// Bytes were offered to the transport since it was flushed last.
    dirty: AtomicBool,
    /// Bytes came in since [`Flow::take_heard`] was asked last.
    heard: AtomicBool,
    /// No more requests are to be taken.
    goaway: AtomicBool,
    /// A request is here whose answer is not over (HTTP/1.1).
    serving: AtomicBool,
    /// A request came since [`Flow::take_asked`] was asked last.
    asked: AtomicBool,
    /// Bytes the transport took.
    written: AtomicU64,
    /// The connection is to be broken off.
    cut: AtomicBool,
    cutter: AtomicWaker,
    /// What the peer still sends is to be read before the connection is gone.
    lingers: AtomicBool,
}

#[derive(Debug, Default)]
struct FlowState {
    /// A piece was given that is not known to be flushed.
    unflushed: bool,
    /// How the connection is to end, once nothing is left before that.
    armed: Option<Ending>,
    /// The connection ends so at this very flush.
    due: bool,
    waiting: Vec<Waker>,
}

impl Flow {
    /// A body has given a piece to be written.
    pub(crate) fn gave(&self) {
        self.lock().unflushed = true;
    }

    /// Is the piece given last still on its way?
    pub(crate) fn is_unflushed(&self) -> bool {
        self.lock().unflushed
    }

    /// Is the piece given last flushed? If not, the task is woken when it is.
    pub(crate) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.unflushed {
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The connection ends so once all that was given is flushed. What is armed first stands.
    pub(crate) fn arm(&self, ending: Ending) {
        self.lock().armed.get_or_insert(ending);
    }

    /// Was the connection told to end?
    pub(crate) fn is_armed(&self) -> bool {
        self.lock().armed.is_some()
    }

    /// All that was given is flushed. How the connection is to end, if it is, and was not told so before.
    pub(crate) fn settle(&self) -> Option<Ending> {
        let mut state = self.lock();
        state.unflushed = false;
        let waiting = std::mem::take(&mut state.waiting);
        let armed = state.armed.filter(|_| !state.due);
        state.due = armed.is_some() || state.due;
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        armed
    }

    /// Is there something offered that is not flushed?
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// No more requests are to be taken on this connection.
    pub(crate) fn goaway(&self) {
        self.goaway.store(true, Ordering::Relaxed);
    }

    /// Are no more requests to be taken? Said once.
    pub(crate) fn take_goaway(&self) -> bool {
        self.goaway.load(Ordering::Relaxed) && self.goaway.swap(false, Ordering::Relaxed)
    }

    /// Did bytes come in since this was asked last?
    pub(crate) fn take_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed) && self.heard.swap(false, Ordering::Relaxed)
    }

    /// A request has come, or its answer is over: what was heard until now was about it.
    pub(crate) fn serves(&self, serving: bool) {
        self.serving.store(serving, Ordering::Relaxed);
        self.heard.store(false, Ordering::Relaxed);
        self.asked.fetch_or(serving, Ordering::Relaxed);
    }

    /// Did a request come since this was asked last?
    pub(crate) fn take_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed)
    }

    /// Is there a request whose answer is not over?
    pub(crate) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Relaxed)
    }

    /// The connection is to be broken off: too much is held for it, or its peer takes nothing.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.cutter.wake();
    }

    /// Is it to be broken off?
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Ready once it is.
    pub(crate) fn poll_cut(&self, cx: &Context<'_>) -> Poll<()> {
        self.cutter.register(cx.waker());
        if self.is_cut() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Its last answer is said before the peer has said all.
    pub(crate) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    fn due(&self) -> Option<Ending> {
        let state = self.lock();
        state.armed.filter(|_| state.due)
    }

    fn lock(&self) -> MutexGuard<'_, FlowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Patience with a peer that does not take what is written to it.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    deadline: Deadline,
    written: u64,
}

impl Unread {
    /// Ready once nothing was taken for `patience` though there was something to take; the connection is cut then.
    pub(crate) fn poll(&mut self, flow: &Flow, patience: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let written = flow.written.load(Ordering::Relaxed);
        if !flow.is_dirty() || written != self.written {
            self.written = written;
            self.deadline.clear();
        }
        if flow.is_dirty() && !self.deadline.is_set() {
            self.deadline.set(patience);
        }
        ready!(self.deadline.poll_passed(cx));
        flow.cut();
        Poll::Ready(())
    }
}

/// Who knows when all that an answer gave is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settles {
    /// Every flush: what is written is written through (HTTP/1.1).
    AtEveryFlush,
    /// The task that drives the connection: a flush may come between two pieces (HTTP/2).
    WhenToldSo,
}

/// A connection that can be ended in every way of [`Ending`].
#[derive(Debug)]
pub(crate) struct Wire<T> {
    /// Shared with the task that delivers to it while it is idle.
    transport: Arc<Mutex<T>>,
    /// What was read before it was known what to make of it.
    read_before: Bytes,
    flow: Arc<Flow>,
    settles: Settles,
    /// Set while a peer is read on after the end.
    lingering: Deadline,
}

impl<T> Wire<T> {
    pub(crate) fn new(transport: T, read_before: Bytes, flow: Arc<Flow>, settles: Settles) -> Self {
        Self {
            transport: Arc::new(Mutex::new(transport)),
            read_before,
            flow,
            settles,
            lingering: Deadline::default(),
        }
    }

    /// These bytes are read again, before all others.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.read_before.is_empty(), "what was read before was read on");
        // Even of nothing, they would hold the buffer they are in.
        self.read_before = if bytes.is_empty() { Bytes::new() } else { bytes };
    }
}

impl<T: Transport> Wire<T> {
    /// The outlet, for writes while the connection is idle.
    pub(crate) fn outlet(&self) -> Outlet {
        self.transport.clone()
    }

    fn transport(&self) -> MutexGuard<'_, T> {
        self.transport.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready once the peer is gone, or says too much before it is its turn. What it says is kept for who reads next.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut space = [0; READ_AHEAD];
            let mut read = ReadBuf::new(&mut space);
            let result = ready!(Pin::new(&mut *self.transport()).poll_read(cx, &mut read));
            let said = self.read_before.len() + read.filled().len();
            if result.is_err() || read.filled().is_empty() || said > READ_AHEAD_MAX {
                return Poll::Ready(());
            }
            self.read_before = match self.read_before.is_empty() {
                true => Bytes::copy_from_slice(read.filled()),
                false => [&self.read_before, read.filled()].concat().into(),
            };
        }
    }

    /// Reads what the peer still sends, for a while, and throws it away.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.lingering.is_set() {
            self.lingering.set(LINGER);
        }
        if self.lingering.poll_passed(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let mut space = [0; READ_AHEAD];
            let mut read = ReadBuf::new(&mut space);
            let result = ready!(Pin::new(&mut *self.transport()).poll_read(cx, &mut read));
            if result.is_err() || read.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl<T: Transport> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.read_before.is_empty() {
            let length = self.read_before.len().min(buf.remaining());
            buf.put_slice(&self.read_before.split_to(length));
            if self.read_before.is_empty() {
                // Even of nothing, it would hold the buffer for as long as the connection lives.
                self.read_before = Bytes::new();
            }
            self.flow.heard.store(true, Ordering::Relaxed);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut *self.transport()).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.flow.heard.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Transport> AsyncWrite for Wire<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.flow.dirty.store(true, Ordering::Relaxed);
        let written = ready!(Pin::new(&mut *self.transport()).poll_write(cx, buf))?;
        self.flow.written.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flow.dirty.store(true, Ordering::Relaxed);
        let written = ready!(Pin::new(&mut *self.transport()).poll_write_vectored(cx, bufs))?;
        self.flow.written.fetch_add(written as u64, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.transport().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self.transport()).poll_flush(cx))?;
        self.flow.dirty.store(false, Ordering::Relaxed);
        if self.settles == Settles::AtEveryFlush {
            self.flow.settle();
        }
        match self.flow.due() {
            None | Some(Ending::Eof | Ending::Stall) => return Poll::Ready(Ok(())),
            // Its last frame says so, and then it closes by itself.
            Some(Ending::Goaway(_)) if self.settles == Settles::WhenToldSo => return Poll::Ready(Ok(())),
            Some(Ending::Fin | Ending::Goaway(_)) => {
                ready!(Pin::new(&mut *self.transport()).poll_shutdown(cx))?
            }
            Some(Ending::NoCloseNotify) => ready!(Pin::new(&mut *self.transport()).poll_cut(cx))?,
            Some(Ending::Rst | Ending::RstStream(_)) => self.transport().reset(),
        }
        // An error is what makes the HTTP machinery let go of the connection at once and write nothing more.
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "ended as the script says",
        )))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Once it is shut down there is nothing more to shut.
        if !self.lingering.is_set() {
            ready!(Pin::new(&mut *self.transport()).poll_shutdown(cx))?;
        }
        if self.flow.lingers.load(Ordering::Relaxed) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
