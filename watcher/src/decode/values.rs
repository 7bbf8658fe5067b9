//! Cuts a stream of bytes into JSON values. Knows nothing of what they mean but that each is an object.
//!
//! The common case is one value a line, found by its newline and proved whole by the very parse that decodes its
//! object. A value over several lines is scanned for its closing brace, byte by byte and each byte once.

use bytes::{Buf, Bytes, BytesMut};

use super::envelope::{Envelope, EnvelopeError};
use crate::error::Malformed;

/// The bytes that are not yet a whole value.
///
/// Lines that lie in one chunk are read where they lie; only what is left at a chunk's end is copied.
#[derive(Debug)]
pub(super) struct Values {
    /// The beginning of a value whose end has not come.
    begun: BytesMut,
    /// What came last, behind `begun`.
    chunk: Bytes,
    /// No newline before this offset of the front.
    searched: usize,
    spread: Option<Spread>,
    limit: usize,
    is_broken: bool,
}

/// What was found.
#[derive(Debug)]
pub(super) enum Cut<'a> {
    /// A line, which may well be a value. Whoever takes it must be sure that it is one, and nothing else; who does not
    /// is told again.
    Line(&'a str),
    Value {
        envelope: Envelope<'a>,
        text: &'a str,
    },
    Malformed(Malformed),
}

/// What to do with the beginning of the front.
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

    /// Takes more bytes. What was pushed before must have been read by [`next`](Self::next).
    pub(super) fn push(&mut self, chunk: Bytes) {
        if !self.is_broken {
            self.gather();
            self.chunk = chunk;
        }
    }

    /// Hands over the next value, or what is wrong with the bytes; `false` when more bytes are needed.
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

    /// The same where no more bytes can come: a value needs no newline any more.
    pub(super) fn next_at_end(&mut self, mut take: impl FnMut(Cut<'_>) -> bool) -> bool {
        self.gather();
        if !self.skip_whitespace() {
            return false;
        }
        let text = match std::str::from_utf8(&self.begun) {
            Ok(text) => text,
            // Cut inside a character: what is before it may be whole. Anything else is no UTF-8.
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

    /// Bytes left over.
    pub(super) fn torn(&self) -> usize {
        self.begun.len() + self.chunk.len()
    }

    /// Where the next value begins: what was kept, or else what came last.
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

    /// Puts everything into one place.
    fn gather(&mut self) {
        self.begun.extend_from_slice(&self.chunk);
        // Not cleared but let go: an empty chunk still holds the buffer of the connection, which could not be read into
        // again but would be allocated again for each read.
        self.chunk = Bytes::new();
    }

    /// True when there is something else.
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
            // A page of HTML may have no newline for long.
            take(Cut::Malformed(Malformed::NotJson));
            return Step::Broken;
        }
        if let Some(found) = memchr::memchr(b'\n', &self.front()[self.searched..]) {
            return read(&self.front()[..self.searched + found], take);
        }
        // The line goes on in the chunk, or in one that has not come.
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
            // A torn line with other events after it looks like a value that never ends: grammar tells them apart.
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

/// The search for the end of a value that is spread over lines.
#[derive(Debug, Default)]
struct Spread {
    /// Bytes before this offset were seen.
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
    /// Still open at this newline: time to see whether it can be JSON at all.
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
                    // At lines 2, 4, 8 …: each byte is parsed twice at most, all checks together.
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
