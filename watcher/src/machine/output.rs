//! Actions requested by the machine, as values.

use std::time::Duration;

use super::RequestId;
use crate::error::Error;
use crate::event::Event;
use crate::request::Request;

/// An action for the driver.
#[derive(Debug)]
pub enum Output<O> {
    /// Send this request. At most one request is active at a time.
    Request {
        /// Id that its answers carry.
        id: RequestId,
        /// What to ask for.
        request: Request,
    },
    /// Drop this request and its connection: later answers are ignored.
    Cancel(RequestId),
    /// Pass this event to the consumer.
    Event(Event<O>),
    /// Pass this error to the consumer; the machine continues by itself.
    Error(Error),
    /// No request will be sent until then. For traces only: the machine is woken by its timeout.
    Wait {
        /// When the machine continues.
        until: Duration,
        /// What it will do next.
        then: &'static str,
    },
}
