//! Faults of the socket, as values: what to do, never the doing.
//!
//! If a packet capture would still show valid HTTP, it is an action of the script and not a fault. Both drivers
//! carry out the same [`Ending`]: `sim` on in-memory byte pipes, `live` on real sockets.

use serde::{Deserialize, Serialize};

/// How a response body, and with it perhaps the connection, comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Clean: the terminal chunk is written and the connection may be used again.
    Eof,
    /// The connection is closed without the terminal chunk (TCP FIN inside the body).
    Fin,
    /// The connection is reset (TCP RST).
    Rst,
    /// Nothing more is ever sent; the connection stays open.
    Stall,
}

impl Ending {
    /// The word for it in scenario files and transcripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Eof => "eof",
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Stall => "stall",
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
