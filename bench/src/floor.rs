//! What there is to approach: servers that write the same bytes and know nothing.

pub(crate) mod bare;
pub(crate) mod writer;
