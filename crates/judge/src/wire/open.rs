//! A list or watch under way, as far as it shows where its reader may be.

use std::time::Duration;

use ::trace::record::{ConnId, Verb};

use super::chains::List;
use super::position::{Position, Version};
use crate::invariants::PATIENCE;
use crate::trace::Moment;

/// What is sent to a reader and the news that it left may cross each other for so long.
const CROSSING: Duration = Duration::from_millis(100);

/// A list or watch under way.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) conn: ConnId,
    pub(super) asked: Moment,
    /// When something was last sent on it, or it was asked for.
    pub(super) heard: Duration,
    /// When something came last after a silence in which its reader may have given it up.
    pub(super) late: Option<Duration>,
    pub(super) verb: Verb,
    /// The version it was asked for.
    pub(super) from: Option<Version>,
    /// The versions its reader may be at, whatever is lost.
    pub(super) read: Position,
    /// The same if nothing is lost.
    pub(super) kept: Position,
    pub(super) started: bool,
    /// Everything on it so far was the truth, and readable for all who were sent the truth before.
    pub(super) truthful: bool,
    /// It said 410 where it could be read.
    pub(super) expired: bool,
    /// Every line of it so far was readable.
    pub(super) is_readable: bool,
    /// Something was on it that a client may not be able to go on from.
    pub(super) troubled: bool,
    pub(super) status: Option<u16>,
    pub(super) answered: Answered,
    pub(super) list: Option<List>,
    /// The version of the list that it completed.
    pub(super) set: Option<Version>,
    /// It goes on with a list that nobody remembers.
    pub(super) list_forgotten: bool,
    pub(super) token: Option<String>,
    pub(super) from_zero: bool,
    /// A list with `resourceVersion=0` that only a loop can have sent which had seen a newer version.
    pub(super) rewinds: bool,
}

/// How much of an answer there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answered {
    Nothing,
    Page,
    Other,
    /// Cut before its end.
    Torn,
}

impl Open {
    /// Something is sent on it.
    pub(super) fn hear(&mut self, now: Duration) {
        if now.saturating_sub(self.heard) >= PATIENCE {
            self.late = Some(now);
        }
        self.heard = now;
    }

    /// Does it come while its reader surely waits for it? After a silence the reader may be giving up, and what follows at
    /// once crosses its leaving too; of a stream of HTTP/2 that ends meanwhile no record shows that. A client that
    /// ignores a 410 gets another promptly.
    pub(super) fn is_prompt(&self, now: Duration) -> bool {
        now.saturating_sub(self.heard) < PATIENCE
            && self.late.is_none_or(|late| now.saturating_sub(late) >= CROSSING)
    }

    /// A watch that its reader has no reason to leave.
    pub(super) fn is_live_watch(&self) -> bool {
        self.verb != Verb::List && !self.expired && !self.is_refused()
    }

    /// Nobody reads watch events from the body of a refusal.
    pub(super) fn is_refused(&self) -> bool {
        self.status.is_some_and(|status| status >= 300)
    }
}
