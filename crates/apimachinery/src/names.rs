//! The forms of names: DNS labels and subdomains, and the words of label keys and values.
//!
//! Source: apimachinery `util/validation/validation.go`. The messages about a name that does not fit are elsewhere, because
//! each place has its own.

/// Longest DNS label, and longest word of a label key or value, in bytes.
pub const LABEL_MAX: usize = 63;

/// Longest DNS subdomain in bytes. The apiserver bounds the whole name, and not the length of its labels.
pub const SUBDOMAIN_MAX: usize = 253;

/// A DNS label (RFC 1123): [`has_label_form`], and not too long.
pub fn is_label(text: &str) -> bool {
    text.len() <= LABEL_MAX && has_label_form(text)
}

/// A DNS subdomain (RFC 1123): [`has_subdomain_form`], and not too long.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_MAX && has_subdomain_form(text)
}

/// A word of a label key or value: [`has_word_form`], and not too long.
pub fn is_word(text: &str) -> bool {
    text.len() <= LABEL_MAX && has_word_form(text)
}

/// Lower-case letters, digits and inner dashes, of any length: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`.
pub fn has_label_form(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_bounded(text, edge, b"-")
}

/// The same, with a letter first (RFC 1035): `[a-z]([-a-z0-9]*[a-z0-9])?`.
pub fn has_dns1035_label_form(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && has_label_form(text)
}

/// Labels with dots between them.
pub fn has_subdomain_form(text: &str) -> bool {
    text.split('.').all(has_label_form)
}

/// Letters, digits and inner `-`, `_` and `.`: `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`.
pub fn has_word_form(text: &str) -> bool {
    is_bounded(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Does it begin and end with `edge`, and have nothing else but `inner` between?
fn is_bounded(text: &str, edge: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|end| edge(*end)))
        && bytes.iter().all(|byte| edge(*byte) || inner.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: the text, and whether it is a label, a label that begins with a letter, a subdomain, a word.
    #[test]
    fn names_have_forms() {
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
