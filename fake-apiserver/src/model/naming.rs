//! Names of objects: what they must look like, and how the server finds one that begins as asked.
//!
//! Source: apimachinery `api/validation`, apiserver `storage/names/generate.go`.

use crate::api::{Cause, go_text};

use super::catalog::NameRule;

/// The letters of generated names: none that makes a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Letters a generated name adds.
const ADDED: usize = 5;

/// Letters of the prefix that it keeps, so that the name stays a label.
const KEPT: usize = 63 - ADDED;

/// A name that begins with `prefix`; `seed` is left as the next one's.
pub(super) fn generate(prefix: &str, seed: &mut u64) -> String {
    let mut name: String = prefix.chars().take(KEPT).collect();
    for _ in 0..ADDED {
        // splitmix64: good from any seed, the small ones too.
        *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let letter = (bits ^ (bits >> 31)) % ALPHABET.len() as u64;
        name.push(char::from(ALPHABET[letter as usize]));
    }
    name
}

/// What is wrong with a name, as the server puts it.
pub(super) fn faults(rule: NameRule, name: &str) -> Vec<Cause> {
    let (longest, legal, what) = match rule {
        NameRule::Subdomain => (
            253,
            name.split('.').all(|part| is_label(part, false)),
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        NameRule::Label => (
            63,
            is_label(name, false),
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        NameRule::LetterLabel => (
            63,
            is_label(name, true),
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
    };
    let too_long = format!("must be no more than {longest} characters");
    let wrong = [(name.len() > longest, too_long.as_str()), (!legal, what)];
    wrong
        .into_iter()
        .filter(|(is_wrong, _)| *is_wrong)
        .map(|(_, why)| Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {}: {why}", go_text::quote(name)),
            field: "metadata.name".to_owned(),
        })
        .collect()
}

/// Lower case letters, digits and inner dashes.
fn is_label(text: &str, letter_first: bool) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let first_fits = if letter_first {
        first.is_ascii_lowercase()
    } else {
        plain(*first)
    };
    first_fits && plain(*last) && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}
