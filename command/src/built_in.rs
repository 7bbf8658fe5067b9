//! The scenarios that are part of this program.

/// Id and text of every scenario of this version, and the milliseconds that our watcher needs for it in virtual time.
pub(crate) const SCENARIOS: &[(&str, &str, u64)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));
