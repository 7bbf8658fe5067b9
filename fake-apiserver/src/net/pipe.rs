//! In-memory byte pipes that behave like a TCP connection: bounded, ordered, and ended by FIN or RST.
//!
//! Every wake-up stays inside the runtime, so that a paused clock never skips bytes in flight. One write is one read, unless
//! the reader's buffer is smaller: the reader sees where a response was cut.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{ConnectionSettings, Edge, Transport, serve_connection};

/// Bytes in flight per direction before a writer waits (about as a loopback socket).
pub(crate) const CAPACITY_BYTES: usize = 256 * 1024;

/// One end of a pipe. Dropping it sends FIN.
#[derive(Debug)]
pub struct Pipe {
    incoming: Arc<Lane>,
    outgoing: Arc<Lane>,
}

/// Returns two connected ends.
pub fn pipe() -> (Pipe, Pipe) {
    let (there, back) = (Arc::new(Lane::default()), Arc::new(Lane::default()));
    (
        Pipe {
            incoming: back.clone(),
            outgoing: there.clone(),
        },
        Pipe {
            incoming: there,
            outgoing: back,
        },
    )
}

/// Returns the near end of a connection that `edge` serves in a task of the current runtime, until it is closed or `until` completes.
///
/// # Errors
/// `ConnectionRefused`: the server accepts none now.
pub fn connect(
    edge: &Edge,
    settings: ConnectionSettings,
    until: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Pipe> {
    let conn = edge.accept().ok_or(io::ErrorKind::ConnectionRefused)?;
    let (near, far) = pipe();
    let serving = serve_connection(edge.clone(), conn, far, settings, std::future::pending());
    tokio::spawn(async move {
        tokio::select! {
            () = serving => {}
            () = until => {}
        }
    });
    Ok(near)
}

/// One direction.
#[derive(Debug, Default)]
struct Lane {
    state: Mutex<LaneState>,
}

#[derive(Debug, Default)]
struct LaneState {
    /// Writes not completely read, and the bytes read of the first.
    writes: VecDeque<Box<[u8]>>,
    first_read: usize,
    bytes: usize,
    end: End,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// State of a direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// FIN after the bytes in flight.
    Finished,
    /// RST after the bytes in flight; writing fails at once.
    Reset,
    /// The reader closed: writing fails.
    Deaf,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reset is never replaced by a weaker state.
    fn end(&self, how: End) {
        let mut state = self.lock();
        if state.end != End::Reset {
            state.end = how;
        }
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Transport for Pipe {
    fn reset(&mut self) {
        self.outgoing.end(End::Reset);
        self.incoming.end(End::Reset);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.outgoing.end(End::Finished);
        self.incoming.end(End::Deaf);
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut guard = self.incoming.lock();
        let state = &mut *guard;
        let Some(first) = state.writes.front() else {
            return match state.end {
                End::Finished => Poll::Ready(Ok(())),
                End::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                End::Open | End::Deaf => {
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            };
        };
        let unread = &first[state.first_read..];
        let taken = unread.len().min(buf.remaining());
        buf.put_slice(&unread[..taken]);
        if taken == unread.len() {
            state.writes.pop_front();
            state.first_read = 0;
        } else {
            state.first_read += taken;
        }
        state.bytes -= taken;
        let writer = state.writer.take();
        drop(guard);
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.outgoing.lock();
        match state.end {
            End::Open => {}
            End::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            End::Finished | End::Deaf => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
        let offered = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if offered == 0 {
            return Poll::Ready(Ok(0));
        }
        let room = CAPACITY_BYTES - state.bytes;
        if room == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let taken = offered.min(room);
        let mut write = Vec::with_capacity(taken);
        for buf in bufs {
            let part = buf.len().min(taken - write.len());
            write.extend_from_slice(&buf[..part]);
        }
        state.writes.push_back(write.into_boxed_slice());
        state.bytes += taken;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.end(End::Finished);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn separate_writes_are_separate_reads() {
        let (mut near, mut far) = pipe();
        let (head, tail) = "sn\u{f6}w".as_bytes().split_at(3);
        near.write_all(head).await.unwrap();
        near.write_all(tail).await.unwrap();
        let mut buf = [0; 64];
        assert_eq!(far.read(&mut buf).await.unwrap(), 3);
        assert_eq!(far.read(&mut buf).await.unwrap(), 2);
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_small_buffer_reads_a_write_in_parts() {
        let (mut near, mut far) = pipe();
        near.write_all(b"abcde").await.unwrap();
        let mut buf = [0; 3];
        assert_eq!(far.read(&mut buf).await.unwrap(), 3);
        assert_eq!(&buf, b"abc");
        assert_eq!(far.read(&mut buf).await.unwrap(), 2);
        assert_eq!(&buf[..2], b"de");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_reset_comes_after_what_was_delivered() {
        let (mut near, mut far) = pipe();
        near.write_all(b"last").await.unwrap();
        near.reset();
        drop(near);
        let mut read = Vec::new();
        let error = far.read_to_end(&mut read).await.unwrap_err();
        assert_eq!(
            (error.kind(), read.as_slice()),
            (io::ErrorKind::ConnectionReset, &b"last"[..])
        );
        assert_eq!(
            far.write(b"x").await.unwrap_err().kind(),
            io::ErrorKind::ConnectionReset
        );
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn dropping_an_end_is_a_fin_to_the_other() {
        let (mut near, mut far) = pipe();
        near.write_all(b"last").await.unwrap();
        drop(near);
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"last");
        assert_eq!(
            far.write(b"x").await.unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_writer_waits_for_a_reader_that_is_behind() {
        let (mut near, mut far) = pipe();
        let much = vec![7; CAPACITY_BYTES + 1];
        let wrote = tokio::spawn(async move {
            near.write_all(&much).await.unwrap();
            near
        });
        tokio::task::yield_now().await;
        assert!(!wrote.is_finished());
        let mut read = vec![0; CAPACITY_BYTES + 1];
        far.read_exact(&mut read).await.unwrap();
        wrote.await.unwrap();
    }
}
