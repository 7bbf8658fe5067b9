//! Fan-out: watches that send the same events in one turn share the bytes of one write.

use std::collections::VecDeque;

use bytes::Bytes;

/// Most bytes of events in one write.
pub(super) const JOINED_BYTES_MAX: usize = 256 * 1024;

/// Most shared writes remembered per turn.
const JOINED_MAX: usize = 16;

/// Shared writes of this turn.
///
/// Off by default: scenarios count and cut single writes.
#[derive(Debug, Default)]
pub(super) struct Joined {
    allowed: bool,
    writes: VecDeque<(Vec<Bytes>, Bytes)>,
}

impl Joined {
    /// Returns the sharing of a standalone server, which may have thousands of watches.
    pub(super) fn allowed() -> Self {
        Self {
            allowed: true,
            writes: VecDeque::new(),
        }
    }

    /// Whether events may share a write.
    pub(super) fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Returns the joined bytes of these events, shared with an equal write of this turn.
    pub(super) fn of(&mut self, lines: Vec<Bytes>) -> Bytes {
        let same = |(known, _): &&(Vec<Bytes>, Bytes)| {
            let pairs = || known.iter().zip(&lines);
            known.len() == lines.len() && pairs().all(|(known, line)| known.as_ptr() == line.as_ptr())
        };
        if let Some((_, bytes)) = self.writes.iter().find(same) {
            return bytes.clone();
        }
        let bytes = Bytes::from(lines.concat());
        if self.writes.len() == JOINED_MAX {
            self.writes.pop_front();
        }
        self.writes.push_back((lines, bytes.clone()));
        bytes
    }

    /// Forgets the writes of this turn.
    pub(super) fn forget(&mut self) {
        self.writes.clear();
    }
}
