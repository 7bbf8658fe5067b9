//! Handle of a connection on one response: takes queued pieces, and waits for more.

use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::upgrade::OnUpgrade;
use trace::fault::Ending;
use trace::record::StreamId;

use super::wire::{Flow, Outlet};
use super::{Edge, Head, PendingResponse, Piece, Waiting};
use crate::server::Input;

/// Handle on the response of one request.
pub(crate) struct Ticket {
    edge: Edge,
    stream: StreamId,
    flow: Arc<Flow>,
    /// The server aborted the response.
    cut: bool,
}

/// Next write of a body.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) piece: Piece,
    /// Bytes of its chunk that are already written.
    pub(crate) begun: usize,
    /// Whether only the clean end follows, which may share the write.
    pub(crate) is_last: bool,
}

/// Next part of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Data, or an ending to carry out once everything before it is flushed.
    Piece,
    /// Clean end, which may share a write.
    CleanEnd,
}

impl Ticket {
    /// Returns the handle on the response of `stream`.
    pub(super) fn new(edge: Edge, stream: StreamId, flow: Arc<Flow>) -> Self {
        Self {
            edge,
            stream,
            flow,
            cut: false,
        }
    }

    /// Connection of the response.
    pub(crate) fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }

    /// Aborts the response, because its client does not read.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Takes the connection to the upstream of an upgraded response.
    pub(crate) fn take_tunnel(&mut self) -> Option<OnUpgrade> {
        let mut state = self.edge.lock();
        let answer = state.answers.get_mut(&self.stream)?;
        answer.forwarding.as_mut()?.take_tunnel()
    }

    /// Waits for the head, or for the end of a response without one.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Ending>> {
        self.poll(cx, None, |answer| match answer.head.take() {
            Some(head) => Some(Ok(head)),
            None => match answer.pieces.take() {
                Some(Piece::End(how)) => Some(Err(how)),
                // A body without a head cannot be sent.
                Some(Piece::Data(_)) | None => None,
            },
        })
    }

    /// Takes the next piece of the body.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Piece> {
        self.poll_leaving(cx, None).map(|leaving| leaving.piece)
    }

    /// Takes the next piece. If there is none, later pieces may be written to `outlet` directly: nothing of this response is in
    /// flight.
    pub(crate) fn poll_leaving(&mut self, cx: &mut Context<'_>, outlet: Option<Outlet>) -> Poll<Leaving> {
        let mut reached = false;
        let leaving = self.poll(cx, outlet, |answer| {
            // Taking the next piece confirms the ones before.
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

    /// Waits for the next part, and returns its kind without taking it.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        self.poll(cx, None, |answer| match answer.pieces.front() {
            Some(Piece::End(Ending::Eof)) => Some(Next::CleanEnd),
            Some(Piece::Data(_) | Piece::End(_)) => Some(Next::Piece),
            // The server waits for the confirmation of the pieces before.
            None => answer.fence.map(|_| Next::Piece),
        })
    }

    /// Whether only the clean end is left.
    pub(crate) fn ends_cleanly_now(&self) -> bool {
        let state = self.edge.lock();
        let answer = state.answers.get(&self.stream);
        answer.is_some_and(|answer| answer.ends_cleanly_now())
    }

    /// Whether the end of the response is not decided yet.
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
        take: impl FnOnce(&mut PendingResponse) -> Option<T>,
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
            let cut = self.cut || self.flow.is_cut() || self.flow.is_closing();
            self.edge.hand_in(|_, _| match cut {
                true => Input::CutOff(self.stream),
                false => Input::Abandoned(self.stream),
            });
        }
    }
}
