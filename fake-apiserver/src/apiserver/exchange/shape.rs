//! Timing and framing of a response: delay, portions, and where it is cut. It does not look at the bytes' meaning.

use std::time::Duration;

use trace::fault::{Cut, Ending, Pace};

use super::body::Body;

/// Timing and framing. Default: at once and whole.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Time of the first byte.
    pub(super) not_before: Duration,
    pub(super) pace: Option<Pace>,
    /// Where the response is cut, and how it ends there.
    pub(super) cut: Option<(Cut, Ending)>,
}

impl Shape {
    /// Whether every piece is sent whole, and the end after the last.
    pub(super) fn is_plain(&self) -> bool {
        self.pace.is_none() && self.cut.is_none()
    }

    /// Whether the whole queue is one write.
    pub(super) fn coalesces(&self) -> bool {
        matches!(self.pace, Some(Pace::Coalesce { .. })) && self.cut.is_none()
    }

    /// Returns the end of the response, if it is cut at this point.
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

    /// Returns the number of bytes of the first piece in the next write; `None`: nothing is due.
    pub(super) fn next_write(&self, body: &Body) -> Option<usize> {
        let piece = body.front()?;
        let left = piece.left();
        let paced = match self.pace {
            None => left.len(),
            Some(Pace::Drip { bytes, .. }) => {
                let next = left.len().min(bytes.max(1) as usize);
                // A newline adds nothing: a client that parses JSON values has the event before it, and so must the trace.
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

    /// Counts a sent line.
    pub(super) fn count_line(&mut self) {
        if let Some((Cut::AfterEvents { events, .. }, _)) = &mut self.cut {
            *events = events.saturating_sub(1);
        }
    }

    /// Counts bytes written at `now`.
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

/// Returns the number of bytes up to and including the first byte of the next multi-byte character, or of all bytes.
fn up_to_inside_character(bytes: &[u8]) -> usize {
    // A continuation byte at the start belongs to a character that was already split.
    let rest = bytes
        .iter()
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    bytes[rest..]
        .iter()
        .position(|byte| *byte >= 0xC0)
        .map_or(bytes.len(), |lead| rest + lead + 1)
}
