//! Queued pieces of a response, and the memory held for it alone.

use std::collections::VecDeque;

use super::Piece;

/// Pieces in order. Shared data, such as an event of many watches, counts as zero bytes.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    queue: VecDeque<(Piece, usize)>,
    /// Bytes queued or in flight.
    held: usize,
    /// Bytes of the last piece taken: in flight until the next is taken.
    leaving: usize,
}

impl Pieces {
    pub(crate) fn push(&mut self, piece: Piece) {
        let held = match &piece {
            Piece::Data(bytes) if bytes.is_unique() => bytes.len(),
            Piece::Data(_) | Piece::End(_) => 0,
        };
        self.held += held;
        self.queue.push_back((piece, held));
    }

    /// Takes the next piece; the one before is written.
    pub(crate) fn take(&mut self) -> Option<Piece> {
        self.held -= std::mem::take(&mut self.leaving);
        let (piece, held) = self.queue.pop_front()?;
        self.leaving = held;
        Some(piece)
    }

    /// Removes the next piece, which was written.
    pub(crate) fn written(&mut self) {
        let _out = self.take();
        self.held -= std::mem::take(&mut self.leaving);
    }

    pub(crate) fn front(&self) -> Option<&Piece> {
        self.queue.front().map(|(piece, _)| piece)
    }

    pub(crate) fn back(&self) -> Option<&Piece> {
        self.queue.back().map(|(piece, _)| piece)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes held for this response alone.
    pub(crate) fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn unshared_pieces_count_until_the_next_one_is_requested() {
        let shared = Bytes::from(vec![0; 100]);
        let mut pieces = Pieces::default();
        pieces.push(Piece::Data(shared.clone()));
        pieces.push(Piece::Data(Bytes::from(vec![0; 10])));
        pieces.push(Piece::Data(Bytes::from(vec![0; 3])));
        assert_eq!(pieces.held(), 13);
        pieces.take();
        pieces.take();
        assert_eq!(pieces.held(), 13, "it is on its way");
        pieces.written();
        assert_eq!((pieces.held(), pieces.len()), (0, 0));
        assert!(pieces.take().is_none());
        drop(shared);
    }
}
