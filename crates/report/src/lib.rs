//! Reports of conformance runs: pure functions of results and evidence. Values in, text out.
//!
//! [`results`] are the lines of `conformance --format json`; [`html`] draws them with the evidence; [`sarif`],
//! [`badge`], [`summary`] and [`annotations`] are for CI; [`diff`] compares two runs. [`published`] is the record of all
//! clients of the repository, and [`site`] its pages. It must not read files, start processes or judge: verdicts are inputs.

pub mod anchor;
pub mod annotations;
pub mod badge;
pub mod diff;
pub mod html;
pub mod live;
pub mod published;
pub mod results;
pub mod sarif;
pub mod site;
pub mod summary;
mod tally;
mod text;
pub mod timeline;
