//! Socket faults, as values; the drivers carry them out.
//!
//! If a packet capture would still show valid HTTP, it is a script action and not a fault. Both drivers implement the
//! same [`Ending`]: `sim` on in-memory byte pipes, `live` on real sockets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a response body ends, and possibly its connection.
///
/// Every ending works on every connection: endings that a protocol does not have are replaced by the closest one. On
/// HTTP/2, all but [`Ending::Eof`], [`Ending::Stall`] and [`Ending::RstStream`] end every stream of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Clean end: the body is complete (terminal chunk, END_STREAM) and the connection is reusable.
    Eof,
    /// The connection is closed within the body (TCP FIN; over TLS after close_notify).
    Fin,
    /// The connection is reset within the body (TCP RST).
    Rst,
    /// No more bytes are sent; the connection stays open.
    Stall,
    /// The connection is closed without TLS close_notify, as by a load balancer. Without TLS: like [`Ending::Fin`].
    NoCloseNotify,
    /// The stream is reset (HTTP/2 RST_STREAM), the connection stays open. On HTTP/1.1: like [`Ending::Rst`].
    RstStream(Http2Error),
    /// The connection is closed after a GOAWAY with this code whose last stream id covers the interrupted streams. On
    /// HTTP/1.1: like [`Ending::Fin`].
    Goaway(Http2Error),
}

impl Ending {
    /// Returns the word in scenario files and transcripts.
    pub fn word(self) -> String {
        match self {
            Self::Eof => "eof".to_owned(),
            Self::Fin => "fin".to_owned(),
            Self::Rst => "rst".to_owned(),
            Self::Stall => "stall".to_owned(),
            Self::NoCloseNotify => "no_close_notify".to_owned(),
            Self::RstStream(code) => format!("rst_stream {}", code.word()),
            Self::Goaway(code) => format!("goaway {}", code.word()),
        }
    }

    /// Returns true if a client may discard received but unread bytes after this ending.
    pub fn may_lose_bytes(self) -> bool {
        match self {
            Self::Rst | Self::RstStream(_) | Self::Goaway(_) => true,
            Self::Eof | Self::Fin | Self::Stall | Self::NoCloseNotify => false,
        }
    }
}

/// HTTP/2 error code (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Http2Error {
    /// 0x0: not an error.
    NoError,
    /// 0x1
    ProtocolError,
    /// 0x2
    InternalError,
    /// 0x3
    FlowControlError,
    /// 0x4
    SettingsTimeout,
    /// 0x5
    StreamClosed,
    /// 0x6
    FrameSizeError,
    /// 0x7: the request was not processed and may be retried.
    RefusedStream,
    /// 0x8
    Cancel,
    /// 0x9
    CompressionError,
    /// 0xa
    ConnectError,
    /// 0xb
    EnhanceYourCalm,
    /// 0xc
    InadequateSecurity,
    /// 0xd
    #[serde(rename = "HTTP_1_1_REQUIRED")]
    Http11Required,
}

impl Http2Error {
    /// Returns the code on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Returns the name in the RFC.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoError => "NO_ERROR",
            Self::ProtocolError => "PROTOCOL_ERROR",
            Self::InternalError => "INTERNAL_ERROR",
            Self::FlowControlError => "FLOW_CONTROL_ERROR",
            Self::SettingsTimeout => "SETTINGS_TIMEOUT",
            Self::StreamClosed => "STREAM_CLOSED",
            Self::FrameSizeError => "FRAME_SIZE_ERROR",
            Self::RefusedStream => "REFUSED_STREAM",
            Self::Cancel => "CANCEL",
            Self::CompressionError => "COMPRESSION_ERROR",
            Self::ConnectError => "CONNECT_ERROR",
            Self::EnhanceYourCalm => "ENHANCE_YOUR_CALM",
            Self::InadequateSecurity => "INADEQUATE_SECURITY",
            Self::Http11Required => "HTTP_1_1_REQUIRED",
        }
    }
}

/// Where a body is truncated, counted from the moment the fault is armed, on the stream it is armed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// After this many more body bytes.
    AfterBytes(u64),
    /// After this many more complete events, and then this share (percent, 0–99) of the next line.
    AfterEvents {
        /// Number of complete events still sent.
        events: u32,
        /// Percentage of the next line still sent.
        percent: u8,
    },
}

/// How a body is split into writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// `bytes` at a time, every `every_ms` milliseconds (slow link).
    Drip {
        /// Bytes per write.
        bytes: u32,
        /// Milliseconds between writes.
        every_ms: u64,
    },
    /// Every write ends inside a multi-byte UTF-8 character if there is one; no delay beyond 1 ms.
    SplitUtf8,
    /// Events are buffered and sent `events` at a time in one write.
    Coalesce {
        /// Events per write.
        events: u32,
    },
}
