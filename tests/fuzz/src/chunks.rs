//! Bodies in chunks.

/// Splits the input into chunk length and body; `None` if it is empty.
pub(crate) fn of(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&length, body) = bytes.split_first()?;
    Some((usize::from(length).max(1), body))
}
