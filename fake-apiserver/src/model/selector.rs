//! Label and field selectors.

/// Which objects are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {}

impl Selector {
    /// Selects everything.
    pub fn is_empty(&self) -> bool {
        true
    }
}
