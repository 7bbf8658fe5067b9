//! Duplicate keys of a YAML document, with the messages of kube-apiserver. The document itself is parsed by a library, which
//! keeps the last value of such a key and does not report its position.
//!
//! It must not know the content.
//!
//! Source: `sigs.k8s.io/yaml` over `go.yaml.in/yaml/v2` (`decode.go`, `setMapIndex`).

use std::collections::BTreeSet;

use apimachinery::go_text;
use granit_parser::{Event, Parser, ScalarStyle};

/// A collection that is being parsed.
enum Open {
    Sequence,
    Mapping {
        keys: BTreeSet<String>,
        /// The key of the next value, as Go prints it, and its line; `None`: a key is next.
        key: Option<(String, usize)>,
    },
}

/// Returns the duplicate keys of `body` in the order of kube-apiserver: `line 6: key "foo" already set in map`, with the line
/// on which the value begins. A body that is not YAML has none.
pub(super) fn duplicates(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(text) = std::str::from_utf8(body) else {
        return found;
    };
    // Each with its first line.
    let mut open: Vec<(Open, usize)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let line = span.start.line();
        let ended = match event {
            Event::Scalar(value, style, ..) => {
                if let Some((Open::Mapping { key: key @ None, .. }, _)) = open.last_mut() {
                    *key = Some((shown(&value, style), line));
                    continue;
                }
                // A block begins with its indicator, after the key.
                match (open.last(), style) {
                    (
                        Some((
                            Open::Mapping {
                                key: Some((_, line)), ..
                            },
                            _,
                        )),
                        ScalarStyle::Literal | ScalarStyle::Folded,
                    ) => *line,
                    _ => line,
                }
            }
            Event::Alias(..) => line,
            Event::SequenceStart(..) => {
                open.push((Open::Sequence, line));
                continue;
            }
            Event::MappingStart(..) => {
                let mapping = Open::Mapping {
                    keys: BTreeSet::new(),
                    key: None,
                };
                open.push((mapping, line));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((_, began)) => began,
                None => continue,
            },
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..)
            | Event::UnresolvedAlias(_)
            | Event::Comment(..)
            | _ => continue,
        };
        if let Some((Open::Mapping { keys, key }, _)) = open.last_mut() {
            match key.take() {
                Some((key, _)) if keys.contains(&key) => {
                    found.push(format!("line {ended}: key {key} already set in map"));
                }
                Some((key, _)) => drop(keys.insert(key)),
                // A key that is not a scalar, which no object has.
                None => *key = Some((String::new(), ended)),
            }
        }
    }
    found
}

/// Returns the error of strict decoding for these keys.
pub(super) fn strict_error(duplicates: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "))
}

/// Formats a key as Go does: numbers and booleans unquoted, all others quoted.
fn shown(key: &str, style: ScalarStyle) -> String {
    let bare = style == ScalarStyle::Plain
        && (matches!(key, "true" | "false") || key.parse::<i64>().is_ok() || key.parse::<f64>().is_ok());
    if bare { key.to_owned() } else { go_text::quote(key) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none("a: 1\nb: 2\n", &[])]
    #[case::twice("a: 1\na: 2\n", &["line 2: key \"a\" already set in map"])]
    #[case::thrice("a: 1\na: 2\na: 3\n", &["line 2: key \"a\" already set in map", "line 3: key \"a\" already set in map"])]
    #[case::inner_before_outer("a:\n  b: 1\na:\n  b: 1\n  b: 2\n", &["line 5: key \"b\" already set in map", "line 4: key \"a\" already set in map"])]
    #[case::block("a: |\n  b\na: |\n\n  c\n", &["line 3: key \"a\" already set in map"])]
    #[case::flow("{a: 1, a: {b: [1]}}", &["line 1: key \"a\" already set in map"])]
    #[case::in_list("- a: 1\n  a:\n  - 1\n", &["line 3: key \"a\" already set in map"])]
    #[case::number("1: a\n1: b\n", &["line 2: key 1 already set in map"])]
    #[case::not_the_same("1: a\n\"1\": b\n", &[])]
    #[case::not_yaml("a: [", &[])]
    fn duplicate_keys_have_the_line_of_their_value(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(duplicates(text.as_bytes()), expected);
    }
}
