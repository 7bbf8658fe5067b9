//! Watcher errors: what failed, which side can fix it, and which object is affected; never an object's content.

use std::fmt;
use std::time::Duration;

use crate::object::ObjectId;
use crate::status::Status;

/// An error that the watcher reports and recovers from.
///
/// The watcher retries after every error, with its own backoff: the consumer can log the error or drop the stream. An
/// expired resourceVersion, a closed stream and the like are part of the protocol and are reported only when they
/// repeat.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server responded with a non-2xx HTTP status, or with a Status instead of the requested list or watch.
    #[error("{during} was refused with HTTP {http}: {status}")]
    Rejected {
        /// The failed request.
        during: During,
        /// The HTTP status.
        http: u16,
        /// The Status from the body.
        #[source]
        status: Box<Status>,
    },
    /// An `ERROR` event, or a Status in place of an event, on a watch.
    #[error("the server ended {during} with an error: {status}")]
    ErrorEvent {
        /// The stream that received it.
        during: During,
        /// The Status of the event.
        #[source]
        status: Box<Status>,
    },
    /// The connection failed.
    #[error("{during} failed: {source}")]
    Transport {
        /// The failed request.
        during: During,
        /// The error of the HTTP client.
        source: TransportError,
    },
    /// No bytes were received before the deadline.
    #[error("{during} was given up after {after:?} of silence")]
    Silence {
        /// The request that timed out.
        during: During,
        /// The deadline that was exceeded.
        after: Duration,
    },
    /// An object could not be decoded into the requested type. It is not skipped: the collection is listed again.
    #[error("{during} brought {object}, which cannot be decoded: {source}")]
    Undecodable {
        /// The request that returned it.
        during: During,
        /// Identity of the object, as far as it could be parsed.
        object: Box<ObjectId>,
        /// The decoding error.
        source: DecodeError,
    },
    /// The body is not a valid response to the request.
    #[error("{during} brought something else: {why}")]
    Malformed {
        /// The request that returned it.
        during: During,
        /// What is wrong with the body.
        why: Malformed,
    },
    /// A list, object or event has no usable `metadata.resourceVersion`, so the watch cannot resume.
    #[error("{during} brought no resourceVersion")]
    NoResourceVersion {
        /// The request that returned it.
        during: During,
        /// The object without a resourceVersion; `None`: the list or bookmark itself.
        object: Option<Box<ObjectId>>,
    },
    /// A watch event is older than an earlier one, so the stream cannot be trusted.
    #[error("{object} came after resourceVersion {newest}, which is newer")]
    BackInTime {
        /// The object of the older event.
        object: Box<ObjectId>,
        /// The newest resourceVersion seen.
        newest: String,
    },
    /// A list is older than a state that was already seen, although the request excluded that.
    #[error("a list at resourceVersion {listed} is older than {newest}, which was already seen")]
    OldList {
        /// The resourceVersion of the list.
        listed: String,
        /// The newest resourceVersion seen.
        newest: String,
    },
    /// A list repeats a continue token, or keeps returning pages without items.
    #[error("a paged LIST does not end: stopped after {pages} pages")]
    EndlessList {
        /// Number of pages read.
        pages: u32,
    },
    /// A streaming list did not send `k8s.io/initial-events-end`. LIST and WATCH are used from now on.
    #[error("a streaming list did not mark the end of its initial events within {after:?}")]
    NoInitialEventsEnd {
        /// How long the watcher waited for the marker.
        after: Duration,
    },
    /// `watch_object` found objects of the same name in several namespaces. It follows the first one seen.
    #[error("{other} is not the object that is followed, but has its name")]
    SeveralObjects {
        /// The object that is not followed.
        other: Box<ObjectId>,
    },
    /// Watches at this resourceVersion end as soon as they start.
    #[error("watches at resourceVersion {resource_version} keep ending at once")]
    EndsAtOnce {
        /// The resourceVersion.
        resource_version: String,
    },
}

impl Error {
    /// Returns which side has to change something.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Rejected { http, status, .. } => {
                match (*http, status.is_transient() || status.is_expired()) {
                    (400..=499, false) => Fault::Caller,
                    (300..=399, _) => Fault::Network,
                    _ => Fault::Server,
                }
            }
            Self::ErrorEvent { .. }
            | Self::NoResourceVersion { .. }
            | Self::BackInTime { .. }
            | Self::OldList { .. }
            | Self::EndlessList { .. }
            | Self::NoInitialEventsEnd { .. }
            | Self::EndsAtOnce { .. } => Fault::Server,
            Self::Transport { .. } | Self::Silence { .. } | Self::Malformed { .. } => Fault::Network,
            Self::Undecodable { .. } | Self::SeveralObjects { .. } => Fault::Caller,
        }
    }

    /// Returns the HTTP or Status code, if any.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Rejected { http, status, .. } => Some(if status.code == 0 { *http } else { status.code }),
            Self::ErrorEvent { status, .. } => (status.code != 0).then_some(status.code),
            Self::Transport { .. }
            | Self::Silence { .. }
            | Self::Undecodable { .. }
            | Self::Malformed { .. }
            | Self::NoResourceVersion { .. }
            | Self::BackInTime { .. }
            | Self::OldList { .. }
            | Self::EndlessList { .. }
            | Self::NoInitialEventsEnd { .. }
            | Self::SeveralObjects { .. }
            | Self::EndsAtOnce { .. } => None,
        }
    }

    /// Returns the object that the error is about, if known.
    pub fn object(&self) -> Option<&ObjectId> {
        match self {
            Self::Undecodable { object, .. } | Self::BackInTime { object, .. } => Some(object),
            Self::SeveralObjects { other } => Some(other),
            Self::NoResourceVersion { object, .. } => object.as_deref(),
            Self::Rejected { .. }
            | Self::ErrorEvent { .. }
            | Self::Transport { .. }
            | Self::Silence { .. }
            | Self::Malformed { .. }
            | Self::OldList { .. }
            | Self::EndlessList { .. }
            | Self::NoInitialEventsEnd { .. }
            | Self::EndsAtOnce { .. } => None,
        }
    }
}

/// The side that has to change something for an error to go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The caller: its permissions, selectors or types.
    Caller,
    /// The network: connection, proxy, load balancer.
    Network,
    /// The apiserver.
    Server,
}

/// The request during which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum During {
    /// The first page of a LIST.
    List,
    /// A later page.
    Page,
    /// The start of a WATCH.
    WatchStart,
    /// An open WATCH.
    Watch,
    /// A streaming list, up to the end of its initial events.
    StreamingList,
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "LIST",
            Self::Page => "a later page of a LIST",
            Self::WatchStart => "the start of a WATCH",
            Self::Watch => "a WATCH",
            Self::StreamingList => "a streaming list",
        })
    }
}

/// Why a body is not a valid response to the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Not JSON, or not UTF-8.
    NotJson,
    /// JSON, but neither a watch event nor a list. Only its `kind` is kept, if it has one.
    NotExpected {
        /// `kind` of the value.
        kind: Option<String>,
    },
    /// A watch event of a type that does not exist.
    UnknownEventType(String),
    /// A watch event without an object, or an object without metadata.
    NoObject,
    /// Objects of a different kind.
    WrongKind {
        /// The expected kind.
        expected: String,
        /// The kind received.
        found: String,
    },
    /// A watch event exceeds the size limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body has a content-encoding that was not requested.
    Encoded(String),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson => f.write_str("it is not JSON"),
            Self::NotExpected { kind: Some(kind) } => write!(f, "it is a {kind}"),
            Self::NotExpected { kind: None } => f.write_str("it has neither a type nor a kind"),
            Self::UnknownEventType(kind) => write!(f, "a watch event of unknown type {kind:?}"),
            Self::NoObject => f.write_str("a watch event without an object or its metadata"),
            Self::WrongKind { expected, found } => write!(f, "a {found} where a {expected} was expected"),
            Self::TooLong { limit } => write!(f, "a watch event longer than {limit} bytes"),
            Self::Encoded(encoding) => write!(f, "its content-encoding is {encoding:?}"),
        }
    }
}

/// Why an object's JSON does not fit its type. Keeps the decoder's reason and position, but none of the values that
/// its message quotes: the object may be a Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at column {column}")]
pub struct DecodeError {
    /// Reason given by the decoder.
    pub reason: String,
    /// Column, in bytes from 1, at which decoding stopped.
    pub column: usize,
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        let full = error.to_string();
        let message = full
            .rsplit_once(" at line ")
            .map_or(full.as_str(), |(message, _)| message);
        Self {
            reason: without_values(message),
            column: error.column(),
        }
    }
}

/// Removes quoted values from a decoder's message. Names of missing fields are kept: they belong to the schema.
fn without_values(message: &str) -> String {
    if message.starts_with("missing field") || message.starts_with("duplicate field") {
        return message.to_owned();
    }
    let (what, expected) = match message.split_once(", expected ") {
        Some((what, expected)) => (what, Some(expected)),
        None => (message, None),
    };
    let what = what.split(['"', '`']).next().unwrap_or_default().trim_end();
    // The text after "expected" comes from the type, unless the value itself contained these words.
    match expected.filter(|expected| !expected.contains('"')) {
        Some(expected) => format!("{what}, expected {expected}"),
        None => what.to_owned(),
    }
}

/// A failed connection, with the error of the HTTP client.
#[derive(Debug)]
pub struct TransportError(Box<dyn std::error::Error + Send + Sync>);

impl TransportError {
    /// Wraps the client's error.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }

    /// Returns the client's error, for downcasting.
    pub fn get_ref(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self.0.as_ref()
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::string("{\"n\":\"s3cr3t\"}")]
    #[case::tricky("{\"n\":\"s3cr3t, expected s3cr3t\"}")]
    #[case::number("{\"n\":-41}")]
    fn a_decode_error_never_quotes_a_value(#[case] json: &str) {
        #[derive(Debug, serde::Deserialize)]
        struct Typed {
            #[expect(dead_code, reason = "only the decoding error is tested")]
            n: u8,
        }
        let error = DecodeError::from(serde_json::from_str::<Typed>(json).unwrap_err());
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cr3t") && !text.contains("41"), "{text}");
        assert!(error.reason.starts_with("invalid"), "{text}");
    }

    #[test]
    fn a_missing_field_is_named() {
        #[derive(Debug, serde::Deserialize)]
        struct Typed {
            #[expect(dead_code, reason = "only the decoding error is tested")]
            n: u8,
        }
        let error = DecodeError::from(serde_json::from_str::<Typed>("{}").unwrap_err());
        assert_eq!(error.to_string(), "missing field `n` at column 2");
    }

    #[rstest]
    #[case(403, Fault::Caller)]
    #[case(410, Fault::Server)]
    #[case(429, Fault::Server)]
    #[case(301, Fault::Network)]
    #[case(503, Fault::Server)]
    fn rejections_are_attributed_by_status(#[case] http: u16, #[case] fault: Fault) {
        let status = Box::new(Status::from_body(http, b""));
        let error = Error::Rejected {
            during: During::List,
            http,
            status,
        };
        assert_eq!((error.fault(), error.code()), (fault, Some(http)));
    }
}
