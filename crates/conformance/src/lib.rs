//! Runs watch clients against scenarios and reports what they did wrong, and why.
//!
//! [`client`] is the trait of in-process clients, `drive` runs one against the fake, [`trace`] is the record of both
//! sides, [`judge`](mod@judge) derives a [`verdict::Verdict`] from the trace alone, and [`report`] prints it. [`suite`]
//! does all of it for many scenarios; [`baseline`] has the known failures.

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
