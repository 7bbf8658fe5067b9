//! Query of a request, decoded once although many parts of the server read it.

use std::fmt;
use std::sync::OnceLock;

use apimachinery::path::query_pairs;

/// Query of a request, without the `?`.
#[derive(Clone, Default)]
pub struct Query {
    text: String,
    pairs: OnceLock<Vec<(String, String)>>,
}

impl Query {
    /// Returns the query as sent, percent-encoded.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the decoded parameters, in the order sent.
    pub fn pairs(&self) -> &[(String, String)] {
        self.pairs.get_or_init(|| query_pairs(&self.text))
    }

    /// Frees the decoded parameters, which are decoded again when needed: a watch keeps its request for as long as it is open.
    pub(crate) fn compact(&mut self) {
        self.pairs = OnceLock::new();
    }
}

impl From<String> for Query {
    /// Takes a query as sent.
    fn from(text: String) -> Self {
        Self {
            text,
            pairs: OnceLock::new(),
        }
    }
}

impl From<&str> for Query {
    /// Takes a query as sent.
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_again_after_they_were_freed() {
        let mut query = Query::from("a=b%20c&d");
        let decoded = [
            ("a".to_owned(), "b c".to_owned()),
            ("d".to_owned(), String::new()),
        ];
        assert_eq!(query.pairs(), decoded);
        query.compact();
        assert_eq!(query.pairs(), decoded);
        assert_eq!(query.as_str(), "a=b%20c&d");
    }
}
