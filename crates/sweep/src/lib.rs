//! Random scenarios by the million: generated from seeds, run in `sim`, judged; each failure is shrunk to a scenario
//! file.
//!
//! [`generate`] creates a scenario from a seed, [`play`] runs and judges it, [`cause`] groups findings, [`shrink`]
//! minimises a failure, [`mod@coverage`] counts coverage, [`digest`] sums up traces, [`run`] combines them for many seeds on all cores,
//! [`result`] contains the results, to be merged and printed. [`parity`] compares verdicts in `sim` and over sockets, [`links`] runs
//! with and without HTTP libraries. Independent of clients; prints nothing.

pub mod cause;
pub mod coverage;
pub mod digest;
pub mod found;
pub mod generate;
pub mod links;
pub mod parity;
pub mod play;
pub mod report;
pub mod result;
pub mod run;
pub mod shrink;

pub use generate::{Draft, Profile};
