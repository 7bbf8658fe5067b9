//! Line and column index of a text. Counting from the start for each position would be quadratic.

use super::Place;

/// Distance in bytes between cached character counts.
const BLOCK: usize = 1024;

/// Line index of a text.
#[derive(Debug)]
pub(crate) struct Lines<'t> {
    text: &'t str,
    /// Offset of each line.
    starts: Vec<usize>,
    /// Number of characters before each block.
    characters: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Builds the index.
    pub(crate) fn new(text: &'t str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut before = 0;
        let characters = text.as_bytes().chunks(BLOCK).map(|block| {
            let here = before;
            before += count(block);
            here
        });
        let mut characters: Vec<usize> = characters.collect();
        // The last block may end exactly at the end of the text.
        characters.push(before);
        Self {
            text,
            starts,
            characters,
        }
    }

    /// Returns line and column of a byte offset, in characters and from 1. Offsets past the end count as the end.
    pub(crate) fn place(&self, byte: usize) -> Place {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte);
        let start = self.starts[line.saturating_sub(1)];
        let column = self.characters_before(byte) - self.characters_before(start) + 1;
        Place {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// Returns a line, from 1, without its newline.
    pub(crate) fn line(&self, line: usize) -> Option<&'t str> {
        let start = *self.starts.get(line.checked_sub(1)?)?;
        let end = self.starts.get(line).map_or(self.text.len(), |next| next - 1);
        let text = self.text.get(start..end)?;
        Some(text.strip_suffix('\r').unwrap_or(text))
    }

    /// Returns the offset of a line, from 1.
    pub(crate) fn start(&self, line: usize) -> usize {
        let start = line.checked_sub(1).and_then(|line| self.starts.get(line));
        start.copied().unwrap_or(self.text.len())
    }

    fn characters_before(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        let bytes = self.text.as_bytes();
        self.characters[block] + count(&bytes[block * BLOCK..byte])
    }
}

/// Counts the characters that start in these bytes.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::start("a\nb", 0, 1, 1)]
    #[case::after_a_newline("a\nb", 2, 2, 1)]
    #[case::newline("a\nb", 1, 1, 2)]
    #[case::behind_a_wide_character("é: x", 2, 1, 2)]
    #[case::past_the_end("a\n", 9, 2, 1)]
    #[case::empty("", 0, 1, 1)]
    fn a_byte_has_a_line_and_a_column(
        #[case] text: &str,
        #[case] byte: usize,
        #[case] line: u32,
        #[case] column: u32,
    ) {
        assert_eq!(Lines::new(text).place(byte), Place { line, column });
    }

    #[test]
    fn columns_of_a_long_line_equal_a_plain_count() {
        let text = "é-".repeat(3 * BLOCK);
        let lines = Lines::new(&text);
        for (column, (byte, _)) in (1..).zip(text.char_indices()) {
            assert_eq!(lines.place(byte), Place { line: 1, column });
        }
        assert_eq!(lines.place(text.len()).column, 6 * 1024 + 1);
    }

    #[test]
    fn lines_have_no_newline() {
        let lines = Lines::new("a\r\nb\n");
        assert_eq!(
            [
                lines.line(0),
                lines.line(1),
                lines.line(2),
                lines.line(3),
                lines.line(4)
            ],
            [None, Some("a"), Some("b"), Some(""), None]
        );
    }
}
