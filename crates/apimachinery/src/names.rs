//! Formats of names: DNS labels and subdomains, and the parts of label keys and values.
//!
//! Source: apimachinery `util/validation/validation.go`. Error messages are elsewhere, because they differ by field.

/// Maximum length in bytes of a DNS label, and of a part of a label key or value.
pub const LABEL_MAX: usize = 63;

/// Maximum length in bytes of a DNS subdomain. The apiserver does not limit the length of its labels.
pub const SUBDOMAIN_MAX: usize = 253;

/// Returns whether `text` is a DNS label (RFC 1123): [`has_label_form`], and not too long.
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && has_label_form(text)
}

/// Returns whether `text` is a DNS subdomain (RFC 1123): [`has_subdomain_form`], and not too long.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && has_subdomain_form(text)
}

/// Returns whether `text` is valid in a label key or value: [`has_word_form`], and not too long.
pub fn is_word(text: &str) -> bool {
    text.len() <= LABEL_MAX && has_word_form(text)
}

/// Returns whether `text` has only lower-case letters, digits and inner dashes, at any length:
/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`.
pub fn has_label_form(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_bounded(text, edge, b"-")
}

/// Returns whether `text` has the format of a label that begins with a letter (RFC 1035): `[a-z]([-a-z0-9]*[a-z0-9])?`.
pub fn has_dns1035_label_form(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && has_label_form(text)
}

/// Returns whether `text` consists of labels separated by dots.
pub fn has_subdomain_form(text: &str) -> bool {
    text.split('.').all(has_label_form)
}

/// Returns whether `text` has only letters, digits and inner `-`, `_` and `.`: `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`.
pub fn has_word_form(text: &str) -> bool {
    is_bounded(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Returns whether the first and last bytes match `edge`, and all others match `edge` or are in `inner`.
fn is_bounded(text: &str, edge: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|end| edge(*end)))
        && bytes.iter().all(|byte| edge(*byte) || inner.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: the text, and whether it is a label, an RFC 1035 label, a subdomain, a part of a label.
    #[test]
    fn names_are_classified_by_format() {
        let long = ["a".repeat(63), "a".repeat(64)];
        for (text, expected) in [
            ("a", [true, true, true, true]),
            ("9", [true, false, true, true]),
            ("a-b", [true, true, true, true]),
            ("a.b-c.d1", [false, false, true, true]),
            ("a_b", [false, false, false, true]),
            ("A", [false, false, false, true]),
            ("-a", [false; 4]),
            ("a-", [false; 4]),
            ("a..b", [false, false, false, true]),
            ("ä", [false; 4]),
            ("", [false; 4]),
            (long[0].as_str(), [true, true, true, true]),
            (long[1].as_str(), [false, true, true, false]),
        ] {
            let found = [
                is_label(text),
                has_dns1035_label_form(text),
                is_subdomain(text),
                is_word(text),
            ];
            assert_eq!(found, expected, "{text}");
        }
        assert!(is_subdomain(&"a".repeat(253)));
        assert!(!is_subdomain(&"a".repeat(254)));
    }
}
