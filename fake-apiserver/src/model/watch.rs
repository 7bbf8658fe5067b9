//! One watch.

use std::time::Duration;

use bytes::Bytes;

use crate::record::{FrameType, ObjectRef};

use super::Model;

/// One line of a watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFrame {
    /// Its type.
    pub kind: FrameType,
    /// Whom it concerns; `None` for ERROR.
    pub object: Option<ObjectRef>,
    /// The line, with its newline.
    pub line: Bytes,
}

/// What a watch has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchPoll {
    /// A line. Poll again.
    Frame(WatchFrame),
    /// Nothing before something is written, or before `wake`.
    Pending {
        /// When to poll again at the latest.
        wake: Option<Duration>,
    },
    /// The stream ends here, cleanly.
    End,
}

/// One open watch: a cursor into the events of its resource.
#[derive(Debug)]
pub struct WatchSession {}

impl WatchSession {
    /// The next line, if there is one.
    pub fn poll(&mut self, model: &Model, now: Duration) -> WatchPoll {
        let _ = (model, now);
        WatchPoll::Pending { wake: None }
    }
}
