//! Queue between server and connection of one response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::StreamId;

use super::pieces::Pieces;
use super::upstream::Forwarding;
use super::wire::{Flow, Outlet};
use crate::api::Header;
use crate::server::Output;

/// Outputs for one response that its connection has not taken yet.
pub(super) struct PendingResponse {
    /// Connection.
    pub(super) flow: Arc<Flow>,
    pub(super) head: Option<Head>,
    pub(super) pieces: Pieces,
    /// Bytes of the encoded first piece that are already written.
    pub(super) begun: usize,
    /// Pieces before the flush barrier.
    pub(super) fence: Option<usize>,
    /// End of the response; [`Ending::Stall`] is none for the client.
    pub(super) over: bool,
    /// Whether its connection must accept no more requests.
    pub(super) goaway: bool,
    pub(super) waiting: Option<Waiting>,
    /// The request to the upstream that it waits for.
    pub(super) forwarding: Option<Forwarding>,
}

/// A task that waits for more of a response.
pub(super) struct Waiting {
    pub(super) waker: Waker,
    /// Outlet to write data to without waking the task; set while nothing is in flight.
    pub(super) outlet: Option<Outlet>,
}

impl PendingResponse {
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
            forwarding: None,
        }
    }

    /// Whether only the clean end is left.
    pub(super) fn ends_cleanly_now(&self) -> bool {
        matches!(self.pieces.front(), Some(Piece::End(Ending::Eof)))
    }
}

/// Head of a response.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<Header>,
    pub(crate) length: Option<u64>,
}

/// Part of a body.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    End(Ending),
}

/// Queues an output for its response, and wakes its task. Returns the response instead if it only needs a write to an idle
/// connection.
pub(super) fn lay_out(
    answers: &mut BTreeMap<StreamId, Box<PendingResponse>>,
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
        // Of no response.
        Output::Call { .. }
        | Output::Close { .. }
        | Output::Upstream { .. }
        | Output::UpstreamWrite { .. } => return None,
    };
    // The client may have disconnected meanwhile.
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
            answer.forwarding = None;
            answer.over = how != Ending::Stall;
            answer.pieces.push(Piece::End(how));
        }
        Output::Call { .. }
        | Output::Close { .. }
        | Output::Upstream { .. }
        | Output::UpstreamWrite { .. } => {}
    }
    woken.extend(answer.waiting.take().map(|waiting| waiting.waker));
    None
}
