//! Frames of lines that several watches of one collection get, one soon after the other: each is read and kept once. It must not
//! know more of a line than `frame` does.

use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::FixedState;

use super::frame::{self, Named};
use crate::model::WatchFrame;

/// Number of lines that are kept: several times as many as a read from a connection has, so that few of them replace each other.
const LINES: usize = 4_096;

/// Longest line that is kept, in bytes, so that all of them have a bound.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Bytes of a line that select its place: name, UID and version are at its beginning.
const HASHED_BYTES: usize = 256;

/// Lines that were read last.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Each at the place of its hash; empty before the first line.
    read: Vec<Option<(WatchFrame, Option<Arc<Named>>)>>,
}

impl Frames {
    /// Returns what [`frame::read`] does. `line` may be part of a longer chunk, and is copied.
    pub(crate) fn read(&mut self, line: &[u8]) -> (WatchFrame, Option<Arc<Named>>) {
        if line.len() > LINE_BYTES_MAX {
            return read(line);
        }
        if self.read.is_empty() {
            self.read.resize(LINES, None);
        }
        let mut hasher = FixedState::default().build_hasher();
        hasher.write(&line[..line.len().min(HASHED_BYTES)]);
        hasher.write_usize(line.len());
        // Fits: the remainder is less than LINES.
        let place = (hasher.finish() % LINES as u64) as usize;
        let known = &mut self.read[place];
        match known {
            Some((frame, named)) if frame.line == line => (frame.clone(), named.clone()),
            Some(_) | None => known.insert(read(line)).clone(),
        }
    }
}

fn read(line: &[u8]) -> (WatchFrame, Option<Arc<Named>>) {
    let (frame, named) = frame::read(Bytes::copy_from_slice(line));
    (frame, named.map(Arc::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: usize, padding: usize) -> String {
        let padding = "x".repeat(padding);
        format!(
            r#"{{"type":"ADDED","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{name}","uid":"u","resourceVersion":"7"}},"x":"{padding}"}}}}{}"#,
            '\n'
        )
    }

    #[test]
    fn each_line_is_read_as_by_itself() {
        let mut frames = Frames::default();
        for round in 0..2 {
            // More lines than places: some replace others.
            for name in 0..3 * LINES {
                let line = line(name, name % 7);
                let (frame, named) = frames.read(line.as_bytes());
                let (alone, of_kind) = frame::read(Bytes::from(line));
                assert_eq!(
                    (&frame, named.as_deref()),
                    (&alone, of_kind.as_ref()),
                    "round {round}"
                );
            }
        }
    }

    #[test]
    fn equal_lines_share_their_bytes() {
        let mut frames = Frames::default();
        let at = |frame: &WatchFrame| frame.line.as_ptr();
        let (short, long) = (line(1, 10), line(1, LINE_BYTES_MAX));
        let [first, second] = [0; 2].map(|_| frames.read(short.as_bytes()).0);
        assert_eq!(at(&first), at(&second));
        let [first, second] = [0; 2].map(|_| frames.read(long.as_bytes()).0);
        assert_ne!(at(&first), at(&second), "a long line is not kept");
    }
}
