//! Lines of a watch, put together from the chunks in which they arrive. No meaning of the bytes.

use bytes::{Bytes, BytesMut};

/// Longest line, in bytes: many times what etcd stores of an object.
pub(crate) const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lines of one watch.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Complete lines, and the beginning of one.
    received: Bytes,
    /// The beginning of the first line, if it arrived in several chunks.
    begun: BytesMut,
}

/// A line is longer than [`LINE_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// Adds a chunk. Call [`Lines::next`] until `None` before the next one.
    ///
    /// # Errors
    /// The line that has begun is too long.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Result<(), TooLong> {
        debug_assert!(
            self.received.is_empty(),
            "all lines of the chunk before were taken"
        );
        if self.begun.len() + chunk.len() > LINE_BYTES_MAX && memchr::memchr(b'\n', &chunk).is_none() {
            return Err(TooLong);
        }
        self.received = chunk;
        Ok(())
    }

    /// Returns the next complete line, with its newline. It may be part of the chunk: to keep it is to keep that.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        let Some(newline) = memchr::memchr(b'\n', &self.received) else {
            self.begun.extend_from_slice(&std::mem::take(&mut self.received));
            return None;
        };
        let end = self.received.split_to(newline + 1);
        if self.begun.is_empty() {
            return Some(end);
        }
        self.begun.extend_from_slice(&end);
        Some(std::mem::take(&mut self.begun).freeze())
    }

    /// Returns what is left of a line without an end.
    pub(crate) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.begun).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&'static str]) -> (Vec<String>, String) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(Bytes::from_static(chunk.as_bytes())).expect("short");
            while let Some(line) = lines.next() {
                found.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        (found, String::from_utf8_lossy(&lines.rest()).into_owned())
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let whole = "a\nbc\n\nd";
        let expected = (
            vec!["a\n".to_owned(), "bc\n".to_owned(), "\n".to_owned()],
            "d".to_owned(),
        );
        assert_eq!(lines(&[whole]), expected);
        for at in 1..whole.len() {
            assert_eq!(lines(&[&whole[..at], &whole[at..]]), expected, "cut at {at}");
        }
        assert_eq!(lines(&["a", "\n", "b", "c", "\n\n", "d"]), expected);
    }

    #[test]
    fn a_line_is_bounded() {
        let mut lines = Lines::default();
        let long = Bytes::from(vec![b'x'; LINE_BYTES_MAX]);
        lines.push(long.clone()).expect("at the limit");
        assert_eq!(lines.next(), None);
        assert_eq!(lines.push(long), Err(TooLong));
    }
}
