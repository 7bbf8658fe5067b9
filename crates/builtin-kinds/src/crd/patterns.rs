//! `pattern`: regular expressions with the syntax of Go, compiled within bounds.
//!
//! Both engines descend from RE2 and match in linear time. Where they differ the pattern is rewritten: in Go
//! `\d`, `\w`, `\s` and `\b` are ASCII, counts end at 1000, and some of the syntax of Rust's engine does not exist.
//!
//! It must not know objects.
//!
//! Source: Go `regexp/syntax` (`parse.go`, `perl_groups.go`), whose results are recorded in `patterns/recorded.json`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// Highest count of a repetition, alone or nested (`regexp/syntax` `maxRepeat`).
const REPEATS_MAX: u64 = 1000;

/// Depth of nested groups (`regexp/syntax` `maxHeight`).
const GROUPS_MAX: usize = 1000;

/// Depth of nested groups that are compiled.
pub(crate) const NESTING_MAX: u32 = 200;

/// Limits of the size of a compiled pattern, from the size of nearly all to that of `^\pL{1,63}$`.
const SIZES: [usize; 3] = [16 << 10, 256 << 10, 4 << 20];

/// Bytes for the patterns of one schema. They are compiled at first use; beyond this, not all are.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(128 << 20)))
    }
}

impl Budget {
    /// Takes this many bytes; false if fewer are left.
    pub(crate) fn spend(&self, bytes: usize) -> bool {
        let left = |left: usize| left.checked_sub(bytes);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok()
    }
}

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    budget: Budget,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(text: &str, budget: &Budget) -> Self {
        Self {
            text: text.to_owned(),
            budget: budget.clone(),
            compiled: OnceLock::new(),
        }
    }

    /// Source of the pattern.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it matches anywhere in the text. A pattern that is not compiled matches every text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| self.compile());
        compiled
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(text.as_bytes()))
    }

    fn compile(&self) -> Option<Regex> {
        let translated = Translation::of(&self.text).ok()?;
        for size in SIZES {
            if !self.budget.spend(2 * size) {
                break;
            }
            let mut builder = RegexBuilder::new(&translated);
            builder
                .size_limit(size)
                .dfa_size_limit(size)
                .nest_limit(NESTING_MAX);
            match builder.build() {
                Ok(compiled) => return Some(compiled),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, pattern = self.text, "a pattern is not compiled");
                    return None;
                }
            }
        }
        None
    }
}

/// Returns a pattern in the syntax of Rust's engine.
///
/// # Errors
/// As [`check`].
pub(crate) fn translated(text: &str) -> Result<String, String> {
    Translation::of(text)
}

/// Checks the syntax.
///
/// # Errors
/// Go's message without its prefix: `missing closing ): ` and the pattern in backquotes.
pub(crate) fn check(text: &str) -> Result<(), String> {
    Translation::of(text).map(|_| ())
}

/// A pattern that is being rewritten.
struct Translation<'t> {
    whole: &'t str,
    rest: &'t str,
    out: String,
    /// The highest product of counts within each open group, the outermost first.
    groups: Vec<u64>,
    /// Whether a repetition can follow, and the product of its counts.
    repeatable: Option<u64>,
    /// Offset of the preceding repetition.
    repeated_at: Option<usize>,
    /// Classes (`\pL`) that are known to exist.
    known: BTreeSet<&'t str>,
}

impl<'t> Translation<'t> {
    fn of(text: &'t str) -> Result<String, String> {
        let mut translation = Self {
            whole: text,
            rest: text,
            out: String::with_capacity(text.len()),
            groups: vec![1],
            repeatable: None,
            repeated_at: None,
            known: BTreeSet::new(),
        };
        while let Some(next) = translation.rest.chars().next() {
            translation.step(next)?;
        }
        if translation.groups.len() > 1 {
            return Err(translation.wrong("missing closing )"));
        }
        Ok(translation.out)
    }

    fn wrong(&self, why: &str) -> String {
        format!("{why}: `{}`", self.whole)
    }

    /// Consumes this many bytes of the pattern.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn atom(&mut self) {
        self.repeatable = Some(1);
        self.repeated_at = None;
    }

    fn literal(&mut self, character: char) {
        // Escaped, so that it is never syntax; case folding is the same.
        let _ = write!(self.out, "\\x{{{:x}}}", u32::from(character));
        self.atom();
    }

    fn step(&mut self, next: char) -> Result<(), String> {
        match next {
            '(' => self.open(),
            ')' => {
                self.take(1);
                let closed = self.groups.pop().unwrap_or(1);
                if self.groups.is_empty() {
                    return Err(self.wrong("unexpected )"));
                }
                self.out.push(')');
                self.note(closed);
                self.atom();
                self.repeatable = Some(closed);
                Ok(())
            }
            '|' => {
                self.take(1);
                self.out.push('|');
                self.unrepeatable();
                Ok(())
            }
            '*' | '+' | '?' => {
                let end = 1 + usize::from(self.rest[1..].starts_with('?'));
                self.repeat(end, None)
            }
            '{' => match counts(self.rest) {
                None => {
                    self.take(1);
                    self.literal('{');
                    Ok(())
                }
                Some((end, most)) => {
                    let end = end + usize::from(self.rest[end..].starts_with('?'));
                    self.repeat(end, Some(most))
                }
            },
            '[' => self.class(),
            '\\' => self.escape(),
            '^' | '$' | '.' => {
                self.take(1);
                // Go's `$` without `m` is the end of the text, as here.
                self.out.push(next);
                self.atom();
                Ok(())
            }
            other => {
                self.take(other.len_utf8());
                self.literal(other);
                Ok(())
            }
        }
    }

    fn unrepeatable(&mut self) {
        self.repeatable = None;
        self.repeated_at = None;
    }

    fn note(&mut self, product: u64) {
        if let Some(group) = self.groups.last_mut() {
            *group = product.max(*group);
        }
    }

    fn repeat(&mut self, end: usize, most: Option<Result<u64, ()>>) -> Result<(), String> {
        let at = self.whole.len() - self.rest.len();
        let text = self.take(end);
        let Some(product) = self.repeatable else {
            return Err(match self.repeated_at {
                Some(before) => {
                    let both = &self.whole[before..at + end];
                    format!("invalid nested repetition operator: `{both}`")
                }
                None => format!("missing argument to repetition operator: `{text}`"),
            });
        };
        let most = most.unwrap_or(Ok(1)).unwrap_or(REPEATS_MAX + 1);
        let product = product.saturating_mul(most.max(1));
        if product > REPEATS_MAX {
            return Err(format!("invalid repeat count: `{text}`"));
        }
        self.out.push_str(text);
        self.note(product);
        self.repeatable = None;
        self.repeated_at = Some(at);
        Ok(())
    }

    /// A group, its flags or its name.
    fn open(&mut self) -> Result<(), String> {
        self.unrepeatable();
        if !self.rest.starts_with("(?") {
            self.take(1);
            self.out.push('(');
            return self.entered();
        }
        let name = ["(?P<", "(?<"]
            .iter()
            .find(|start| self.rest.starts_with(**start));
        if let Some(start) = name {
            let Some(end) = self.rest.find('>') else {
                return Err(format!("invalid named capture: `{}`", self.rest));
            };
            let name = &self.rest[start.len()..end];
            let legal = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(legal) {
                return Err(format!("invalid named capture: `{}`", &self.rest[..=end]));
            }
            self.take(end + 1);
            // The name is not used.
            self.out.push('(');
            return self.entered();
        }
        let flags = |c: char| matches!(c, 'i' | 'm' | 's' | 'U' | '-');
        let end = self.rest[2..]
            .find(|c| !flags(c))
            .map_or(self.rest.len(), |end| end + 2);
        let closed = self.rest[end..].starts_with(')');
        if !closed && !self.rest[end..].starts_with(':') || self.rest[..end].ends_with('-') {
            let wrong = self.rest[end..].chars().next().map_or(0, char::len_utf8);
            let shown = &self.rest[..end + wrong];
            return Err(format!("invalid or unsupported Perl syntax: `{shown}`"));
        }
        let text = self.take(end + 1);
        // Go accepts an empty list of flags; it is an error here.
        if text != "(?)" {
            self.out.push_str(text);
        }
        if closed { Ok(()) } else { self.entered() }
    }

    fn entered(&mut self) -> Result<(), String> {
        if self.groups.len() >= GROUPS_MAX {
            return Err(self.wrong("expression nests too deeply"));
        }
        self.groups.push(1);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), String> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let (text, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
            text.chars().for_each(|character| self.literal(character));
            self.rest = rest;
            return Ok(());
        }
        let boundary = match self.rest.as_bytes().get(1) {
            Some(b'A') => "\\A",
            Some(b'z') => "\\z",
            Some(b'b') => "(?-u:\\b)",
            Some(b'B') => "(?-u:\\B)",
            _ => "",
        };
        if !boundary.is_empty() {
            self.take(2);
            self.out.push_str(boundary);
            self.atom();
            return Ok(());
        }
        match self.escaped()? {
            Escaped::One(character) => self.literal(character),
            Escaped::Set { ranges, negated } => {
                let sign = if negated { "^" } else { "" };
                let _ = write!(self.out, "[{sign}{ranges}]");
                self.atom();
            }
            Escaped::Named(text) => {
                self.out.push_str(&text);
                self.atom();
            }
        }
        Ok(())
    }

    /// An escape with the same meaning inside and outside of brackets.
    fn escaped(&mut self) -> Result<Escaped, String> {
        let mut characters = self.rest.char_indices().skip(1);
        let Some((_, kind)) = characters.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let invalid = |text: &str| Err(format!("invalid escape sequence: `{text}`"));
        let set = |ranges, negated| Ok(Escaped::Set { ranges, negated });
        match kind {
            'd' | 'D' => self.taken(2, set(DIGITS, kind == 'D')),
            'w' | 'W' => self.taken(2, set(WORD, kind == 'W')),
            's' | 'S' => self.taken(2, set(SPACE, kind == 'S')),
            'a' => self.taken(2, Ok(Escaped::One('\x07'))),
            'f' => self.taken(2, Ok(Escaped::One('\x0c'))),
            'n' => self.taken(2, Ok(Escaped::One('\n'))),
            'r' => self.taken(2, Ok(Escaped::One('\r'))),
            't' => self.taken(2, Ok(Escaped::One('\t'))),
            'v' => self.taken(2, Ok(Escaped::One('\x0b'))),
            'p' | 'P' => {
                let name = match self.rest[2..].strip_prefix('{') {
                    Some(braced) => braced.find('}').map(|end| &self.rest[..end + 4]),
                    None => self.rest[2..]
                        .chars()
                        .next()
                        .map(|c| &self.rest[..2 + c.len_utf8()]),
                };
                let Some(text) = name else {
                    return Err(format!("invalid character class range: `{}`", self.rest));
                };
                let inner = text[2..].trim_start_matches('{').trim_end_matches('}');
                let other = inner.strip_prefix('^');
                let inner = other.unwrap_or(inner);
                // A double negation.
                let letter = if other.is_some() == (kind == 'P') {
                    'p'
                } else {
                    'P'
                };
                let written = format!("\\{letter}{{{inner}}}");
                let legal = |c: char| c == '_' || c.is_ascii_alphabetic();
                let is_named = !inner.is_empty() && inner.chars().all(legal);
                if !is_named || !self.known.contains(text) && Regex::new(&written).is_err() {
                    return Err(format!("invalid character class range: `{text}`"));
                }
                self.known.insert(text);
                self.taken(text.len(), Ok(Escaped::Named(written)))
            }
            'x' => {
                let rest = &self.rest[2..];
                let (digits, length) = match rest.strip_prefix('{') {
                    Some(braced) => match braced.split_once('}') {
                        Some((digits, _)) => (digits, digits.len() + 4),
                        None => return invalid(self.rest),
                    },
                    None => (rest.get(..2).unwrap_or_default(), 4),
                };
                let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                match code {
                    Some(character) => self.taken(length, Ok(Escaped::One(character))),
                    None => invalid(self.rest.get(..length).unwrap_or(self.rest)),
                }
            }
            '0'..='7' => {
                let octal = |c: char| ('0'..='7').contains(&c);
                let digits: String = self.rest[1..].chars().take(3).take_while(|c| octal(*c)).collect();
                // A single digit would be a backreference, which is not supported.
                if kind != '0' && digits.len() < 2 {
                    return invalid(&self.rest[..2]);
                }
                let code = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
                self.taken(1 + digits.len(), Ok(Escaped::One(code.unwrap_or_default())))
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => {
                self.taken(2, Ok(Escaped::One(other)))
            }
            other => invalid(&self.rest[..1 + other.len_utf8()]),
        }
    }

    fn taken(&mut self, bytes: usize, escaped: Result<Escaped, String>) -> Result<Escaped, String> {
        self.take(bytes);
        escaped
    }

    fn class(&mut self) -> Result<(), String> {
        let start = self.rest;
        let unclosed = || format!("missing closing ]: `{start}`");
        self.take(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.take(1);
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let next = self.rest.chars().next().ok_or_else(unclosed)?;
            if next == ']' && !first {
                break;
            }
            first = false;
            if let Some(end) = self.rest.find(":]").filter(|_| self.rest.starts_with("[:")) {
                let name = &self.rest[..end + 2];
                let inner = name[2..end].trim_start_matches('^');
                if !POSIX.contains(&inner) {
                    return Err(format!("invalid character class range: `{name}`"));
                }
                self.out.push_str(name);
                self.take(end + 2);
                continue;
            }
            let at = self.rest;
            let low = match self.member()? {
                Escaped::One(character) => character,
                Escaped::Set { ranges, negated } => {
                    let sign = if negated { "^" } else { "" };
                    let _ = write!(self.out, "[{sign}{ranges}]");
                    continue;
                }
                Escaped::Named(text) => {
                    self.out.push_str(&text);
                    continue;
                }
            };
            let ranges = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            let high = if ranges {
                self.take(1);
                self.rest.chars().next().ok_or_else(unclosed)?;
                match self.member()? {
                    Escaped::One(high) if low <= high => high,
                    Escaped::One(_) | Escaped::Set { .. } | Escaped::Named(_) => {
                        let shown = &at[..at.len() - self.rest.len()];
                        return Err(format!("invalid character class range: `{shown}`"));
                    }
                }
            } else {
                low
            };
            let _ = write!(
                self.out,
                "\\x{{{:x}}}-\\x{{{:x}}}",
                u32::from(low),
                u32::from(high)
            );
        }
        self.take(1);
        self.out.push(']');
        self.atom();
        Ok(())
    }

    fn member(&mut self) -> Result<Escaped, String> {
        match self.rest.chars().next() {
            Some('\\') => self.escaped(),
            Some(plain) => {
                self.take(plain.len_utf8());
                Ok(Escaped::One(plain))
            }
            None => Err(self.wrong("missing closing ]")),
        }
    }
}

enum Escaped {
    One(char),
    Set {
        ranges: &'static str,
        negated: bool,
    },
    /// A class that is kept as written.
    Named(String),
}

const DIGITS: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\t\\n\\x0C\\r ";

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// Returns the end of `{n}`, `{n,}` or `{n,m}` and its highest count, if it is a number; `None`: not a repetition.
fn counts(text: &str) -> Option<(usize, Result<u64, ()>)> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Leading zeros are not allowed; a number with too many digits is too high.
        (digits && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse().unwrap_or(u64::MAX))
    };
    let low = number(low)?;
    let high = if high.is_empty() { low } else { number(high)? };
    let counts = if low <= high && high <= REPEATS_MAX {
        Ok(high)
    } else {
        Err(())
    };
    Some((inner.len() + 2, counts))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Results of Go: whether each is a pattern, and whether it matches.
    #[test]
    fn patterns_are_read_and_matched_as_go_does() {
        let recorded: Value = serde_json::from_str(include_str!("patterns/recorded.json")).expect("JSON");
        let mut wrong = Vec::new();
        for row in recorded.as_array().expect("a list") {
            let pattern = row["pattern"].as_str().expect("a text");
            if let Some(error) = row["error"].as_str() {
                if check(pattern) != Err(error.to_owned()) {
                    wrong.push(format!("{pattern}: {:?}, not {error}", check(pattern)));
                }
                continue;
            }
            if let Err(error) = check(pattern) {
                wrong.push(format!("{pattern}: {error}"));
            }
            for (text, matches) in row["matches"].as_object().expect("a map") {
                if Pattern::new(pattern, &Budget::default()).is_match(text) != (*matches == true) {
                    wrong.push(format!("{pattern} on {text:?}: not {matches}"));
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn patterns_of_one_schema_share_what_they_may_take() {
        let budget = Budget::default();
        let patterns: Vec<Pattern> = (0..200)
            .map(|_| Pattern::new(r"^\pL{900}\PL{90}$", &budget))
            .collect();
        assert!(patterns.iter().all(|pattern| pattern.is_match("whatever")));
        assert!(
            patterns
                .iter()
                .all(|pattern| pattern.compiled.get().is_some_and(Option::is_none))
        );
        let plain = Pattern::new(r"^\w{150}$", &Budget::default());
        assert!(!plain.is_match("word") && plain.is_match(&"w".repeat(150)));
    }
}
