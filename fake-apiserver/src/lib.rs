//! A Kubernetes apiserver that is **truthful on the wire by default and lies on cue**.
//!
//! Where to start reading: [`scenario`] is what a file may say, [`model`] is what a real apiserver would answer,
//! `apiserver` answers so without any I/O, [`script`] decides where the two part, [`server`] joins them behind one door in
//! and one door out, and `net` (feature `net`, on by default) carries it all out over sockets.
//!
//! This crate knows nothing of any client. What a client under test tells about itself comes in as a
//! [`report::Report`]; everything both sides did goes out as [`record::Record`]s, in one order.

pub mod api;
mod apiserver;
pub mod manifests;
pub mod model;
#[cfg(feature = "net")]
pub mod net;
pub mod script;
pub mod server;

pub use ::scenario;
pub use trace::{fault, record, report};
