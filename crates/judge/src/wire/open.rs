//! A list or watch in progress, as far as it shows its reader's possible resume points.

use std::time::Duration;

use ::trace::record::{ConnId, Verb};

use super::chains::List;
use super::position::{Position, Version};
use crate::invariants::PATIENCE;
use crate::trace::Moment;

/// Maximum time in which bytes sent to a reader and its disconnect can cross.
const CROSSING: Duration = Duration::from_millis(100);

/// A list or watch in progress.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) conn: ConnId,
    pub(super) asked: Moment,
    /// When bytes were last sent on it, or it was requested.
    pub(super) heard: Duration,
    /// When bytes were last sent after a silence in which its reader may have given it up.
    pub(super) late: Option<Duration>,
    /// When a line was last sent that its reader may have rejected.
    pub(super) doubtful: Option<Duration>,
    pub(super) verb: Verb,
    /// The newest version written before the request: what was created since is no initial event.
    pub(super) revision: Option<Version>,
    /// The requested version.
    pub(super) from: Option<Version>,
    /// Versions its reader may be at, assuming that bytes may be lost.
    pub(super) read: Position,
    /// Versions its reader may be at, assuming that no bytes are lost.
    pub(super) kept: Position,
    pub(super) started: bool,
    /// Some loop may have sent it. The version that any other starts at was sent to nobody.
    pub(super) explained: bool,
    /// Everything sent so far was unmodified and readable.
    pub(super) unmodified: bool,
    /// A readable 410 was sent.
    pub(super) expired: bool,
    /// Every line so far was readable.
    pub(super) is_readable: bool,
    /// Something was sent after which a client may be unable to continue.
    pub(super) troubled: bool,
    pub(super) status: Option<u16>,
    pub(super) answered: Answered,
    pub(super) list: Option<List>,
    /// Version of the list that it completed.
    pub(super) set: Option<Version>,
    /// It continues a list that was forgotten.
    pub(super) list_forgotten: bool,
    pub(super) token: Option<String>,
    pub(super) from_zero: bool,
    /// A list with `resourceVersion=0` that only a loop which had seen a newer version can have sent.
    pub(super) rewinds: bool,
}

/// State of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    Nothing,
    Page,
    Other,
    /// Truncated.
    Torn,
}

impl Open {
    /// Records that bytes were sent.
    pub(super) fn hear(&mut self, now: Duration) {
        if now.saturating_sub(self.heard) >= PATIENCE {
            self.late = Some(now);
        }
        self.heard = now;
    }

    /// Returns true if its reader is certainly waiting for these bytes. After a silence the reader may be giving up,
    /// and bytes sent then can cross its disconnect; if an HTTP/2 stream ends meanwhile, there is no record of that.
    /// A client that ignores a 410 soon gets another.
    pub(super) fn is_prompt(&self, now: Duration) -> bool {
        now.saturating_sub(self.heard) < PATIENCE
            && self.late.is_none_or(|late| now.saturating_sub(late) >= CROSSING)
    }

    /// Returns true if its reader may have rejected a line so recently that its disconnect crosses these bytes.
    pub(super) fn may_be_rejected(&self, now: Duration) -> bool {
        self.doubtful
            .is_some_and(|rejected| now.saturating_sub(rejected) < CROSSING)
    }

    /// Returns true for a watch that its reader has no reason to leave.
    pub(super) fn is_live_watch(&self) -> bool {
        self.verb != Verb::List && !self.expired && !self.is_refused()
    }

    /// Returns true for an error response: clients do not read watch events from its body.
    pub(super) fn is_refused(&self) -> bool {
        self.status.is_some_and(|status| status >= 300)
    }
}
