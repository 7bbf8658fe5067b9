//! What went wrong, whose fault it is, and which object it is about; never an object's content.

use std::fmt;
use std::time::Duration;

use crate::object::ObjectId;
use crate::status::Status;

/// What a watcher reports and survives.
///
/// Every error is followed by a retry of the watcher's own, after a backoff of its own: there is nothing to do but to
/// look, or to stop. A resourceVersion that expired, a stream that ended and the like are part of the protocol and are
/// reported only when they come again and again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with an HTTP status other than 2xx, or with a Status where something else was asked for.
    #[error("{during} was refused with HTTP {http}: {status}")]
    Rejected {
        /// What was asked for.
        during: During,
        /// The HTTP status.
        http: u16,
        /// What the body said.
        #[source]
        status: Box<Status>,
    },
    /// An `ERROR` event, or a Status in its place, came on a watch.
    #[error("the server ended {during} with an error: {status}")]
    ErrorEvent {
        /// Which stream.
        during: During,
        /// What it said.
        #[source]
        status: Box<Status>,
    },
    /// The connection failed.
    #[error("{during} failed: {source}")]
    Transport {
        /// What was going on.
        during: During,
        /// What the client said.
        source: TransportError,
    },
    /// Nothing came for too long.
    #[error("{during} was given up after {after:?} of silence")]
    Silence {
        /// What was going on.
        during: During,
        /// How long nothing came.
        after: Duration,
    },
    /// An object could not be decoded into the wanted type. It is not skipped: the collection is listed again.
    #[error("{during} brought {object}, which cannot be decoded: {source}")]
    Undecodable {
        /// What was going on.
        during: During,
        /// Which object, as far as its bytes tell.
        object: Box<ObjectId>,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// The bytes are not what this request is answered with.
    #[error("{during} brought something else: {why}")]
    Malformed {
        /// What was going on.
        during: During,
        /// What is wrong with them.
        why: Malformed,
    },
    /// A list, object or event without a usable `metadata.resourceVersion`: there is nothing to resume from.
    #[error("{during} brought no resourceVersion")]
    NoResourceVersion {
        /// What was going on.
        during: During,
        /// The object without it; `None`: the list or bookmark itself.
        object: Option<Box<ObjectId>>,
    },
    /// A watch went back in time, so what it says cannot be trusted.
    #[error("{object} came after resourceVersion {newest}, which is newer")]
    BackInTime {
        /// The late object.
        object: Box<ObjectId>,
        /// What was already seen.
        newest: String,
    },
    /// A list that had to be at least as new as what was already seen is older.
    #[error("a list at resourceVersion {listed} is older than {newest}, which was already seen")]
    OldList {
        /// The list's version.
        listed: String,
        /// What was already seen.
        newest: String,
    },
    /// A list offers a continue token that it offered before, or never an item.
    #[error("a paged list goes round in circles after {pages} pages")]
    EndlessList {
        /// How many pages were read.
        pages: u32,
    },
    /// A streaming list never marked the end of its initial events. LIST and WATCH are used from now on.
    #[error("a streaming list did not mark the end of its initial events within {after:?}")]
    NoInitialEventsEnd {
        /// How long was waited.
        after: Duration,
    },
    /// One object is followed by its name in all namespaces, and several have an object of that name. The first that was
    /// seen is followed.
    #[error("{other} is not the object that is followed, but has its name")]
    SeveralObjects {
        /// Not the one that is followed.
        other: Box<ObjectId>,
    },
    /// Watches at this resourceVersion end as soon as they begin.
    #[error("watches at resourceVersion {resource_version} keep ending at once")]
    EndsAtOnce {
        /// The version.
        resource_version: String,
    },
}

impl Error {
    /// Who has to change something.
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

    /// The HTTP or Status code, where there is one.
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

    /// The object an error is about, where one can be named.
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

/// Who has to change something for an error to go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The program: its permissions, its selectors, its types.
    Caller,
    /// What lies between: connection, proxy, load balancer.
    Network,
    /// The API server.
    Server,
}

/// What a watcher was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum During {
    /// The first page of a LIST.
    List,
    /// A later page.
    Page,
    /// The start of a WATCH.
    WatchStart,
    /// A WATCH.
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

/// What is wrong with bytes that are no answer to the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Not JSON, or not UTF-8.
    NotJson,
    /// JSON, but no watch event and no list: only its `kind`, where it has one, is told.
    NotExpected {
        /// `kind` of what came instead.
        kind: Option<String>,
    },
    /// A watch event of a type that does not exist.
    UnknownEventType(String),
    /// A watch event without an object, or an object without metadata.
    NoObject,
    /// Objects of another kind.
    WrongKind {
        /// What was expected.
        expected: String,
        /// What came.
        found: String,
    },
    /// One watch event is longer than the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body is compressed though that was not asked for.
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

/// Why an object's JSON does not fit its type. Keeps the place and the reason of the decoder, but none of the values
/// that a decoder's own message quotes: an object may be a Secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at column {column}")]
pub struct DecodeError {
    /// What the decoder complained about.
    pub reason: String,
    /// Byte of the object (from 1) where it stopped.
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

/// Cuts what is quoted out of a decoder's message, but for the names of missing fields, which are schema.
fn without_values(message: &str) -> String {
    if message.starts_with("missing field") || message.starts_with("duplicate field") {
        return message.to_owned();
    }
    let (what, expected) = match message.split_once(", expected ") {
        Some((what, expected)) => (what, Some(expected)),
        None => (message, None),
    };
    let what = what.split(['"', '`']).next().unwrap_or_default().trim_end();
    // What follows "expected" comes from the type, unless the value itself held these words.
    match expected.filter(|expected| !expected.contains('"')) {
        Some(expected) => format!("{what}, expected {expected}"),
        None => what.to_owned(),
    }
}

/// A failed connection, with what the client said about it.
#[derive(Debug)]
pub struct TransportError(Box<dyn std::error::Error + Send + Sync>);

impl TransportError {
    /// Keeps the source.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }

    /// The client's own error, to be downcast.
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
            #[expect(dead_code, reason = "only its failure to decode matters")]
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
            #[expect(dead_code, reason = "only its failure to decode matters")]
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
    fn a_refusal_says_whose_fault_it_is(#[case] http: u16, #[case] fault: Fault) {
        let status = Box::new(Status::from_body(http, b""));
        let error = Error::Rejected {
            during: During::List,
            http,
            status,
        };
        assert_eq!((error.fault(), error.code()), (fault, Some(http)));
    }
}
