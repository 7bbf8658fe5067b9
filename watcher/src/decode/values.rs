//! Splits a byte stream into JSON objects. Independent of their meaning.
//!
//! In the common case a value is one line, delimited by its newline and validated by the same parse that decodes its
//! object. A value over several lines is scanned for its closing brace, each byte once.

use bytes::{Buf, Bytes, BytesMut};

use super::envelope::{Envelope, EnvelopeError};
use crate::error::Malformed;

/// Bytes that do not yet form a complete value.
///
/// Lines within one chunk are read in place; only the remainder at the end of a chunk is copied.
#[derive(Debug)]
pub(super) struct Values {
    /// Start of a value whose end has not been received.
    begun: BytesMut,
    /// The last chunk; it follows `begun`.
    chunk: Bytes,
    /// There is no newline before this offset.
    searched: usize,
    spread: Option<Spread>,
    limit: usize,
    is_broken: bool,
}

/// A piece of the input.
#[derive(Debug)]
pub(super) enum Cut<'a> {
    /// A line, probably one value. A callback that accepts it must have verified that it is exactly one value; if it
    /// returns false, the line is passed again as a parsed value.
    Line(&'a str),
    Value {
        envelope: Envelope<'a>,
        text: &'a str,
    },
    Malformed(Malformed),
}

/// What to do with the start of the input.
enum Step {
    More,
    Spread,
    Taken(usize),
    Broken,
}

impl Values {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            begun: BytesMut::new(),
            chunk: Bytes::new(),
            searched: 0,
            spread: None,
            limit,
            is_broken: false,
        }
    }

    /// Adds a chunk. Earlier chunks must have been consumed with [`next`](Self::next).
    pub(super) fn push(&mut self, chunk: Bytes) {
        if !self.is_broken {
            self.gather();
            self.chunk = chunk;
        }
    }

    /// Passes on the next value or error; returns `false` if more bytes are needed.
    pub(super) fn next(&mut self, mut take: impl FnMut(Cut<'_>) -> bool) -> bool {
        loop {
            if !self.skip_whitespace() {
                return false;
            }
            let step = match &mut self.spread {
                None => self.step_line(&mut take),
                Some(_) => self.step_spread(&mut take),
            };
            match step {
                Step::More if self.begun.len() > self.limit => {
                    take(Cut::Malformed(Malformed::TooLong { limit: self.limit }));
                    return self.give_up();
                }
                Step::More => return false,
                Step::Spread => {
                    self.gather();
                    self.spread = Some(Spread::default());
                }
                Step::Taken(length) => {
                    self.advance(length);
                    self.spread = None;
                    return true;
                }
                Step::Broken => return self.give_up(),
            }
        }
    }

    /// Like `next` at the end of the input: the last value needs no newline.
    pub(super) fn next_at_end(&mut self, mut take: impl FnMut(Cut<'_>) -> bool) -> bool {
        self.gather();
        if !self.skip_whitespace() {
            return false;
        }
        let text = match std::str::from_utf8(&self.begun) {
            Ok(text) => text,
            // Truncated within a character: the text before it may be complete. Any other error is invalid UTF-8.
            Err(error) if error.error_len().is_none() => {
                let whole = &self.begun[..error.valid_up_to()];
                std::str::from_utf8(whole).unwrap_or_default()
            }
            Err(_) => {
                take(Cut::Malformed(Malformed::NotJson));
                return self.give_up();
            }
        };
        match Envelope::read_first(text) {
            Ok((envelope, length)) => {
                take(Cut::Value {
                    envelope,
                    text: &text[..length],
                });
                self.advance(length);
                true
            }
            Err(EnvelopeError::Incomplete) => false,
            Err(EnvelopeError::Malformed(why)) => {
                take(Cut::Malformed(why));
                self.give_up()
            }
        }
    }

    /// Number of bytes left over.
    pub(super) fn torn(&self) -> usize {
        self.begun.len() + self.chunk.len()
    }

    /// Returns the unread bytes: the buffered start of a value, or the last chunk.
    fn front(&self) -> &[u8] {
        if self.begun.is_empty() {
            &self.chunk
        } else {
            &self.begun
        }
    }

    fn advance(&mut self, length: usize) {
        if self.begun.is_empty() {
            self.chunk.advance(length);
        } else {
            self.begun.advance(length);
        }
        self.searched = 0;
    }

    /// Moves all unread bytes into one buffer.
    fn gather(&mut self) {
        self.begun.extend_from_slice(&self.chunk);
        // Dropped rather than cleared: an empty `Bytes` still references the connection's read buffer, which would
        // then be reallocated for every read.
        self.chunk = Bytes::new();
    }

    /// Returns true if anything else follows.
    fn skip_whitespace(&mut self) -> bool {
        if self.spread.is_none() {
            while let Some(blank) = self.front().iter().position(|byte| !byte.is_ascii_whitespace()) {
                if blank == 0 {
                    return true;
                }
                self.advance(blank);
            }
            self.begun.clear();
            if self.chunk.iter().all(u8::is_ascii_whitespace) {
                self.chunk = Bytes::new();
                return false;
            }
            return self.skip_whitespace();
        }
        !self.begun.is_empty() || !self.chunk.is_empty()
    }

    fn step_line(&mut self, take: &mut impl FnMut(Cut<'_>) -> bool) -> Step {
        if self.front()[0] != b'{' {
            // An HTML page may have no newline for a long time.
            take(Cut::Malformed(Malformed::NotJson));
            return Step::Broken;
        }
        if let Some(found) = memchr::memchr(b'\n', &self.front()[self.searched..]) {
            return read(&self.front()[..self.searched + found], take);
        }
        // The line continues in the chunk, or in a later one.
        let length = memchr::memchr(b'\n', &self.chunk).filter(|_| !self.begun.is_empty());
        self.searched = self.begun.len();
        match length {
            Some(newline) => {
                self.begun.extend_from_slice(&self.chunk[..=newline]);
                self.chunk.advance(newline + 1);
                self.step_line(take)
            }
            None => {
                self.gather();
                self.searched = self.begun.len();
                Step::More
            }
        }
    }

    fn step_spread(&mut self, take: &mut impl FnMut(Cut<'_>) -> bool) -> Step {
        self.gather();
        let Some(spread) = &mut self.spread else {
            return Step::More;
        };
        match spread.advance(&self.begun) {
            Scan::More => Step::More,
            Scan::End(end) => match read(&self.begun[..end], take) {
                Step::Spread | Step::More => {
                    take(Cut::Malformed(Malformed::NotJson));
                    Step::Broken
                }
                step @ (Step::Taken(_) | Step::Broken) => step,
            },
            // A truncated line followed by other events looks like a value that never ends; parsing distinguishes the
            // two.
            Scan::Check(end) => match read(&self.begun[..end], take) {
                Step::Spread | Step::More => self.step_spread(take),
                step @ (Step::Taken(_) | Step::Broken) => step,
            },
            Scan::Broken => {
                take(Cut::Malformed(Malformed::NotJson));
                Step::Broken
            }
        }
    }

    fn give_up(&mut self) -> bool {
        self.is_broken = true;
        self.begun.clear();
        self.chunk = Bytes::new();
        self.spread = None;
        self.searched = 0;
        false
    }
}

fn read(bytes: &[u8], take: &mut impl FnMut(Cut<'_>) -> bool) -> Step {
    let Ok(text) = std::str::from_utf8(bytes) else {
        take(Cut::Malformed(Malformed::NotJson));
        return Step::Broken;
    };
    if take(Cut::Line(text)) {
        return Step::Taken(text.len());
    }
    match Envelope::read_first(text) {
        Ok((envelope, length)) => {
            take(Cut::Value {
                envelope,
                text: &text[..length],
            });
            Step::Taken(length)
        }
        Err(EnvelopeError::Incomplete) => Step::Spread,
        Err(EnvelopeError::Malformed(why)) => {
            take(Cut::Malformed(why));
            Step::Broken
        }
    }
}

/// Search for the end of a value that spans several lines.
#[derive(Debug, Default)]
struct Spread {
    /// Bytes before this offset were scanned.
    at: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
    lines: u32,
}

enum Scan {
    More,
    /// The value ends before this offset.
    End(usize),
    /// Still open at this newline: check whether it can be JSON at all.
    Check(usize),
    /// A newline inside a string.
    Broken,
}

impl Spread {
    fn advance(&mut self, bytes: &[u8]) -> Scan {
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\n' if self.in_string => return Scan::Broken,
                b'\n' => {
                    self.lines += 1;
                    // At lines 2, 4, 8 …: over all checks each byte is parsed at most twice.
                    if self.lines > 1 && self.lines.is_power_of_two() {
                        return Scan::Check(self.at);
                    }
                }
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Scan::End(self.at);
                    }
                }
                _ => {}
            }
        }
        Scan::More
    }
}
