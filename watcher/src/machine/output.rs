//! What the machine wants done, as values.

use std::time::Duration;

use super::RequestId;
use crate::error::Error;
use crate::event::Event;
use crate::request::Request;

/// The one door out.
#[derive(Debug)]
pub enum Output<O> {
    /// Send this. There is never more than one request at a time.
    Request {
        /// The name its answers carry.
        id: RequestId,
        /// What to ask for.
        request: Request,
    },
    /// Drop this request, its connection included: what it still brings is of no use.
    Cancel(RequestId),
    /// Tell the consumer.
    Event(Event<O>),
    /// Tell the consumer; the machine goes on by itself.
    Error(Error),
    /// Nothing will be asked for until then. For traces; the machine wakes by its timeout.
    Wait {
        /// When the machine goes on.
        until: Duration,
        /// What it will do.
        then: &'static str,
    },
}
