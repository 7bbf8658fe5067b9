//! Deserializes JSON like `serde_json`, but faster and with less memory: it handles the JSON that apiservers write
//! and falls back to `serde_json` for everything else. It must not know Kubernetes objects.
//!
//! It never rejects input: anything it cannot read, invalid or merely rare, is parsed again by `serde_json`, whose
//! result and errors count. The only property to verify is that whatever it reads, `serde_json` reads identically;
//! the tests compare the two. It is faster because it does not track line, column or error causes, keeps one offset,
//! examines sixteen bytes of a string at once, and gives lists a size hint: a growing `Vec` allocates room for four
//! items, and a Pod has many lists of one.

mod deserializer;

use std::fmt;

use serde::de::{Deserialize, IgnoredAny};
use wide::u8x16;

/// Equivalent to `serde_json::from_str`, errors included.
pub(crate) fn from_str<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, serde_json::Error> {
    match read(json, |values| T::deserialize(values)) {
        Some(value) => Ok(value),
        None => serde_json::from_str(json),
    }
}

/// Returns the single value of this text. `None`: use `serde_json`.
pub(super) fn read<'de, T>(
    json: &'de str,
    value: impl FnOnce(&mut Plain<'de>) -> Result<T, Odd>,
) -> Option<T> {
    let mut values = Plain {
        json,
        at: 0,
        depth: 0,
        unescaped: String::new(),
    };
    let value = value(&mut values).ok()?;
    values.next().is_none().then_some(value)
}

/// Signals the fallback to `serde_json`. Carries no reason, so that none has to be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not plain JSON of this type")
    }
}

impl std::error::Error for Odd {}

impl serde::de::Error for Odd {
    #[cold]
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// `serde_json`'s default recursion limit is 128.
const MAX_DEPTH: u8 = 100;
/// This many digits always fit.
const MAX_DIGITS: usize = 18;

/// A deserializer for the value at an offset.
pub(super) struct Plain<'de> {
    json: &'de str,
    /// Offset of the next byte.
    at: usize,
    depth: u8,
    /// Buffer for strings with escapes.
    unescaped: String,
}

enum Integer {
    Positive(u64),
    Negative(i64),
}

impl<'de> Plain<'de> {
    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.json.as_bytes().get(at).copied()
    }

    /// Returns the next byte that is not whitespace.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    #[inline]
    fn pass(&mut self, byte: u8) -> Result<(), Odd> {
        if self.next() != Some(byte) {
            return Err(Odd);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn pass_word(&mut self, word: &str) -> Result<(), Odd> {
        if !self.json.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Odd);
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn boolean(&mut self) -> Result<bool, Odd> {
        if self.next() == Some(b't') {
            return self.pass_word("true").map(|()| true);
        }
        self.pass_word("false").map(|()| false)
    }

    /// Returns the end of the literal part of a string: the next quote, backslash or invalid control character.
    #[inline]
    fn end_of_run(&self, mut at: usize) -> usize {
        while let Some(block) = self.json.as_bytes()[at..].first_chunk::<16>() {
            let bytes = u8x16::new(*block);
            let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
            let is_mark = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
            let marks = (is_mark | is_control).to_bitmask();
            if marks != 0 {
                return at + marks.trailing_zeros() as usize;
            }
            at += block.len();
        }
        while self
            .byte(at)
            .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
        {
            at += 1;
        }
        at
    }

    /// Reads a string with escapes, the first of them at `at`.
    #[inline(never)]
    fn unescape(&mut self, mut start: usize, mut at: usize) -> Result<(), Odd> {
        self.unescaped.clear();
        loop {
            self.unescaped.push_str(self.json.get(start..at).ok_or(Odd)?);
            match self.byte(at) {
                Some(b'"') => break,
                Some(b'\\') => {}
                Some(_) | None => return Err(Odd),
            }
            start = at + 2;
            let character = match self.byte(at + 1).ok_or(Odd)? {
                byte @ (b'"' | b'\\' | b'/') => char::from(byte),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => {
                    start = at + 6;
                    self.code_point(at + 2).ok_or(Odd)?
                }
                _ => return Err(Odd),
            };
            self.unescaped.push(character);
            at = self.end_of_run(start);
        }
        self.at = at + 1;
        Ok(())
    }

    /// Reads four hex digits; `None` for half of a surrogate pair.
    fn code_point(&self, at: usize) -> Option<char> {
        let digits = self.json.get(at..at + 4)?;
        digits
            .chars()
            .try_fold(0, |number, digit| Some(number << 4 | digit.to_digit(16)?))
            .and_then(char::from_u32)
    }

    /// Reads an integer of at most [`MAX_DIGITS`] digits, except minus zero.
    #[inline]
    fn integer(&mut self) -> Option<Integer> {
        let is_negative = self.next()? == b'-';
        let start = self.at + usize::from(is_negative);
        let (mut at, mut number) = (start, 0_i64);
        while let Some(digit @ b'0'..=b'9') = self.byte(at) {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        let is_odd = !(1..=MAX_DIGITS).contains(&(at - start))
            || (self.byte(start) == Some(b'0') && (is_negative || at > start + 1))
            || matches!(self.byte(at), Some(b'.' | b'e' | b'E'));
        if is_odd {
            return None;
        }
        self.at = at;
        Some(match u64::try_from(number) {
            Ok(number) if !is_negative => Integer::Positive(number),
            Ok(_) | Err(_) => Integer::Negative(-number),
        })
    }

    /// Returns true if another element precedes the closing bracket; consumes the comma.
    #[inline]
    fn is_another(&mut self, bracket: u8, is_first: &mut bool) -> Result<bool, Odd> {
        if self.next() == Some(bracket) {
            return Ok(false);
        }
        if !std::mem::take(is_first) {
            self.pass(b',')?;
        }
        Ok(true)
    }

    #[inline]
    fn enter(&mut self) -> Result<(), Odd> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Odd) } else { Ok(()) }
    }

    #[inline]
    fn leave(&mut self, bracket: u8) -> Result<(), Odd> {
        self.depth -= 1;
        self.pass(bracket)
    }

    /// Length of the next value, including preceding whitespace.
    fn length_of_value(&self) -> Result<usize, Odd> {
        let mut values = serde_json::Deserializer::from_str(&self.json[self.at..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => Ok(values.byte_offset()),
            Some(Err(_)) | None => Err(Odd),
        }
    }
}

#[cfg(test)]
mod tests;
