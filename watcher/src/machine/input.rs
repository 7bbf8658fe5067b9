//! What the machine is told. Values only: no bytes, no connection, no clock.

use std::borrow::Cow;
use std::time::Duration;

use crate::error::{DecodeError, Malformed, TransportError};
use crate::object::ObjectId;
use crate::status::Status;

/// Names one request, so that what belongs to an abandoned one can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The one door in. `O` is the decoded object, of which the machine knows how to ask what it is called.
#[derive(Debug)]
pub enum Input<'a, O> {
    /// The time [`poll_timeout`](super::Machine::poll_timeout) named has come. Early calls do nothing.
    Timeout,
    /// The driver was not polled for so long, up to now: its consumer was busy. No deadline counts that time.
    Unattended(Duration),
    /// Something came for a request. What comes for any but the current one is dropped.
    Answer {
        /// The request.
        request: RequestId,
        /// What came.
        answer: Answer<'a, O>,
    },
}

/// What may come for a request.
#[derive(Debug)]
pub enum Answer<'a, O> {
    /// Bytes, of any kind: the other side lives.
    Progress,
    /// One item of a LIST, in order.
    Item {
        /// The item.
        payload: O,
    },
    /// A LIST body was read to its end; all its items came before.
    PageEnd(PageMeta<'a>),
    /// A watch was accepted (HTTP 2xx).
    Opened,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    Changed {
        /// Which of them.
        change: Change,
        /// The object.
        payload: O,
    },
    /// `BOOKMARK`.
    Bookmark {
        /// `metadata.resourceVersion`; empty where absent.
        resource_version: Cow<'a, str>,
        /// The annotation `k8s.io/initial-events-end` is exactly `true`.
        initial_events_end: bool,
    },
    /// `ERROR`, or a Status in the place of an event.
    ErrorEvent(Status),
    /// An item or event whose object does not fit its type.
    Undecodable {
        /// Which object.
        object: ObjectId,
        /// Why.
        error: DecodeError,
    },
    /// Bytes that are no answer to the request.
    Malformed(Malformed),
    /// The head of a refusal. [`Rejected`](Self::Rejected) follows within seconds, however the body stalls, so that no
    /// deadline runs until then.
    Refusing,
    /// The server refused.
    Rejected {
        /// The HTTP status.
        http: u16,
        /// What the body said.
        status: Status,
        /// `Retry-After` of the head.
        retry_after: Option<Duration>,
    },
    /// The connection failed.
    TransportError(TransportError),
    /// The body ended cleanly.
    Eof,
}

/// What happened to an object.
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
    /// The word on the wire.
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
