//! What client and server did, in one append-only order: every verdict is computed from these records alone.
//!
//! It must not know how records come about (servers, scripts, sockets) or what they prove (checks).

pub mod content;
pub mod fault;
pub mod record;
pub mod report;

pub use content::Content;
