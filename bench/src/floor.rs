//! Baselines: servers that write the same bytes without any logic, and a proxy that forwards them.

pub(crate) mod bare;
pub(crate) mod proxy;
pub(crate) mod writer;
