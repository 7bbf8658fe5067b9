//! Clients in any language: a child process reports over its standard output, as docs/adapter-protocol.md specifies.
//!
//! It must not know any one client. `serve` is the other side: it makes an adapter of a client of this process.

pub mod check;
pub mod child;
pub mod crew;
pub mod evidence;
pub mod fit;
pub mod line;
pub mod message;
pub mod outcome;
pub mod patience;
pub mod play;
#[cfg(feature = "in-process")]
pub mod serve;
pub mod session;
pub mod standing;
pub mod tally;
pub mod tested;
pub mod weigh;
