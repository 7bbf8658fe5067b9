//! Continue tokens.

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// The revision all pages show; `-1`: the newest, inconsistently.
    pub revision: i64,
    /// The first key of the next page is not before this, relative to the collection.
    pub start: String,
}

impl ContinueToken {
    /// The token's text.
    pub fn encode(&self) -> String {
        String::new()
    }

    /// Reads a token's text. Errors are the server's own words.
    pub fn decode(text: &str) -> Result<Self, String> {
        Err(text.to_owned())
    }
}
