//! JSON in the encoding of kube-apiserver (Go `encoding/json`).

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::Formatter;

/// Initial capacity of the buffer: enough for a small object.
const SHORT_TEXT: usize = 1000;

/// Encodes a value as Go's `encoding/json` does: compact, `<`, `>`, `&`, U+2028 and U+2029 escaped, no newline at the end.
pub fn encode_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(SHORT_TEXT);
    write_json(value, &mut out);
    out
}

fn write_json<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let mut serializer = serde_json::Serializer::with_formatter(out, GoFormatter);
    value
        .serialize(&mut serializer)
        .expect("a JSON value with string keys always serializes into memory");
}

/// Encodes a tree as [`encode_json`] does. Trees are encoded often: text without characters to escape, the common case, is
/// copied.
pub(super) fn encode_value(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(SHORT_TEXT);
    write_value(value, &mut out);
    out
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            let mut before = b'[';
            for item in items {
                out.push(before);
                write_value(item, out);
                before = b',';
            }
            if items.is_empty() {
                out.push(before);
            }
            out.push(b']');
        }
        Value::Object(entries) => {
            let mut before = b'{';
            for (key, value) in entries {
                out.push(before);
                write_text(key, out);
                out.push(b':');
                write_value(value, out);
                before = b',';
            }
            if entries.is_empty() {
                out.push(before);
            }
            out.push(b'}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => write_json(value, out),
    }
}

/// Length of a text from which a vectorised search costs less than a table.
const LONG_TEXT: usize = 32;

/// Whether Go escapes the character that begins with this byte, or JSON requires it.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        escaped[byte] = is_escaped(byte as u8);
        byte += 1;
    }
    escaped
};

const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, b'"' | b'\\') || is_escaped_by_go(byte)
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    let any = match text.len() {
        // Without an early exit the loop is unrolled.
        ..LONG_TEXT => text
            .bytes()
            .fold(false, |any, byte| any | ESCAPED[usize::from(byte)]),
        LONG_TEXT.. => any_byte(text, is_escaped),
    };
    if any {
        write_json(text, out);
    } else {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    }
}

/// Returns whether Go escapes the character that begins with `byte` although JSON does not require it. U+2028 and U+2029
/// begin with 0xE2, as other characters do.
const fn is_escaped_by_go(byte: u8) -> bool {
    matches!(byte, b'<' | b'>' | b'&' | 0xE2)
}

/// Returns whether any byte of `text` matches. Without an early exit the compiler vectorises the loop, and a match is rare.
fn any_byte(text: &str, matches: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |any, byte| any | matches(byte))
}

/// Encodes a value as [`encode_json`] does, indented by two spaces (`pretty`).
pub fn encode_json_indented<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value)
        .expect("a JSON value with string keys always serializes into memory");
    // These characters occur only inside strings.
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
        .into_bytes()
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if !any_byte(fragment, is_escaped_by_go) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, special) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let character = special
                .chars()
                .next()
                .expect("find gave the position of a character");
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = &special[character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{encode_json, encode_value};

    #[test]
    fn trees_and_other_values_encode_alike() {
        let tree = json!({
            "plain": "text", "empty": "", "quoted \"": "a \\ \n \u{1}\u{7f}", "html": "<&>", "é": "\u{2028}\u{201c}",
            "list": [null, true, -1, 1.5, u64::MAX, [], {}], "map": {"": {}},
        });
        let (written, expected) = (encode_value(&tree), encode_json(&tree));
        assert_eq!(
            String::from_utf8_lossy(&written),
            String::from_utf8_lossy(&expected)
        );
    }
}
