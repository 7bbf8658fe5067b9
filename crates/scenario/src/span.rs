//! Where something is in a file.

/// A stretch of the file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Span {
    /// The first byte.
    pub(crate) start: usize,
    /// One past the last byte.
    pub(crate) end: usize,
}

impl Span {
    /// `other` begins inside this span.
    pub(crate) fn holds(self, other: Span) -> bool {
        self.start <= other.start && other.start < self.end.max(self.start + 1)
    }
}
