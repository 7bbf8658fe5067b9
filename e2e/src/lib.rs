//! Clients from other projects, run against the command as users start it: helpers for the tests of this package.
//!
//! They build, start, observe and end programs, and must not know how the fake works: a test uses the command line, HTTP, or
//! printed output, as a user does. Nothing here sleeps: a test waits for a line of output, for a limited time.

pub mod adapters;
pub mod attacks;
mod build;
pub mod client;
pub mod control_clients;
pub mod crowd;
pub mod ecosystems;
pub mod install;
pub mod kubectl;
pub mod lines;
pub mod server;
pub mod story;
pub mod suites;
pub mod terminal;
pub mod toolchain;
pub mod upstream;
