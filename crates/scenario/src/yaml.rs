//! Prints values of the file format: the inverse of [`read`](super::read), in the style of the scenarios of this repository.
//!
//! A value is serialized to the same tree that the parser reads, with words and scalars for what has a short form, so that a
//! new key needs nothing here. Keys of the file, steps, and what is too long are lines; the rest is in flow style.

use std::fmt::{self, Display, Formatter, Write};

use serde::ser::Serialize;
use serde_json::{Map, Value};

use super::raw::{ActionKeys, File, Step};
use super::read::{NOTHING, WordOr};
use super::tree::plain_to_json;
use super::words::duration_ms;

/// Longest line of a value in flow style, in characters.
const COLUMNS: usize = 118;

/// Words that YAML 1.1 takes for booleans.
const RESERVED: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

/// Prints the scenario file.
impl Display for File {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Value::Object(keys) = tree(self)? else {
            return Err(fmt::Error);
        };
        for (key, value) in given(&keys) {
            match (key.as_str(), value) {
                ("steps", Value::Array(steps)) => {
                    f.write_str("steps:\n")?;
                    let raw = self.steps.iter().flatten().map(|step| &step.value.0);
                    for (step, raw) in steps.iter().zip(raw) {
                        write_step(f, step, raw)?;
                    }
                }
                ("objects", Value::Array(objects)) => {
                    f.write_str("objects:\n")?;
                    objects.iter().try_for_each(|object| write_item(f, 2, object))?;
                }
                ("expect", Value::Object(keys)) if given(keys).count() > 1 => {
                    f.write_str("expect:\n")?;
                    write_entries(f, 2, given(keys))?;
                }
                _ => write_value(f, 0, key, value)?,
            }
        }
        Ok(())
    }
}

/// Prints the action on one line.
impl Display for ActionKeys {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&flow(&tree(&WordOr(self))?))
    }
}

fn write_step(f: &mut Formatter<'_>, step: &Value, raw: &Step) -> fmt::Result {
    if let Some(comment) = &raw.0.comment {
        writeln!(f, "  # {comment}")?;
    }
    match step {
        Value::Object(keys) if given(keys).next().is_some() => {
            f.write_str("  - ")?;
            write_after_dash(f, 4, keys)
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => write_item(f, 2, step),
    }
}

/// Writes an item of a list.
fn write_item(f: &mut Formatter<'_>, indent: usize, item: &Value) -> fmt::Result {
    write!(f, "{:indent$}- ", "")?;
    match item {
        Value::Object(keys)
            if given(keys).count() == 1 || given(keys).count() > 1 && !fits(indent + 2, item) =>
        {
            write_after_dash(f, indent + 2, keys)
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => writeln!(f, "{}", flow(item)),
    }
}

/// Writes the entries of a map that begins in this line.
fn write_after_dash(f: &mut Formatter<'_>, indent: usize, keys: &Map<String, Value>) -> fmt::Result {
    let mut keys = given(keys);
    if let Some((key, value)) = keys.next() {
        write_value(f, indent, key, value)?;
    }
    write_entries(f, indent, keys)
}

fn write_entries<'v>(
    f: &mut Formatter<'_>,
    indent: usize,
    mut keys: impl Iterator<Item = (&'v String, &'v Value)>,
) -> fmt::Result {
    keys.try_for_each(|(key, value)| {
        write!(f, "{:indent$}", "")?;
        write_value(f, indent, key, value)
    })
}

/// Writes a key and its value from the current column.
fn write_value(f: &mut Formatter<'_>, indent: usize, key: &str, value: &Value) -> fmt::Result {
    let key = scalar(key);
    let has_room = fits(indent + key.chars().count() + 2, value);
    match value {
        Value::Object(keys) if !has_room && !keys.is_empty() => {
            writeln!(f, "{key}:")?;
            write_entries(f, indent + 2, given(keys))
        }
        Value::Array(items) if !has_room && !items.is_empty() => {
            writeln!(f, "{key}:")?;
            items.iter().try_for_each(|item| write_item(f, indent + 2, item))
        }
        Value::String(text) if text == NOTHING => writeln!(f, "{key}:"),
        Value::String(text) if !has_room && is_prose(text) => {
            writeln!(f, "{key}: >-")?;
            write_folded(f, indent + 2, text)
        }
        Value::String(text) if is_plain(text, false) => writeln!(f, "{key}: {text}"),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => writeln!(f, "{key}: {}", flow(value)),
    }
}

fn fits(before: usize, value: &Value) -> bool {
    before + flow(value).chars().count() <= COLUMNS
}

fn write_folded(f: &mut Formatter<'_>, indent: usize, text: &str) -> fmt::Result {
    let mut length = COLUMNS;
    for (nth, word) in text.split(' ').enumerate() {
        let word_length = word.chars().count();
        if length + 1 + word_length > COLUMNS {
            let end = if nth > 0 { "\n" } else { "" };
            write!(f, "{end}{:indent$}{word}", "")?;
            length = indent + word_length;
        } else {
            write!(f, " {word}")?;
            length += 1 + word_length;
        }
    }
    writeln!(f)
}

// ---- flow style

/// Returns a value on one line: `{name: a, data: {k: "1"}}`.
fn flow(value: &Value) -> String {
    let listed = |items: Vec<String>| items.join(", ");
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", listed(items.iter().map(flow).collect())),
        Value::Object(keys) => {
            let entries = given(keys).map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{{}}}", listed(entries.collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Returns a text as a scalar: plain, or in quotes.
fn scalar(text: &str) -> String {
    if text == NOTHING {
        return "null".to_owned();
    }
    if is_plain(text, true) {
        return text.to_owned();
    }
    let mut quoted = String::new();
    write_quoted(&mut quoted, text);
    quoted
}

/// Whether a text needs no quotes: nothing takes it for another type, or for several values.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    let is_word = text.starts_with(is_start) || duration_ms(text).is_some();
    let is_inner = |(before, c, after): (char, char, char)| match c {
        ' ' => before != ' ',
        ':' => !matches!(after, ' ' | ',' | '[' | ']' | '{' | '}'),
        '#' => before != ' ',
        ',' => !in_flow,
        _ => c.is_alphanumeric() || "_-./$=+()';@%&*!?".contains(c),
    };
    let before = std::iter::once(' ').chain(text.chars());
    let after = text.chars().skip(1).chain([' ']);
    let is_reserved = RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word));
    is_word
        && !is_reserved
        && !text.ends_with(' ')
        && plain_to_json(text).is_string()
        && !matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null")
        && before
            .zip(text.chars())
            .zip(after)
            .all(|((before, c), after)| is_inner((before, c, after)))
}

/// Whether a text can be folded: words between single spaces.
fn is_prose(text: &str) -> bool {
    text.contains(' ')
        && text
            .split(' ')
            .all(|word| !word.is_empty() && !word.contains(is_escaped))
}

/// Whether a character is not printable in YAML, or ends a line in some reader.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn write_quoted(quoted: &mut String, text: &str) {
    if text.contains(['"', '\\']) && !text.contains('\'') && !text.contains(is_escaped) {
        quoted.extend(["'", text, "'"]);
        return;
    }
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // Writing to a String cannot fail.
            c if is_escaped(c) => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
}

fn tree(value: &impl Serialize) -> Result<Value, fmt::Error> {
    serde_json::to_value(value).map_err(|_| fmt::Error)
}

/// Returns the keys that are given, with their values.
fn given(keys: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    keys.iter().filter(|(_, value)| !value.is_null())
}

#[cfg(test)]
mod tests;
