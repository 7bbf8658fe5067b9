//! Finds where a JSON value ends, in bytes that may end before it does. Knows brackets and strings, and no grammar: what
//! lies between is checked by whoever decodes it.

/// The search for the end of one value. Each byte is looked at once, however often more bytes come.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueEnd {
    /// Bytes before this offset were seen.
    at: usize,
    depth: u32,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was seen.
    #[default]
    Before,
    /// Between brackets.
    Between,
    InString,
    /// Behind a backslash.
    Escaped,
    /// In a number, or a literal: only what follows tells that it is over.
    Scalar,
}

impl ValueEnd {
    /// Was nothing seen yet?
    pub(super) fn is_fresh(&self) -> bool {
        self.at == 0
    }

    /// Looks on; `Some` is the offset behind the value. `bytes` must begin with the value, as before, and may have grown.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(rest) = bytes.get(self.at..).filter(|rest| !rest.is_empty()) {
            match self.state {
                State::Escaped => {
                    self.at += 1;
                    self.state = State::InString;
                }
                State::InString => match memchr::memchr2(b'"', b'\\', rest) {
                    None => self.at = bytes.len(),
                    Some(found) => {
                        self.at += found + 1;
                        if rest[found] == b'\\' {
                            self.state = State::Escaped;
                        } else if self.depth == 0 {
                            return Some(self.at);
                        } else {
                            self.state = State::Between;
                        }
                    }
                },
                State::Before | State::Between => {
                    if let Some(end) = self.between(rest) {
                        return Some(end);
                    }
                }
                State::Scalar => {
                    let is_part =
                        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                    match rest.iter().position(|byte| !is_part(byte)) {
                        None => self.at = bytes.len(),
                        Some(found) => return Some(self.at + found),
                    }
                }
            }
        }
        None
    }

    /// Up to the next string, or the end.
    fn between(&mut self, rest: &[u8]) -> Option<usize> {
        for (offset, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.at += offset + 1;
                    self.state = State::InString;
                    return None;
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.state = State::Between;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(self.at + offset + 1);
                    }
                }
                _ if self.state == State::Before && !byte.is_ascii_whitespace() => {
                    self.at += offset;
                    self.state = State::Scalar;
                    return None;
                }
                _ => {}
            }
        }
        self.at += rest.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case(r#"{"a":[1,{"b":"}]"}]} x"#, r#"{"a":[1,{"b":"}]"}]}"#)]
    #[case(r#""a\"b\\","c""#, r#""a\"b\\""#)]
    #[case("-1.5e+3,", "-1.5e+3")]
    #[case("null}", "null")]
    #[case("[],", "[]")]
    fn a_value_ends_there(#[case] text: &str, #[case] value: &str) {
        assert_eq!(ValueEnd::default().advance(text.as_bytes()), Some(value.len()));
        let mut end = ValueEnd::default();
        for length in 0..text.len() {
            let found = end.clone().advance(&text.as_bytes()[..length]);
            let expected = (length > value.len() || (length == value.len() && !text.starts_with(['-', 'n'])))
                .then_some(value.len());
            assert_eq!(found, expected, "after {length} bytes");
            if found.is_none() {
                end.advance(&text.as_bytes()[..length]);
            }
        }
    }

    proptest! {
        #[test]
        fn serde_agrees(items in prop::collection::vec(".{0,8}", 0..4), number in any::<f64>()) {
            let value = serde_json::json!({"items": items, "n": number, "nested": {"again": items}}).to_string();
            let text = format!("{value} {{}}");
            prop_assert_eq!(ValueEnd::default().advance(text.as_bytes()), Some(value.len()));
        }
    }
}
