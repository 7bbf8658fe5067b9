//! Splits bytes into lines of bounded length, for display. It must not know where they come from.

use super::{LINE_BYTES_MAX, shown};

/// Returns the parts of lines in `bytes`, without newlines; the flag is false for a last part without one.
pub(crate) fn parts_of_lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|part| match part.split_last() {
            Some((b'\n', text)) => (text, true),
            Some(_) | None => (part, false),
        })
}

/// Splitter of a byte stream into lines of bounded length.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    /// Bytes of this line that are dropped.
    more: u64,
}

impl Lines {
    pub(super) fn take(&mut self, bytes: &[u8], keep: &mut impl FnMut(String)) {
        for (text, ends) in parts_of_lines(bytes) {
            let fits = text.len().min(LINE_BYTES_MAX - self.line.len());
            self.line.extend_from_slice(&text[..fits]);
            self.more += (text.len() - fits) as u64;
            if ends {
                keep(self.cut());
            }
        }
    }

    pub(super) fn end(mut self, keep: &mut impl FnMut(String)) {
        if !self.line.is_empty() || self.more > 0 {
            keep(self.cut());
        }
    }

    fn cut(&mut self) -> String {
        let line = shown(&self.line, self.more);
        self.line.clear();
        self.more = 0;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        let mut keep = |line| all.push(line);
        for chunk in chunks {
            lines.take(chunk, &mut keep);
        }
        lines.end(&mut keep);
        all
    }

    #[test]
    fn lines_are_cut_wherever_the_chunks_are() {
        assert_eq!(lines(&[b"one\ntw", b"o\r\n\nlast"]), ["one", "two", "", "last"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(
            lines(&[b"\xff\xfe a\x1b[2Jb\n"]),
            ["\u{fffd}\u{fffd} a\\u{1b}[2Jb"]
        );
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let chunk = vec![b'x'; LINE_BYTES_MAX];
        let all = lines(&[&chunk, &chunk, &chunk]);
        assert_eq!(all.len(), 1);
        assert!(all[0].len() < LINE_BYTES_MAX + 40, "{} bytes", all[0].len());
        assert!(all[0].ends_with(&format!(" … {} more bytes", 2 * LINE_BYTES_MAX)));
    }
}
