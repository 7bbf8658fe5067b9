//! Queue of a response: its pieces in order, and how the response ends after them.
//!
//! When pieces are sent and where they are cut is decided in `shape.rs`.

use std::collections::VecDeque;

use bytes::Bytes;
use trace::fault::Ending;
use trace::record::{Frame, StreamId, What};

/// Queue of a response.
#[derive(Debug, Default)]
pub(super) struct Body {
    pieces: VecDeque<Piece>,
    /// Whether it is one piece of known length.
    pub(super) whole: bool,
    /// Whether Content-Length is sent even if the body is long.
    pub(super) announced: bool,
    /// Content-Length of a body that comes in parts.
    pub(super) promised: Option<u64>,
    /// Bytes of its parts so far.
    parts: u64,
    /// End after the queue; `None`: more may follow.
    pub(super) ending: Option<Ending>,
}

/// Piece of a body.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// Bytes sent.
    pub(super) sent: usize,
    meaning: Meaning,
}

/// Kind of a piece, for the trace.
#[derive(Debug)]
enum Meaning {
    /// One line of a watch stream.
    Line(Frame),
    /// A whole body, or the end of one; with the record to append once it is sent.
    Whole(What),
    /// A part of a body that is not the last one.
    Part,
    /// The last part of a body, with the bytes before it and the record to append once it is sent.
    LastPart(u64, What),
}

impl Piece {
    /// Returns the unsent bytes.
    pub(super) fn left(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Whether it is a line of a watch stream.
    pub(super) fn is_line(&self) -> bool {
        matches!(self.meaning, Meaning::Line(_))
    }

    /// Whether it is a complete, unscripted line.
    pub(super) fn may_be_joined(&self) -> bool {
        self.sent == 0 && matches!(&self.meaning, Meaning::Line(frame) if !frame.scripted)
    }

    /// Returns the record of the piece, once no more of it is sent.
    pub(super) fn into_record(self, stream: StreamId) -> Option<What> {
        let (sent, bytes) = (self.sent as u64, self.bytes.len() as u64);
        match self.meaning {
            Meaning::Part => None,
            Meaning::Line(_) if sent == 0 => None,
            Meaning::Line(frame) => Some(What::Frame {
                stream,
                frame: Frame { sent, ..frame },
            }),
            Meaning::Whole(what) if sent == bytes => Some(what),
            Meaning::Whole(_) => Some(What::Torn { stream, sent, bytes }),
            Meaning::LastPart(_, what) if sent == bytes => Some(what),
            Meaning::LastPart(before, _) => Some(What::Torn {
                stream,
                sent: before + sent,
                bytes: before + bytes,
            }),
        }
    }
}

impl Body {
    /// Queues a whole body and a clean end.
    pub(super) fn set(&mut self, bytes: Bytes, record: What) {
        self.whole = true;
        self.push(bytes, Meaning::Whole(record));
        self.ending.get_or_insert(Ending::Eof);
    }

    /// Queues a part of a body, not the last one.
    pub(super) fn push_part(&mut self, bytes: Bytes) {
        self.parts += bytes.len() as u64;
        self.push(bytes, Meaning::Part);
    }

    /// Queues the end of a body sent in parts.
    pub(super) fn end_parts(&mut self, record: What) {
        match self.pieces.back_mut() {
            // A client may leave with the last byte: the record belongs to that, not to what follows it.
            Some(last) if matches!(last.meaning, Meaning::Part) => {
                let before = self.parts - last.bytes.len() as u64;
                last.meaning = Meaning::LastPart(before, record);
            }
            Some(_) | None => self.push(Bytes::new(), Meaning::Whole(record)),
        }
        self.ending.get_or_insert(Ending::Eof);
    }

    /// Queues one line of a watch stream.
    pub(super) fn push_line(&mut self, bytes: Bytes, frame: Frame) {
        self.push(bytes, Meaning::Line(frame));
    }

    /// Adds bytes to the last line, or sends them after it.
    pub(super) fn lengthen(&mut self, bytes: &[u8]) {
        let last = self.pieces.back_mut();
        if let Some(Piece {
            bytes: line,
            meaning: Meaning::Line(frame),
            ..
        }) = last
        {
            frame.bytes += bytes.len() as u64;
            *line = [line, bytes].concat().into();
        } else {
            self.push_part(Bytes::copy_from_slice(bytes));
        }
    }

    /// Drops the queue and ends at once.
    pub(super) fn end_without(&mut self, ending: Ending) {
        self.pieces.clear();
        self.whole = false;
        self.ending = Some(ending);
    }

    /// Drops the queue, and the end after it.
    pub(super) fn forget(&mut self) {
        self.pieces.clear();
        self.whole = false;
        self.promised = None;
        self.ending = None;
    }

    /// Number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the first piece.
    pub(super) fn front(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// Unsent bytes.
    pub(super) fn left(&self) -> usize {
        self.pieces.iter().map(|piece| piece.left().len()).sum()
    }

    /// Whether the first two pieces can share a write.
    pub(super) fn may_join(&self) -> bool {
        let joinable = self.pieces.iter().take(2).filter(|piece| piece.may_be_joined());
        joinable.count() == 2
    }

    /// Takes `count` bytes off the first piece; also returns the piece if these were its last bytes.
    pub(super) fn take(&mut self, count: usize) -> (Bytes, Option<Piece>) {
        let Some(piece) = self.pieces.front_mut() else {
            return (Bytes::new(), None);
        };
        let bytes = piece.bytes.slice(piece.sent..piece.sent + count);
        piece.sent += count;
        let is_out = piece.sent == piece.bytes.len();
        let piece = if is_out { self.pieces.pop_front() } else { None };
        (bytes, piece)
    }

    /// Removes the first piece.
    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }

    fn push(&mut self, bytes: Bytes, meaning: Meaning) {
        self.pieces.push_back(Piece {
            bytes,
            sent: 0,
            meaning,
        });
    }
}
