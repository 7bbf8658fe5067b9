//! Lines that leave together, and the bytes they become: watches that get the same lines in a turn share the same bytes.
//!
//! It must not know whom they are for.

use std::collections::VecDeque;

use bytes::Bytes;

/// The most bytes of lines that leave as one write.
pub(super) const JOINED_BYTES_MAX: usize = 256 * 1024;

/// How many writes of several lines are remembered.
const JOINED_MAX: usize = 16;

/// Lines that left together in this turn, and their bytes.
///
/// By default none do: a scenario counts writes, and tears them apart.
#[derive(Debug, Default)]
pub(super) struct Joined {
    allowed: bool,
    writes: VecDeque<(Vec<Bytes>, Bytes)>,
}

impl Joined {
    /// Of a server that has no story to tell, and perhaps thousands of watches.
    pub(super) fn allowed() -> Self {
        Self {
            allowed: true,
            writes: VecDeque::new(),
        }
    }

    /// May lines leave together at all?
    pub(super) fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// The bytes of these lines: those that others were sent in this turn, if it was the same lines.
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

    /// The turn is over.
    pub(super) fn forget(&mut self) {
        self.writes.clear();
    }
}
