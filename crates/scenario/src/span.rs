//! Byte ranges in a file.

/// A byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Span {
    /// The first byte.
    pub(crate) start: usize,
    /// One past the last byte.
    pub(crate) end: usize,
}

impl Span {
    /// Returns true if `other` starts inside this span.
    pub(crate) fn holds(self, other: Span) -> bool {
        self.start <= other.start && other.start < self.end.max(self.start + 1)
    }
}
