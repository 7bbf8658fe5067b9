//! Finds the end of a JSON value without parsing it: only brackets and strings are tracked; the decoder checks the
//! grammar.

use wide::u8x16;

/// Search for the end of one value. Each byte is scanned once, however many chunks the value spans.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueEnd {
    depth: u32,
    state: State,
    /// The next byte follows a backslash.
    is_escaped: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing scanned yet.
    #[default]
    Before,
    /// Outside strings, inside brackets.
    Between,
    InString,
    /// In a number or literal, which ends only at the next delimiter.
    Scalar,
}

/// Number of bytes processed together, one bit each.
const BLOCK: usize = 64;

impl ValueEnd {
    /// Continues with the bytes after those already scanned; returns how many of them belong to the value once it
    /// ends.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            // The start of the outermost value, and the end of a value without brackets, are scanned byte by byte.
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

    /// Returns true at the last byte of the value.
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

    /// Processes a block inside brackets; returns how many bytes belong to the value if it ends in the block.
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let Brackets { opening, closing, .. } = self.brackets(block);
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
        None
    }

    /// Returns the brackets of the block that are outside strings.
    #[inline]
    fn brackets(&mut self, block: &[u8; BLOCK]) -> Brackets {
        let [backslashes, quotes, opening, closing] = bits(block, |bytes| {
            // `{` and `[` differ in one bit, as do `}` and `]`.
            let bracket = bytes | u8x16::splat(0x20);
            [
                bytes.simd_eq(u8x16::splat(b'\\')),
                bytes.simd_eq(u8x16::splat(b'"')),
                bracket.simd_eq(u8x16::splat(b'{')),
                bracket.simd_eq(u8x16::splat(b'}')),
            ]
        });
        let escaped = self.escaped(backslashes);
        let mut strings = prefix_xor(quotes & !escaped);
        if self.state == State::InString {
            strings = !strings;
        }
        self.state = if strings >> (BLOCK - 1) == 1 {
            State::InString
        } else {
            State::Between
        };
        let between = !(strings | escaped);
        Brackets {
            opening: opening & between,
            closing: closing & between,
            between,
        }
    }

    /// Returns the escaped bytes. As in simdjson: a run of backslashes is a subtraction with borrow.
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

/// Number of blocks that [`count_items`] scans: in longer lists the items are large, or so many that the size hint
/// matters less.
const COUNTED_BLOCKS: usize = 4;

/// Counts the items of a list, given the bytes from its first item on; for a long list, returns a lower bound.
pub(super) fn count_items(bytes: &[u8]) -> usize {
    let mut values = ValueEnd {
        state: State::Between,
        ..ValueEnd::default()
    };
    let (mut items, mut depth) = (1, 0_usize);
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]).take(COUNTED_BLOCKS) {
        let Brackets {
            opening,
            closing,
            between,
        } = values.brackets(block);
        let [commas] = bits(block, |bytes| [bytes.simd_eq(u8x16::splat(b','))]);
        if (closing.count_ones() as usize) < depth {
            depth = depth + opening.count_ones() as usize - closing.count_ones() as usize;
            continue;
        }
        let mut marks = opening | closing | (commas & between);
        while marks != 0 {
            let mark = marks & marks.wrapping_neg();
            marks ^= mark;
            if opening & mark != 0 {
                depth += 1;
            } else if closing & mark == 0 {
                items += usize::from(depth == 0);
            } else if depth == 0 {
                return items;
            } else {
                depth -= 1;
            }
        }
    }
    items
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Bitmasks of the brackets in a block.
struct Brackets {
    opening: u64,
    closing: u64,
    /// Bytes outside strings and not escaped.
    between: u64,
}

/// Returns one bitmask per search function.
fn bits<const N: usize>(block: &[u8; BLOCK], seek: impl Fn(u8x16) -> [u8x16; N]) -> [u64; N] {
    let mut bits = [0; N];
    for (part, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
        for (bits, found) in bits.iter_mut().zip(seek(u8x16::new(*bytes))) {
            *bits |= u64::from(found.to_bitmask()) << (16 * part);
        }
    }
    bits
}

/// Each bit is the parity of the bits up to it: set from an opening quote up to, but not including, the closing one.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

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

    /// Byte-by-byte reference implementation.
    fn slowly(text: &[u8]) -> Option<usize> {
        let mut end = ValueEnd::default();
        let step = |at: usize| end.advance(&text[at..=at]).map(|seen| at + seen);
        (0..text.len()).find_map(step)
    }

    #[rstest]
    #[case("1]", 1)]
    #[case(r#"{"a":[1,2],"b":"],{"},{}], [3, 4]"#, 2)]
    #[case(r#""\",",",",3],5"#, 3)]
    fn items_are_counted(#[case] text: &str, #[case] items: usize) {
        assert_eq!(count_items(text.as_bytes()), items);
    }

    #[test]
    fn long_lists_are_counted_up_to_the_limit() {
        let text = "{},".repeat(1000);
        assert_eq!(
            count_items(text.as_bytes()),
            1 + COUNTED_BLOCKS * BLOCK / "{},".len()
        );
    }

    proptest! {
        #[test]
        fn items_are_counted_as_serde_counts_them(items in prop::collection::vec((".{0,9}", 0..3_usize), 1..12)) {
            let items = items.into_iter().map(|(text, more)| serde_json::json!({"a": text, "b": vec![text.as_str(); more]}));
            let list = serde_json::Value::from_iter(items);
            let text = list.to_string() + ",[";
            let counted = count_items(&text.as_bytes()[1..]);
            if text.len() < COUNTED_BLOCKS * BLOCK {
                prop_assert_eq!(Some(counted), list.as_array().map(Vec::len));
            } else {
                prop_assert!(list.as_array().is_some_and(|list| counted <= list.len()));
            }
        }

        #[test]
        fn serde_agrees(items in prop::collection::vec(".{0,8}", 0..4), number in any::<f64>()) {
            let value = serde_json::json!({"items": items, "n": number, "nested": {"again": items}}).to_string();
            let text = format!("{value} {{}}");
            prop_assert_eq!(ValueEnd::default().advance(text.as_bytes()), Some(value.len()));
        }

        /// Block and byte scanning agree at any offset: in strings, after backslashes, and in invalid JSON.
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
