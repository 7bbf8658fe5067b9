//! Prints values of the file format: the inverse of [`read`](super::read), in the style of the scenarios of this repository.
//!
//! A value is serialized to the same tree that the parser reads, with words and scalars for what has a short form, so that a
//! new key needs nothing here. Keys of the file, steps, and what is too long are lines; the rest is in flow style.

use std::fmt::{self, Display, Formatter, Write};

use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple,
    Serializer,
};

use super::raw::{ActionKeys, File, Step};
use super::read::{BOTH, FIRST, WORD};
use super::span::Span;
use super::tree::{Kind, Node, plain_to_json};
use super::words::duration_ms;

/// Longest line of a value in flow style, in characters.
const COLUMNS: usize = 118;

/// Words that YAML 1.1 takes for booleans.
const RESERVED: [&str; 6] = ["yes", "no", "on", "off", "y", "n"];

/// Prints the scenario file.
impl Display for File {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (key, value) in entries(&tree(self)?) {
            match (key.text(), &value.kind) {
                (Some("steps"), Kind::Sequence(steps)) => {
                    f.write_str("steps:\n")?;
                    let raw = self.steps.iter().flatten().map(|step| &step.value.0);
                    for (step, raw) in steps.iter().zip(raw) {
                        write_step(f, step, raw)?;
                    }
                }
                (Some("objects"), Kind::Sequence(objects)) => {
                    f.write_str("objects:\n")?;
                    objects.iter().try_for_each(|object| write_item(f, 2, object))?;
                }
                (Some("expect"), Kind::Mapping(keys)) if keys.len() > 1 => {
                    f.write_str("expect:\n")?;
                    write_entries(f, 2, keys)?;
                }
                _ => write_entry(f, 0, key, value)?,
            }
        }
        Ok(())
    }
}

/// Prints the action on one line.
impl Display for ActionKeys {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&flow(&action(self)?))
    }
}

fn action(keys: &ActionKeys) -> Result<Node, fmt::Error> {
    tree(&super::read::WordOr(keys))
}

fn write_step(f: &mut Formatter<'_>, step: &Node, raw: &Step) -> fmt::Result {
    if let Some(comment) = &raw.0.comment {
        writeln!(f, "  # {comment}")?;
    }
    match &step.kind {
        Kind::Mapping(keys) if !keys.is_empty() => {
            f.write_str("  - ")?;
            write_after_dash(f, 4, keys)
        }
        Kind::Mapping(_) | Kind::Scalar { .. } | Kind::Sequence(_) => write_item(f, 2, step),
    }
}

/// Writes an item of a list.
fn write_item(f: &mut Formatter<'_>, indent: usize, item: &Node) -> fmt::Result {
    write!(f, "{:indent$}- ", "")?;
    match &item.kind {
        Kind::Mapping(keys) if keys.len() == 1 || !keys.is_empty() && !fits(indent + 2, item) => {
            write_after_dash(f, indent + 2, keys)
        }
        Kind::Mapping(_) | Kind::Scalar { .. } | Kind::Sequence(_) => writeln!(f, "{}", flow(item)),
    }
}

/// Writes the entries of a map that begins in this line.
fn write_after_dash(f: &mut Formatter<'_>, indent: usize, keys: &[(Node, Node)]) -> fmt::Result {
    let Some(((key, value), others)) = keys.split_first() else {
        return Ok(());
    };
    write_value(f, indent, key, value)?;
    write_entries(f, indent, others)
}

fn write_entries(f: &mut Formatter<'_>, indent: usize, keys: &[(Node, Node)]) -> fmt::Result {
    keys.iter()
        .try_for_each(|(key, value)| write_entry(f, indent, key, value))
}

fn write_entry(f: &mut Formatter<'_>, indent: usize, key: &Node, value: &Node) -> fmt::Result {
    write!(f, "{:indent$}", "")?;
    write_value(f, indent, key, value)
}

/// Writes a key and its value from the current column.
fn write_value(f: &mut Formatter<'_>, indent: usize, key: &Node, value: &Node) -> fmt::Result {
    let key = flow(key);
    let has_room = fits(indent + key.chars().count() + 2, value);
    match &value.kind {
        Kind::Mapping(keys) if !has_room && !keys.is_empty() => {
            writeln!(f, "{key}:")?;
            write_entries(f, indent + 2, keys)
        }
        Kind::Sequence(items) if !has_room && !items.is_empty() => {
            writeln!(f, "{key}:")?;
            items.iter().try_for_each(|item| write_item(f, indent + 2, item))
        }
        Kind::Scalar { text, plain: false } if !has_room && is_prose(text) => {
            writeln!(f, "{key}: >-")?;
            write_folded(f, indent + 2, text)
        }
        Kind::Scalar { text, plain: false } if is_plain(text, false) => writeln!(f, "{key}: {text}"),
        Kind::Scalar { text, plain: true } if text.is_empty() => writeln!(f, "{key}:"),
        Kind::Scalar { .. } | Kind::Mapping(_) | Kind::Sequence(_) => writeln!(f, "{key}: {}", flow(value)),
    }
}

fn fits(before: usize, value: &Node) -> bool {
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
fn flow(node: &Node) -> String {
    let mut text = String::new();
    write_flow(&mut text, node);
    text
}

fn write_flow(text: &mut String, node: &Node) {
    match &node.kind {
        Kind::Scalar {
            text: scalar,
            plain: true,
        } => text.push_str(scalar),
        Kind::Scalar {
            text: scalar,
            plain: false,
        } if is_plain(scalar, true) => text.push_str(scalar),
        Kind::Scalar {
            text: scalar,
            plain: false,
        } => write_quoted(text, scalar),
        Kind::Sequence(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write_flow(text, item);
            }
            text.push(']');
        }
        Kind::Mapping(keys) => {
            text.push('{');
            for (nth, (key, value)) in keys.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write_flow(text, key);
                text.push_str(": ");
                write_flow(text, value);
            }
            text.push('}');
        }
    }
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

// ---- from values to trees

fn tree(value: &impl Serialize) -> Result<Node, fmt::Error> {
    let node = value
        .serialize(Tree { is_first: false })
        .map_err(|_| fmt::Error)?;
    Ok(node.unwrap_or_else(nothing))
}

fn entries(node: &Node) -> &[(Node, Node)] {
    match &node.kind {
        Kind::Mapping(entries) => entries,
        Kind::Scalar { .. } | Kind::Sequence(_) => &[],
    }
}

fn node(kind: Kind) -> Node {
    let span = Span::default();
    Node { span, kind }
}

fn plain(text: impl ToString) -> Option<Node> {
    let (text, plain) = (text.to_string(), true);
    Some(node(Kind::Scalar { text, plain }))
}

fn text(text: &str) -> Option<Node> {
    let (text, plain) = (text.to_owned(), false);
    Some(node(Kind::Scalar { text, plain }))
}

/// The value of a key without one.
fn nothing() -> Node {
    node(Kind::Scalar {
        text: "null".to_owned(),
        plain: true,
    })
}

/// Serializes to a [`Node`]; `None`: an absent key.
#[derive(Clone, Copy)]
struct Tree {
    /// A map that has its first key only is the value of that.
    is_first: bool,
}

/// Why a value has no tree: a map has keys that are no texts.
#[derive(Debug)]
struct Unprintable(String);

impl Display for Unprintable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unprintable {}

impl serde::ser::Error for Unprintable {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Made = Result<Option<Node>, Unprintable>;

macro_rules! plain {
    ($($name:ident($type:ty)),+ $(,)?) => {
        $(fn $name(self, value: $type) -> Made {
            Ok(plain(value))
        })+
    };
}

impl Serializer for Tree {
    type Ok = Option<Node>;
    type Error = Unprintable;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Impossible<Option<Node>, Unprintable>;
    type SerializeTupleVariant = Impossible<Option<Node>, Unprintable>;
    type SerializeMap = Keys;
    type SerializeStruct = Keys;
    type SerializeStructVariant = Impossible<Option<Node>, Unprintable>;

    plain! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_f32(f32),
    }

    fn serialize_f64(self, value: f64) -> Made {
        // As JSON, so that a whole number stays a float.
        Ok(plain(serde_json::Value::from(value)))
    }

    fn serialize_char(self, value: char) -> Made {
        Ok(text(&value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Made {
        Ok(text(value))
    }

    fn serialize_bytes(self, _value: &[u8]) -> Made {
        Err(Unprintable::custom("bytes are no value of the language"))
    }

    fn serialize_none(self) -> Made {
        Ok(None)
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Made {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Made {
        Ok(Some(nothing()))
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Made {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Made {
        Ok(text(variant))
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, name: &'static str, value: &T) -> Made {
        let is_first = name == FIRST;
        let made = value.serialize(Self { is_first })?;
        Ok(made.map(|node| match name {
            WORD => as_word(node),
            BOTH => joined(node),
            _ => node,
        }))
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Made {
        value.serialize(self)
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Items, Unprintable> {
        Ok(Items(Vec::new()))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Items, Unprintable> {
        Ok(Items(Vec::new()))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Keys, Unprintable> {
        Ok(Keys {
            is_first: false,
            first: None,
            entries: Vec::new(),
        })
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Keys, Unprintable> {
        Ok(Keys {
            is_first: self.is_first,
            first: None,
            entries: Vec::new(),
        })
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Unprintable> {
        Err(Unprintable::custom(name))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Unprintable> {
        Err(Unprintable::custom(name))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Unprintable> {
        Err(Unprintable::custom(name))
    }
}

/// Returns the word of a map whose only key has no value.
fn as_word(node: Node) -> Node {
    match entries(&node) {
        [(key, value)] if value.is_null() => key.clone(),
        _ => node,
    }
}

/// Returns the map with the keys of both halves.
fn joined(halves: Node) -> Node {
    let Kind::Sequence(halves) = halves.kind else {
        return halves;
    };
    node(Kind::Mapping(halves.iter().flat_map(entries).cloned().collect()))
}

/// Items of a list.
struct Items(Vec<Node>);

impl SerializeSeq for Items {
    type Ok = Option<Node>;
    type Error = Unprintable;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Unprintable> {
        let made = value.serialize(Tree { is_first: false })?;
        self.0.push(made.unwrap_or_else(nothing));
        Ok(())
    }

    fn end(self) -> Made {
        Ok(Some(node(Kind::Sequence(self.0))))
    }
}

impl SerializeTuple for Items {
    type Ok = Option<Node>;
    type Error = Unprintable;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Unprintable> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Made {
        SerializeSeq::end(self)
    }
}

/// Entries of a map.
struct Keys {
    is_first: bool,
    /// The first key of the struct, given or not.
    first: Option<&'static str>,
    entries: Vec<(Node, Node)>,
}

impl SerializeMap for Keys {
    type Ok = Option<Node>;
    type Error = Unprintable;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Unprintable> {
        let made = key.serialize(Tree { is_first: false })?;
        self.entries.push((made.unwrap_or_else(nothing), nothing()));
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Unprintable> {
        let made = value.serialize(Tree { is_first: false })?;
        if let (Some(made), Some((_, value))) = (made, self.entries.last_mut()) {
            *value = made;
        }
        Ok(())
    }

    fn end(self) -> Made {
        Ok(Some(node(Kind::Mapping(self.entries))))
    }
}

impl SerializeStruct for Keys {
    type Ok = Option<Node>;
    type Error = Unprintable;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Unprintable> {
        self.first.get_or_insert(key);
        let made = value.serialize(Tree { is_first: false })?;
        let value = made.map(|value| match value.is_null() {
            true => plain(""),
            false => Some(value),
        });
        self.entries.extend(text(key).zip(value.flatten()));
        Ok(())
    }

    fn end(self) -> Made {
        let is_scalar = |value: &Node| matches!(value.kind, Kind::Scalar { .. });
        match self.entries.as_slice() {
            [(key, value)] if self.is_first && key.text() == self.first && is_scalar(value) => {
                Ok(Some(value.clone()))
            }
            _ => Ok(Some(node(Kind::Mapping(self.entries)))),
        }
    }
}

#[cfg(test)]
mod tests;
