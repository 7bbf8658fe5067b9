//! How an answer leaves: not before a time, in which portions, and where it is torn. Decided by the script.
//!
//! It must not know what the bytes are.

use std::time::Duration;

use trace::fault::{Cut, Ending, Pace};

use super::body::Body;

/// How the bytes of an answer leave. By default: at once, and whole.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Nothing leaves before this time.
    pub(super) not_before: Duration,
    pub(super) pace: Option<Pace>,
    /// Where the answer is torn, and how it ends there.
    pub(super) cut: Option<(Cut, Ending)>,
}

impl Shape {
    /// Does every piece leave whole, and the end after the last?
    pub(super) fn is_plain(&self) -> bool {
        self.pace.is_none() && self.cut.is_none()
    }

    /// Is all that is queued one write?
    pub(super) fn coalesces(&self) -> bool {
        matches!(self.pace, Some(Pace::Coalesce { .. })) && self.cut.is_none()
    }

    /// Returns how the answer ends here and now, if it is torn here.
    pub(super) fn due_cut(&self, body: &Body) -> Option<Ending> {
        let (cut, ending) = self.cut?;
        let is_due = match cut {
            Cut::AfterBytes(left) => left == 0,
            Cut::AfterEvents { events: 0, percent } => match body.front() {
                None => percent == 0,
                Some(piece) => piece.sent >= share(piece.bytes.len(), percent),
            },
            Cut::AfterEvents { .. } => false,
        };
        is_due.then_some(ending)
    }

    /// Returns how many bytes of the first piece the next write has; `None`: nothing may be written now.
    pub(super) fn next_write(&self, body: &Body) -> Option<usize> {
        let piece = body.front()?;
        let left = piece.left();
        let paced = match self.pace {
            None => left.len(),
            Some(Pace::Drip { bytes, .. }) => {
                let next = left.len().min(bytes.max(1) as usize);
                // A newline says nothing new: who reads JSON values has the event before it, and the trace must too.
                if left[next..] == *b"\n" { left.len() } else { next }
            }
            Some(Pace::SplitUtf8) => up_to_inside_character(left),
            Some(Pace::Coalesce { events }) => {
                if body.len() < events as usize && body.ending.is_none() {
                    return None;
                }
                left.len()
            }
        };
        Some(match self.cut {
            Some((Cut::AfterBytes(bytes), _)) => paced.min(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Some((Cut::AfterEvents { events: 0, percent }, _)) => {
                paced.min(share(piece.bytes.len(), percent).saturating_sub(piece.sent))
            }
            Some((Cut::AfterEvents { .. }, _)) | None => paced,
        })
    }

    /// A line is out.
    pub(super) fn count_line(&mut self) {
        if let Some((Cut::AfterEvents { events, .. }, _)) = &mut self.cut {
            *events = events.saturating_sub(1);
        }
    }

    /// So many bytes were written at `now`.
    pub(super) fn count_bytes(&mut self, now: Duration, bytes: usize) {
        match self.pace {
            Some(Pace::Drip { every_ms, .. }) => self.not_before = now + Duration::from_millis(every_ms),
            Some(Pace::SplitUtf8) => self.not_before = now + Duration::from_millis(1),
            Some(Pace::Coalesce { .. }) | None => {}
        }
        if let Some((Cut::AfterBytes(left), _)) = &mut self.cut {
            *left -= bytes as u64;
        }
    }
}

fn share(len: usize, percent: u8) -> usize {
    len * usize::from(percent) / 100
}

/// Bytes up to and including the first byte of the next multi-byte character, or all of them.
fn up_to_inside_character(bytes: &[u8]) -> usize {
    // A continuation byte at the start belongs to a character that was split before: it must not be split there again.
    let rest = bytes
        .iter()
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    bytes[rest..]
        .iter()
        .position(|byte| *byte >= 0xC0)
        .map_or(bytes.len(), |lead| rest + lead + 1)
}
