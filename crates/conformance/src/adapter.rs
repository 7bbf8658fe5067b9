//! Clients in any language: a child process reports over its standard output, as docs/adapter-protocol.md specifies.
//!
//! Independent of any client. `serve` is the other side: it runs a client of this process as an adapter.

pub mod assess;
pub mod attempt;
pub mod check;
pub mod child;
pub mod evidence;
pub mod fit;
pub mod limiter;
pub mod line;
pub mod message;
pub mod outcome;
#[cfg(feature = "in-process")]
pub mod serve;
pub mod session;
pub mod standing;
pub mod tally;
pub mod tested;
pub mod timeouts;
