//! Inputs of the machine. Plain values: no bytes, connection or clock.

use std::borrow::Cow;
use std::time::Duration;

use crate::error::{DecodeError, Malformed, TransportError};
use crate::object::ObjectId;
use crate::status::Status;

/// Identifies a request, so that answers to an abandoned one can be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An input. `O` is the decoded object, of which the machine uses only its [identity](super::Identify).
#[derive(Debug)]
pub enum Input<'a, O> {
    /// The time returned by [`poll_timeout`](super::Machine::poll_timeout) was reached. Early calls do nothing.
    Timeout,
    /// The driver was not polled for this long, up to now, because its consumer was busy. No idle deadline counts
    /// this time.
    Unattended(Duration),
    /// Part of the response to a request. Dropped if the request is not the current one.
    Answer {
        /// The request.
        request: RequestId,
        /// The part received.
        answer: ResponsePart<'a, O>,
    },
}

/// Part of the response to a request.
#[derive(Debug)]
pub enum ResponsePart<'a, O> {
    /// Bytes of any kind: the peer is alive.
    Progress,
    /// One item of a LIST, in order.
    Item {
        /// The decoded item.
        payload: O,
    },
    /// The LIST body is complete; all its items came before.
    PageEnd(PageMeta<'a>),
    /// A watch was accepted (HTTP 2xx).
    Opened,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    Changed {
        /// The event type.
        change: Change,
        /// The decoded object.
        payload: O,
    },
    /// `BOOKMARK`.
    Bookmark {
        /// `metadata.resourceVersion`; empty where absent.
        resource_version: Cow<'a, str>,
        /// The annotation `k8s.io/initial-events-end` is exactly `true`.
        initial_events_end: bool,
    },
    /// An `ERROR` event, or a Status in place of an event.
    ErrorEvent(Status),
    /// An item or event whose object does not fit its type.
    Undecodable {
        /// Identity of the object.
        object: ObjectId,
        /// The decoding error.
        error: DecodeError,
    },
    /// Bytes that are not a valid response to the request.
    Malformed(Malformed),
    /// The head of a non-2xx response. [`Rejected`](Self::Rejected) follows within seconds, even if the body stalls,
    /// so no deadline runs until then.
    Refusing,
    /// The server responded with a non-2xx status.
    Rejected {
        /// The HTTP status.
        http: u16,
        /// The Status from the body.
        status: Status,
        /// `Retry-After` header.
        retry_after: Option<Duration>,
    },
    /// The connection failed.
    TransportError(TransportError),
    /// The body ended without an error.
    Eof,
}

/// Type of a watch event for an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}

impl Change {
    /// Returns the `type` as on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// `metadata` of a list; absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageMeta<'a> {
    /// `resourceVersion`.
    pub resource_version: Cow<'a, str>,
    /// `continue`; empty on the last page. `remainingItemCount` is not read: it is optional and inexact.
    pub continue_token: Cow<'a, str>,
}
