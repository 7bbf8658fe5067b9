//! The right to the answer of one request: what its connection takes of what the server decided, and when there is more.
//!
//! It must not know how the answer leaves.

use std::sync::Arc;
use std::task::{Context, Poll};

use trace::fault::Ending;
use trace::record::StreamId;

use super::wire::{Flow, Outlet};
use super::{Answer, Edge, Head, Piece, Waiting};
use crate::server::Input;

/// The right to the answer of one request.
pub(crate) struct Ticket {
    edge: Edge,
    stream: StreamId,
    flow: Arc<Flow>,
    /// The answer was broken off on the server's behalf.
    cut: bool,
}

/// What of a body leaves next, as one write.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) piece: Piece,
    /// Bytes of its chunk that are out already.
    pub(crate) begun: usize,
    /// The clean end is all that follows: it may share the write.
    pub(crate) is_last: bool,
}

/// What stands next in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Data, or an ending that is carried out when all before it is flushed.
    Piece,
    /// The clean end, which may share a write.
    CleanEnd,
}

impl Ticket {
    /// To the answer of `stream`, which has room among those of `edge`.
    pub(super) fn new(edge: Edge, stream: StreamId, flow: Arc<Flow>) -> Self {
        Self {
            edge,
            stream,
            flow,
            cut: false,
        }
    }

    /// The connection the answer goes over.
    pub(crate) fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// The answer is broken off: its client takes nothing.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// The answer's head, or how the answer ends without one.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Ending>> {
        self.poll(cx, None, |answer| match answer.head.take() {
            Some(head) => Some(Ok(head)),
            None => match answer.pieces.take() {
                Some(Piece::End(how)) => Some(Err(how)),
                // A body without a head has no place to go.
                Some(Piece::Data(_)) | None => None,
            },
        })
    }

    /// The next piece of the body.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        self.poll_leaving(cx, None).map(|leaving| leaving.piece)
    }

    /// The next piece, and how it leaves. If there is none, the pieces to come may be written to `outlet` by whoever has
    /// them: nothing of this answer is on its way.
    pub(crate) fn poll_leaving(&mut self, cx: &mut Context<'_>, outlet: Option<Outlet>) -> Poll<Leaving> {
        let mut reached = false;
        let leaving = self.poll(cx, outlet, |answer| {
            // A request for the next piece confirms the ones before.
            reached = answer.fence.take_if(|left| *left == 0).is_some();
            let piece = answer.pieces.take()?;
            if let Some(left) = &mut answer.fence {
                *left -= 1;
            }
            Some(Leaving {
                piece,
                begun: std::mem::take(&mut answer.begun),
                is_last: answer.ends_cleanly_now(),
            })
        });
        if reached {
            self.edge.hand_in(|_, _| Input::Flushed(self.stream));
        }
        leaving
    }

    /// Waits until something stands next, and says what; takes nothing.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        self.poll(cx, None, |answer| match answer.pieces.front() {
            Some(Piece::End(Ending::Eof)) => Some(Next::CleanEnd),
            Some(Piece::Data(_) | Piece::End(_)) => Some(Next::Piece),
            // The server waits to be told that what was given is out.
            None => answer.fence.map(|_| Next::Piece),
        })
    }

    /// Is the clean end all that is left?
    pub(crate) fn ends_cleanly_now(&self) -> bool {
        let state = self.edge.lock();
        let answer = state.answers.get(&self.stream);
        answer.is_some_and(|answer| answer.ends_cleanly_now())
    }

    /// Is the end of the answer not decided yet?
    pub(crate) fn is_open_ended(&self) -> bool {
        let state = self.edge.lock();
        let last = state
            .answers
            .get(&self.stream)
            .and_then(|answer| answer.pieces.back());
        !matches!(last, Some(Piece::End(_)))
    }

    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        outlet: Option<Outlet>,
        take: impl FnOnce(&mut Answer) -> Option<T>,
    ) -> Poll<T> {
        let state = &mut *self.edge.lock();
        let answer = state
            .answers
            .get_mut(&self.stream)
            .expect("an answer leaves only when its ticket is dropped");
        let held = answer.pieces.held();
        if std::mem::take(&mut answer.goaway) {
            self.flow.goaway();
        }
        let taken = take(answer);
        state.held -= held - answer.pieces.held();
        answer.waiting = taken.is_none().then(|| Waiting {
            waker: cx.waker().clone(),
            outlet,
        });
        taken.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let answer = {
            let state = &mut *self.edge.lock();
            let answer = state.answers.remove(&self.stream);
            state.held -= answer.as_ref().map_or(0, |answer| answer.pieces.held());
            answer
        };
        if answer.is_some_and(|answer| !answer.over) {
            let cut = self.cut || self.flow.is_cut();
            self.edge.hand_in(|_, _| match cut {
                true => Input::CutOff(self.stream),
                false => Input::Abandoned(self.stream),
            });
        }
    }
}
