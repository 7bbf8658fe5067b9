//! Wrapper around the byte stream of a connection: tracks flushes, and carries out [`Ending`]s.
//!
//! No HTTP. The body of a response arms an ending and waits; the HTTP library writes its buffers and flushes; at that flush
//! nothing is left before the ending, and it is carried out.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// Byte stream of a connection: a socket, or one end of an in-memory pipe.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Resets the connection: the peer reads what was already delivered, then a reset. The transport is dropped afterwards.
    fn reset(&mut self);

    /// Shuts down the underlying transport, without the close of a protocol in between (TLS close_notify).
    fn poll_cut(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_mut().poll_shutdown(cx)
    }
}

impl Transport for TcpStream {
    /// SO_LINGER with zero turns close into RST (`socket(7)`). Bytes outside of the peer's window are lost; bytes that it has
    /// received stay readable on Linux.
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

/// Outlet of a connection.
pub(crate) type Outlet = Arc<Mutex<dyn Transport>>;

/// Bytes per read of pipelined input.
const READ_AHEAD: usize = 512;

/// Most bytes of pipelined input; a client that sends more is disconnected.
const READ_AHEAD_MAX: usize = 16 * 1024;

/// Time for which input is drained after the last response, because closing with unread bytes would reset the connection
/// before the client has read it (Go `net/http`, `rstAvoidanceDelay`).
const LINGER: Duration = Duration::from_secs(1);

/// State shared by the responses of a connection, its byte stream, and its task.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    state: Mutex<FlowState>,
    /// Bytes were written since the last flush.
    dirty: AtomicBool,
    /// Bytes were read since the last [`Flow::take_heard`].
    heard: AtomicBool,
    /// No more requests are accepted.
    goaway: AtomicBool,
    /// A request is open (HTTP/1.1).
    serving: AtomicBool,
    /// A request arrived since the last [`Flow::take_asked`].
    asked: AtomicBool,
    /// Bytes written to the transport.
    written: AtomicU64,
    /// The connection must be aborted.
    cut: AtomicBool,
    /// It must be closed once nothing is left to send.
    closing: AtomicBool,
    /// Its task, which waits for either.
    closer: AtomicWaker,
    /// Open responses of which nothing more is sent.
    stalled: AtomicUsize,
    /// Input must be drained before the connection is closed.
    lingers: AtomicBool,
}

#[derive(Debug, Default)]
struct FlowState {
    /// A piece is in flight.
    unflushed: bool,
    /// Armed ending of the connection.
    armed: Option<Ending>,
    /// Ending to carry out at this flush.
    due: bool,
    waiting: Vec<Waker>,
}

impl Flow {
    /// A piece was handed to the HTTP library.
    pub(crate) fn gave(&self) {
        self.lock().unflushed = true;
    }

    /// Whether the last piece is in flight.
    pub(crate) fn is_unflushed(&self) -> bool {
        self.lock().unflushed
    }

    /// Ready once the last piece is flushed.
    pub(crate) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.unflushed {
            state.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Arms an ending for when everything is flushed. The first one armed wins.
    pub(crate) fn arm(&self, ending: Ending) {
        self.lock().armed.get_or_insert(ending);
    }

    /// Whether an ending is armed.
    pub(crate) fn is_armed(&self) -> bool {
        self.lock().armed.is_some()
    }

    /// Everything was flushed. Returns the armed ending, once.
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

    /// Whether written bytes are not flushed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Accepts no more requests on this connection.
    pub(crate) fn goaway(&self) {
        self.goaway.store(true, Ordering::Relaxed);
    }

    /// Whether no more requests are accepted. True once.
    pub(crate) fn take_goaway(&self) -> bool {
        self.goaway.load(Ordering::Relaxed) && self.goaway.swap(false, Ordering::Relaxed)
    }

    /// Whether bytes were read since the last call.
    pub(crate) fn take_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed) && self.heard.swap(false, Ordering::Relaxed)
    }

    /// A request arrived, or its response ended: clears the bytes read until now.
    pub(crate) fn serves(&self, serving: bool) {
        self.serving.store(serving, Ordering::Relaxed);
        self.heard.store(false, Ordering::Relaxed);
        self.asked.fetch_or(serving, Ordering::Relaxed);
    }

    /// Whether a request arrived since the last call.
    pub(crate) fn take_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed)
    }

    /// Whether a request is open.
    pub(crate) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::Relaxed)
    }

    /// Aborts the connection: too much is buffered for it, or its peer does not read.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
        self.closer.wake();
    }

    /// Closes the connection once everything is sent. Open responses have stalled or end by themselves.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.closer.wake();
    }

    /// Whether it closes once everything is sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether the server ends the connection: with an armed ending, after everything is sent, or at once.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_armed() || self.is_closing() || self.is_cut()
    }

    /// A response stalled: nothing more of it is sent.
    pub(crate) fn stalls(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    /// The client gave up a response that had stalled.
    pub(crate) fn gave_up_stalled(&self) {
        self.stalled.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it must be aborted.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Ready once the connection must be dropped: it is aborted, or it closes and nothing is left to send. `open`: number of
    /// its responses. Call after everything that can be written was.
    pub(crate) fn poll_over(&self, open: usize, cx: &Context<'_>) -> Poll<()> {
        self.closer.register(cx.waker());
        let is_drained = || open == self.stalled.load(Ordering::Relaxed) && !self.is_dirty();
        if self.is_cut() || (self.is_closing() && is_drained()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Drains input at the end: the last response is sent before the request was read completely.
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

/// Timeout of a peer that does not read.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    deadline: Deadline,
    written: u64,
}

impl Unread {
    /// Ready once no byte was accepted for `patience` although bytes were pending; the connection is then aborted.
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

/// What confirms that the bytes of a response were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settles {
    /// Every flush (HTTP/1.1).
    AtEveryFlush,
    /// The task of the connection: a flush may come between two pieces (HTTP/2).
    WhenToldSo,
}

/// A connection that supports every [`Ending`].
#[derive(Debug)]
pub(crate) struct Wire<T> {
    /// Shared with `delivery`, which writes to it while it is idle.
    transport: Arc<Mutex<T>>,
    /// Bytes read during protocol detection, or ahead of their turn.
    read_before: Bytes,
    flow: Arc<Flow>,
    settles: Settles,
    /// Set while input is drained after the end.
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

    /// Puts bytes back, to be read before all others.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        debug_assert!(self.read_before.is_empty(), "what was read before was read on");
        // Even an empty slice keeps its buffer alive.
        self.read_before = if bytes.is_empty() { Bytes::new() } else { bytes };
    }
}

impl<T: Transport> Wire<T> {
    /// Returns the outlet, for writes while the connection is idle.
    pub(crate) fn outlet(&self) -> Outlet {
        self.transport.clone()
    }

    fn transport(&self) -> MutexGuard<'_, T> {
        self.transport.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready once the peer disconnects, or sends too much ahead of its turn. Input is kept for the next read.
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

    /// Drains input for a while.
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
                // Even an empty slice keeps its buffer alive for as long as the connection.
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
            // Its last frame announces the end, and then it closes by itself.
            Some(Ending::Goaway(_)) if self.settles == Settles::WhenToldSo => return Poll::Ready(Ok(())),
            Some(Ending::Fin | Ending::Goaway(_)) => {
                ready!(Pin::new(&mut *self.transport()).poll_shutdown(cx))?
            }
            Some(Ending::NoCloseNotify) => ready!(Pin::new(&mut *self.transport()).poll_cut(cx))?,
            Some(Ending::Rst | Ending::RstStream(_)) => self.transport().reset(),
        }
        // An error makes the HTTP library drop the connection at once and write nothing more.
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "ended as the script says",
        )))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It is already shut down.
        if !self.lingering.is_set() {
            ready!(Pin::new(&mut *self.transport()).poll_shutdown(cx))?;
        }
        if self.flow.lingers.load(Ordering::Relaxed) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
