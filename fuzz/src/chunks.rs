//! Bodies that come in pieces.

/// How long the chunks are, and the body; `None` where there is nothing.
pub(crate) fn of(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&length, body) = bytes.split_first()?;
    Some((usize::from(length).max(1), body))
}
