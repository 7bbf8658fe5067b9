//! resourceVersions: opaque text returned to the server verbatim, and the one comparison that Kubernetes guarantees.
//!
//! No version is parsed into a machine integer: versions have up to 128 bits, and some servers' versions are not
//! numbers.

use std::cmp::Ordering;
use std::fmt;

/// A `metadata.resourceVersion` at which a watch may start: neither empty nor `0`, which mean "most recent" and
/// "any".
///
/// Source: API concepts, "Resource versions".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(String);

impl ResourceVersion {
    /// Creates a version from the text of a `resourceVersion` field; `None` for `""` and `"0"`.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!matches!(text.as_str(), "" | "0")).then_some(Self(text))
    }

    /// Returns the text, verbatim.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares with another version of the same collection; `None` if either is not a plain decimal number, in which
    /// case only equality is meaningful.
    ///
    /// Source: KEP-5504, comparable resource versions (decimal, no leading zero, below 2^128).
    pub fn compare(&self, other: &str) -> Option<Ordering> {
        (is_decimal(&self.0) && is_decimal(other)).then(|| {
            self.0
                .len()
                .cmp(&other.len())
                .then_with(|| self.0.as_str().cmp(other))
        })
    }

    /// Returns true if `other` is known to be older than this version.
    pub fn is_newer_than(&self, other: &str) -> bool {
        self.compare(other) == Some(Ordering::Greater)
    }

    /// Replaces the text in place; returns `false` and changes nothing if a watch cannot start at it.
    pub(crate) fn set(&mut self, text: &str) -> bool {
        if matches!(text, "" | "0") {
            return false;
        }
        self.0.clear();
        self.0.push_str(text);
        true
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("9", "10", Some(Ordering::Less))]
    #[case("10", "10", Some(Ordering::Equal))]
    #[case(
        "340282366920938463463374607431768211455",
        "340282366920938463463374607431768211454",
        Some(Ordering::Greater)
    )]
    #[case("v1:a", "10", None)]
    #[case("010", "9", None)]
    fn only_plain_decimals_compare(
        #[case] left: &str,
        #[case] right: &str,
        #[case] expected: Option<Ordering>,
    ) {
        assert_eq!(ResourceVersion::new(left).unwrap().compare(right), expected);
    }

    #[test]
    fn empty_and_zero_start_no_watch() {
        assert_eq!(ResourceVersion::new(""), None);
        assert_eq!(ResourceVersion::new("0"), None);
        let mut version = ResourceVersion::new("7").unwrap();
        assert!(!version.set("") && !version.set("0"));
        assert_eq!(version.as_str(), "7");
    }
}
