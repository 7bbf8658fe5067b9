//! Recordings: what a server has recorded becomes a scenario that gives the same verdict.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod record;
mod round_trip;
