//! Runs a watch client through a scenario and says what it got wrong, and why.
//!
//! [`client`] is the trait for clients, `drive` joins client and fake and lets them play, [`trace`] is what both did,
//! [`judge`](mod@judge) reads a [`verdict::Verdict`] off the trace alone, and [`report`] prints. [`suite`] does all of it
//! for many scenarios at once; [`baseline`] knows which failures are known.

pub mod adapter;
pub mod baseline;
#[cfg(feature = "in-process")]
pub mod client;
#[cfg(feature = "in-process")]
pub mod coverage;
#[cfg(feature = "in-process")]
pub mod drive;
pub mod process;
#[cfg(feature = "in-process")]
pub mod report;
mod served;
#[cfg(feature = "in-process")]
pub mod suite;

pub use ::judge::{self, cache, check, effect, history, invariants, trace, verdict, wire, words};
