//! Clients in any language: a child process reports over its standard output, as docs/adapter-protocol.md specifies.
//!
//! It must not know any one client, nor the HTTP stack of the clients that run in this process.

pub mod line;
pub mod message;
