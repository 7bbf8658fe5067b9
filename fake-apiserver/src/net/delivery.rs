//! Writes to idle connections in a row, without waking their tasks: an event may have thousands of watchers, and waking a task
//! for each costs more than the write.
//!
//! A connection that does not accept the bytes at once is left to its task.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use trace::record::StreamId;

use super::streamed::{END_OF_CHUNK, begin_chunk};
use super::wire::{Outlet, Transport};
use super::{Edge, PendingResponse, Piece, Waiting};

/// Connections written to before yielding: fewer than tokio's budget of a task.
const AT_A_TIME: usize = 64;

/// Longest piece that is copied into one buffer with its framing, in bytes.
const COPIED_MAX: usize = 4 * 1024;

/// Connections with pending data.
#[derive(Default)]
pub(super) struct Deliveries {
    due: VecDeque<StreamId>,
    /// Whether delivery runs.
    under_way: bool,
}

impl Deliveries {
    pub(super) fn push(&mut self, stream: StreamId) {
        self.due.push_back(stream);
    }

    /// Whether delivery must be started by the caller.
    pub(super) fn begin(&mut self) -> bool {
        !self.due.is_empty() && !std::mem::replace(&mut self.under_way, true)
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    fn next(&mut self) -> Option<StreamId> {
        let next = self.due.pop_front();
        self.under_way = next.is_some();
        next
    }
}

impl Edge {
    /// Writes pending data to idle connections until there is none.
    pub(super) async fn deliver(self) {
        let mut chunk = Chunk::default();
        loop {
            for _ in 0..AT_A_TIME {
                if !self.deliver_one(&mut chunk) {
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Returns false if nothing is pending.
    fn deliver_one(&self, chunk: &mut Chunk) -> bool {
        let mut state = self.lock();
        let Some(stream) = state.deliveries.next() else {
            return false;
        };
        // It may be closed, or its task may have been faster.
        let left = state.answers.get_mut(&stream).map(|answer| {
            let before = answer.pieces.held();
            (answer.deliver(chunk), before - answer.pieces.held())
        });
        let (left, freed) = left.unwrap_or_default();
        state.held -= freed;
        drop(state);
        if let Some(left) = left {
            left.wake();
        }
        true
    }
}

impl PendingResponse {
    /// Writes the data of one connection, piece by piece. Returns the waker of its task if data is left.
    fn deliver(&mut self, chunk: &mut Chunk) -> Option<Waker> {
        while let Some(Waiting {
            outlet: Some(outlet), ..
        }) = &self.waiting
            && let Some(Piece::Data(data)) = self.pieces.front()
        {
            let parts = chunk.of(data);
            let length: usize = parts.iter().map(|part| part.len()).sum();
            let (written, flushed) = write(outlet, parts);
            if written < length || !flushed {
                self.begun = written;
                return self.waiting.take().map(|waiting| waiting.waker);
            }
            self.pieces.written();
        }
        None
    }
}

/// Writes without waiting. Returns the bytes written, and whether they are flushed. The connection's task meets errors again.
fn write(outlet: &Outlet, mut parts: [&[u8]; 3]) -> (usize, bool) {
    let mut outlet = outlet.lock().unwrap_or_else(PoisonError::into_inner);
    let outlet: &mut dyn Transport = &mut *outlet;
    let mut outlet = Pin::new(outlet);
    let mut cx = Context::from_waker(Waker::noop());
    let mut written = 0;
    while parts.iter().any(|part| !part.is_empty()) {
        match outlet
            .as_mut()
            .poll_write_vectored(&mut cx, &parts.map(IoSlice::new))
        {
            Poll::Ready(Ok(more)) if more > 0 => {
                written += more;
                advance(&mut parts, more);
            }
            Poll::Ready(Ok(_) | Err(_)) | Poll::Pending => return (written, false),
        }
    }
    let flushed = matches!(outlet.poll_flush(&mut cx), Poll::Ready(Ok(())));
    (written, flushed)
}

/// Removes written bytes.
fn advance(parts: &mut [&[u8]; 3], mut written: usize) {
    for part in parts {
        let (taken, left) = part.split_at(written.min(part.len()));
        written -= taken.len();
        *part = left;
    }
}

/// An encoded piece, kept for the next connection: most send the same bytes.
#[derive(Default)]
struct Chunk {
    of: Bytes,
    framed: Vec<u8>,
}

impl Chunk {
    /// Returns the piece as a chunk, in parts that are written one after the other. The bytes of a long one are not copied.
    fn of<'a>(&'a mut self, data: &'a Bytes) -> [&'a [u8]; 3] {
        if data.len() > COPIED_MAX {
            self.of = data.clone();
            self.framed.clear();
            begin_chunk(&mut self.framed, data.len());
            return [&self.framed, data, END_OF_CHUNK];
        }
        let known = self.of.as_ptr() == data.as_ptr() && self.of.len() == data.len();
        if !known {
            self.framed.clear();
            // An empty chunk would end the body.
            if !data.is_empty() {
                begin_chunk(&mut self.framed, data.len());
                self.framed.extend_from_slice(data);
                self.framed.extend_from_slice(END_OF_CHUNK);
            }
            self.of = data.clone();
        }
        [&self.framed, b"", b""]
    }
}
