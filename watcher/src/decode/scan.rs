//! Where a JSON value ends, found without reading it: only brackets and strings count, and no grammar: what lies between
//! is checked by whoever decodes it.

use wide::u8x16;

/// The search for the end of one value. Each byte is looked at once, however often more bytes come.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueEnd {
    depth: u32,
    state: State,
    /// The next byte is behind a backslash.
    is_escaped: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was seen.
    #[default]
    Before,
    /// Between strings, and inside of brackets.
    Between,
    InString,
    /// In a number, or a literal: only what follows tells that it is over.
    Scalar,
}

/// Bytes that are looked at together, a bit each.
const BLOCK: usize = 64;

impl ValueEnd {
    /// Looks on, at the bytes behind those it has seen; `Some` is how many of them belong to the value, when it ends.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // The outermost value must begin, and if it has no brackets end, byte by byte.
            if self.depth > 0
                && let Some(block) = bytes[at..].first_chunk::<BLOCK>()
            {
                if let Some(end) = self.block(block) {
                    return Some(at + end);
                }
                at += BLOCK;
            } else if self.state == State::Scalar && !is_scalar(byte) {
                return Some(at);
            } else {
                at += 1;
                if self.byte(byte) {
                    return Some(at);
                }
            }
        }
        None
    }

    /// True for the last byte of the value.
    fn byte(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.is_escaped) {
            return false;
        }
        match (self.state, byte) {
            (_, b'\\') => self.is_escaped = true,
            (State::InString, b'"') => {
                self.state = State::Between;
                return self.depth == 0;
            }
            (State::InString, _) | (State::Scalar, _) => {}
            (State::Before | State::Between, b'"') => self.state = State::InString,
            (State::Before | State::Between, b'{' | b'[') => {
                self.depth += 1;
                self.state = State::Between;
            }
            (State::Before | State::Between, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            (State::Before, byte) if !byte.is_ascii_whitespace() => self.state = State::Scalar,
            (State::Before | State::Between, _) => {}
        }
        false
    }

    /// The same for many bytes inside of brackets; `Some` is how many of them belong to the value, when it ends.
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let Marks {
            backslashes,
            quotes,
            opening,
            closing,
        } = Marks::of(block);
        let escaped = self.escaped(backslashes);
        let mut strings = prefix_xor(quotes & !escaped);
        if self.state == State::InString {
            strings = !strings;
        }
        let is_bracket = !(strings | escaped);
        let (opening, closing) = (opening & is_bracket, closing & is_bracket);
        if closing.count_ones() >= self.depth {
            let mut brackets = opening | closing;
            while brackets != 0 {
                let at = brackets.trailing_zeros();
                brackets &= brackets - 1;
                if opening >> at & 1 == 1 {
                    self.depth += 1;
                } else {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at as usize + 1);
                    }
                }
            }
        } else {
            self.depth = self.depth + opening.count_ones() - closing.count_ones();
        }
        self.state = if strings >> (BLOCK - 1) == 1 {
            State::InString
        } else {
            State::Between
        };
        None
    }

    /// The bytes behind an odd backslash. As in simdjson: a run of backslashes is a subtraction that borrows.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let carried = u64::from(self.is_escaped);
        if backslashes == 0 {
            self.is_escaped = false;
            return carried;
        }
        let may_escape = backslashes & !carried;
        let behind = (may_escape << 1) | ODD;
        let run_ends = behind.wrapping_sub(may_escape) ^ ODD;
        let escaped = run_ends ^ (backslashes | carried);
        self.is_escaped = (run_ends & backslashes) >> (BLOCK - 1) == 1;
        escaped
    }
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Where in a block the bytes are that mean something.
struct Marks {
    backslashes: u64,
    quotes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self {
            backslashes: 0,
            quotes: 0,
            opening: 0,
            closing: 0,
        };
        for (part, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            // `{` and `[` differ in one bit, and so do `}` and `]`.
            let bracket = bytes | u8x16::splat(0x20);
            let bits = |found: u8x16| u64::from(found.to_bitmask()) << (16 * part);
            marks.backslashes |= bits(bytes.simd_eq(u8x16::splat(b'\\')));
            marks.quotes |= bits(bytes.simd_eq(u8x16::splat(b'"')));
            marks.opening |= bits(bracket.simd_eq(u8x16::splat(b'{')));
            marks.closing |= bits(bracket.simd_eq(u8x16::splat(b'}')));
        }
        marks
    }
}

/// Each bit is the parity of those up to it: between two quotes, the second one not included, there is a string.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
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
        for length in 0..text.len() {
            let found = ValueEnd::default().advance(&text.as_bytes()[..length]);
            let expected = (length > value.len() || (length == value.len() && !text.starts_with(['-', 'n'])))
                .then_some(value.len());
            assert_eq!(found, expected, "after {length} bytes");
        }
    }

    /// Byte by byte.
    fn slowly(text: &[u8]) -> Option<usize> {
        let mut end = ValueEnd::default();
        let step = |at: usize| end.advance(&text[at..=at]).map(|seen| at + seen);
        (0..text.len()).find_map(step)
    }

    proptest! {
        #[test]
        fn serde_agrees(items in prop::collection::vec(".{0,8}", 0..4), number in any::<f64>()) {
            let value = serde_json::json!({"items": items, "n": number, "nested": {"again": items}}).to_string();
            let text = format!("{value} {{}}");
            prop_assert_eq!(ValueEnd::default().advance(text.as_bytes()), Some(value.len()));
        }

        /// Blocks see what bytes see, wherever they begin: in strings and behind backslashes, and in what is no JSON.
        #[test]
        fn blocks_and_bytes_agree(text in r#"[\[{]([\\"\[\]{}a ]|\\\\){0,300}"#, cut in 0_usize..300) {
            let text = text.as_bytes();
            let (first, second) = text.split_at(cut.min(text.len()));
            let mut end = ValueEnd::default();
            let found = end.advance(first).or_else(|| end.advance(second).map(|seen| first.len() + seen));
            prop_assert_eq!(found, slowly(text));
        }
    }
}
