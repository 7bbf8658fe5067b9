//! Recordings of an apiserver and its clients: the file format, and scenarios that repeat what the server did.
//!
//! A recording is the trace of a server in a file (`--record`). [`draft`] reads one loop of it, which lists and watches one
//! collection, and writes a scenario with the server's side: the objects of the first list, the writes that followed, and
//! where the server deviated from one that answers everything at once: statuses, ERROR events, cut lines, ends. The client's
//! side is left out: the scenario is played to a client.
//!
//! It must not know sockets, files or the server.

mod audit;
mod chosen;
mod file;
mod manifest;
mod operations;
mod steps;
mod store;
mod story;

pub use chosen::{Cannot, violations};
pub use file::{Header, Origin, ReadError, Recording, read, write_header, write_record, write_records};
pub use story::{Draft, Options, draft};
