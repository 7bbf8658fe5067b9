//! What the server decided for one request and its connection did not take yet. It must not know when it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::StreamId;

use super::pieces::Pieces;
use super::wire::{Flow, Outlet};
use crate::server::Output;

/// What the server decided for one request and its connection did not take yet.
pub(super) struct Answer {
    /// The connection it goes over.
    pub(super) flow: Arc<Flow>,
    pub(super) head: Option<Head>,
    pub(super) pieces: Pieces,
    /// Bytes of the first piece that are out already, as it leaves.
    pub(super) begun: usize,
    /// The server wants to know when so many pieces more are taken.
    pub(super) fence: Option<usize>,
    /// The server has ended it; a [`Ending::Stall`] is no end for the client.
    pub(super) over: bool,
    /// Its connection is to take no more requests.
    pub(super) goaway: bool,
    pub(super) waiting: Option<Waiting>,
}

/// The task that waits for more of an answer.
pub(super) struct Waiting {
    pub(super) waker: Waker,
    /// Where data may be written to as well, instead of waking anybody: nothing else is on its way there.
    pub(super) outlet: Option<Outlet>,
}

impl Answer {
    pub(super) fn new(flow: Arc<Flow>) -> Self {
        Self {
            flow,
            head: None,
            pieces: Pieces::default(),
            begun: 0,
            fence: None,
            over: false,
            goaway: false,
            waiting: None,
        }
    }

    /// Is the clean end all that is left?
    pub(super) fn ends_cleanly_now(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece::End(Ending::Eof)))
    }
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) length: Option<u64>,
}

/// A part of a body.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    End(Ending),
}

/// Lays out what was decided for the answer it belongs to, and wakes whom it concerns. Gives the answer instead if all
/// there is to do is to write to an idle connection.
pub(super) fn lay_out(
    answers: &mut BTreeMap<StreamId, Box<Answer>>,
    held: &mut usize,
    output: Output,
    woken: &mut Vec<Waker>,
) -> Option<StreamId> {
    let stream = match &output {
        Output::Head { stream, .. }
        | Output::Data { stream, .. }
        | Output::FlushBarrier { stream }
        | Output::Goaway { stream }
        | Output::End { stream, .. } => *stream,
    };
    // The client may have gone while the server was deciding.
    let answer = answers.get_mut(&stream)?;
    match output {
        Output::Head {
            status,
            headers,
            length,
            ..
        } => {
            answer.head = Some(Head {
                status,
                headers,
                length,
            })
        }
        Output::Data { bytes, .. } => {
            *held -= answer.pieces.held();
            answer.pieces.push(Piece::Data(bytes));
            *held += answer.pieces.held();
            if answer
                .waiting
                .as_ref()
                .is_some_and(|waiting| waiting.outlet.is_some())
            {
                return Some(stream);
            }
        }
        Output::FlushBarrier { .. } => answer.fence = Some(answer.pieces.len()),
        Output::Goaway { .. } => answer.goaway = true,
        Output::End { how, .. } => {
            answer.over = how != Ending::Stall;
            answer.pieces.push(Piece::End(how));
        }
    }
    woken.extend(answer.waiting.take().map(|waiting| waiting.waker));
    None
}
