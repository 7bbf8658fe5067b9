//! Faults of the socket, as values: what to do, never the doing.
//!
//! If a packet capture would still show valid HTTP, it is an action of the script and not a fault. Both drivers
//! carry out the same [`Ending`]: `sim` on in-memory byte pipes, `live` on real sockets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a response body, and with it perhaps the connection, comes to its end.
///
/// Every ending can be carried out on every connection: what the protocol has no word for happens as the nearest thing it
/// has. On HTTP/2, all but [`Ending::Eof`], [`Ending::Stall`] and [`Ending::RstStream`] end every stream of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Clean: the body is complete (terminal chunk, END_STREAM) and the connection may be used again.
    Eof,
    /// The connection is closed inside the body (TCP FIN; over TLS with close_notify before it).
    Fin,
    /// The connection is reset (TCP RST).
    Rst,
    /// Nothing more is ever sent; the connection stays open.
    Stall,
    /// The connection is closed without TLS's close_notify, as by a load balancer. Without TLS: as [`Ending::Fin`].
    NoCloseNotify,
    /// The stream is reset (HTTP/2 RST_STREAM), and the connection lives on. On HTTP/1.1: as [`Ending::Rst`].
    RstStream(Http2Error),
    /// The connection is closed behind a GOAWAY with this code, which counts the streams it breaks off as handled. On
    /// HTTP/1.1: as [`Ending::Fin`].
    Goaway(Http2Error),
}

impl Ending {
    /// The word for it in scenario files and transcripts.
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

    /// May a client that is told so throw away what it received and did not read yet?
    pub fn may_lose_bytes(self) -> bool {
        match self {
            Self::Rst | Self::RstStream(_) | Self::Goaway(_) => true,
            Self::Eof | Self::Fin | Self::Stall | Self::NoCloseNotify => false,
        }
    }
}

/// An error code of HTTP/2 (RFC 9113, section 7).
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
    /// 0x7: nothing was done about the request; it may be sent again.
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
    /// Its number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Its name in the RFC.
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

/// Where a body is cut. Counted from the moment the fault is armed, on the stream it is armed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cut {
    /// After this many more body bytes.
    AfterBytes(u64),
    /// After this many more whole events, and then this share (percent, 0–99) of the next line.
    AfterEvents {
        /// Whole events still sent.
        events: u32,
        /// Share of the next line still sent, in percent.
        percent: u8,
    },
}

/// How the bytes of a body are cut into separate writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// `bytes` at a time, `every_ms` milliseconds apart (slow link).
    Drip {
        /// Bytes a write.
        bytes: u32,
        /// Milliseconds between writes.
        every_ms: u64,
    },
    /// Every write ends inside a multi-byte UTF-8 character where there is one; no delay beyond 1 ms.
    SplitUtf8,
    /// Several events are held back and sent in one write, `events` at a time.
    Coalesce {
        /// Events a write.
        events: u32,
    },
}
