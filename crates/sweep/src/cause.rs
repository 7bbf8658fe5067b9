//! Groups failures: the violated check, and its contradiction without the parts that differ between runs.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// A violated check and the pattern of its contradiction: `INV-13: the client does not hold …, after # without
/// faults: # missing`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cause(String);

/// Placeholder for a number, a name, a time or a list of them.
const ANY: &str = "#";

/// Units of time that follow a number.
const UNITS: [&str; 5] = ["ms", "s", "min", "h", "d"];

impl Cause {
    /// Returns the cause of a contradiction. Names of objects in random scenarios contain digits, and words do not.
    pub fn of(check: &str, sentence: &str) -> Self {
        // The rest is additional information: the client's last action, the versions it could have used.
        let sentence = sentence.split(';').next().unwrap_or_default();
        let sentence = sentence.split(" (and ").next().unwrap_or_default();
        Self(format!("{check}: {}", shape(sentence)))
    }

    /// Returns the check: `INV-13`, `run`, or `wire INV-04`.
    pub fn check(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn shape(sentence: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in without_quotes(sentence).split_whitespace() {
        let (bare, end) = punctuated(word);
        let after_number = words.last().is_some_and(|last| last == ANY);
        if after_number && UNITS.contains(&bare) {
            if !end.is_empty() {
                words.push(end.to_owned());
            }
            continue;
        }
        // `labelSelector=app`: a parameter of a request, which is a setting of the client.
        let is_any = bare.chars().any(|c| c.is_ascii_digit() || matches!(c, '#' | '='));
        // A list counts as a single value.
        let is_list = bare == "and" || bare.is_empty();
        if is_any && (after_number || words.ends_with(&[ANY.to_owned(), ",".to_owned()])) {
            words.truncate(words.iter().rposition(|word| word == ANY).map_or(0, |at| at + 1));
        } else if is_any {
            words.push(ANY.to_owned());
        } else if !is_list || !after_number {
            words.push(bare.to_owned());
        }
        if !end.is_empty() {
            words.push(end.to_owned());
        }
    }
    let mut text = String::new();
    for word in words {
        let is_mark = word.chars().all(|c| matches!(c, ',' | ':' | '.'));
        if !text.is_empty() && !is_mark {
            text.push(' ');
        }
        text.push_str(&word);
    }
    text
}

/// Splits a word and the punctuation after it.
fn punctuated(word: &str) -> (&str, &str) {
    let bare = word.trim_end_matches([',', ':', '.']);
    (bare.trim_matches(['(', ')']), &word[bare.len()..])
}

/// Replaces quoted texts, which are values.
fn without_quotes(sentence: &str) -> String {
    let parts: Vec<&str> = sentence.split('"').collect();
    let mut text = String::new();
    for (index, part) in parts.iter().enumerate() {
        text.push_str(if index % 2 == 0 { part } else { ANY });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Causes ignore what differs between runs, but not what is wrong.
    #[test]
    fn equal_causes_have_equal_patterns() {
        let of = |sentence| Cause::of("INV-13", sentence).to_string();
        let missing = "INV-13: the client does not hold what the server holds at the end, after # without faults: # missing";
        for sentence in [
            "the client does not hold what the server holds at the end, after 12 h without faults: o1 missing",
            "the client does not hold what the server holds at the end, after 3 min without faults: o1, o2 missing",
            "the client does not hold what the server holds at the end, after 3 min without faults: kube-system/o3 missing (and 2 more times)",
        ] {
            assert_eq!(of(sentence), missing);
        }
        assert_eq!(
            of(
                "the client watched from 12 at 0.800s, the version of o1, of which only 3 of 90 bytes were sent; it could resume only from 11"
            ),
            "INV-13: the client watched from # at #, the version of #, of which only # of # bytes were sent"
        );
        for sentence in [
            "the client sent WATCH resourceVersion=1003 only 0.8 s after 503 with Retry-After: 7",
            "the client sent WATCH resourceVersion=7 labelSelector=app!=x allowWatchBookmarks=true only 1 s after 429 with Retry-After: 30",
        ] {
            assert_eq!(
                of(sentence),
                "INV-13: the client sent WATCH # only # after # with Retry-After: #"
            );
        }
        assert_ne!(of("o1 missing"), of("o1 still there"));
        assert_eq!(of("o1.metadata is \"a b\" where"), "INV-13: # is # where");
    }

    #[test]
    fn a_cause_names_its_check() {
        assert_eq!(Cause::of("wire INV-04", "x").check(), "wire INV-04");
    }
}
