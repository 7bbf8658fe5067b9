//! The append-only trace of what client and server did, from which every verdict is computed.
//!
//! Independent of how records are produced (servers, scripts, sockets) and of how they are checked.

pub mod content;
pub mod fault;
pub mod record;
pub mod report;

pub use content::Content;
