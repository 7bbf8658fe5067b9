//! Clients that nobody here wrote, against the command as users start it: what the tests of this package are made of.
//!
//! It knows how programs are built, started, listened to and ended, and nothing of how the fake works inside: whatever
//! a test needs of the server it gets as a user gets it, from the command line, over HTTP, or from what is printed.
//! Nothing here sleeps: a test waits for a line of a program, for a bounded time.

pub mod adapters;
pub mod attacks;
pub mod client;
pub mod ecosystems;
pub mod kubectl;
pub mod lines;
pub mod server;
pub mod story;
pub mod suites;
pub mod toolchain;
