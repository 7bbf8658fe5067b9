//! Runs a watch client through a scenario and says what it got wrong, and why.
//!
//! [`client`] is the door for clients, [`drive`] joins client and fake and lets them play, [`trace`] is what both did,
//! [`judge`] reads a [`verdict::Verdict`] off the trace alone, and [`report`] prints.

pub mod client;
pub mod drive;
