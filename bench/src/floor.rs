//! Baselines: servers that write the same bytes without any logic.

pub(crate) mod bare;
pub(crate) mod writer;
