//! Random scenarios by the million: drawn from seeds, played in `sim`, judged; each failure is shrunk to a scenario file.
//!
//! [`generate`] draws a scenario from a seed, [`play`] runs and judges it, [`cause`] groups what was found, [`shrink`] makes
//! it small, [`mod@coverage`] counts what was reached, [`run`] does all of it for many seeds on all cores, and [`result`]
//! holds what came of it, to be merged and printed. It must not know any one client, and prints nothing.

pub mod cause;
pub mod coverage;
pub mod found;
pub mod generate;
pub mod play;
pub mod report;
pub mod result;
pub mod run;
pub mod shrink;

pub use generate::{Draft, Profile};
