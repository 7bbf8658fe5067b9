//! Values as flow YAML, in the part of it that scenario files have: plain where a reader needs no quotes.

use std::fmt::Write as _;

use serde_json::Value;

/// Words that YAML or a reader may take for something else than a text.
const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Returns a value on one line: `{name: a, data: {k: "1"}}`.
pub(crate) fn flow(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Returns a text as a scalar: plain, or in double quotes.
pub(crate) fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_reserved = RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word));
    if starts && text.chars().all(plain) && !is_reserved {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(string) => text.push_str(&scalar(string)),
        Value::Array(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (nth, (name, value)) in fields.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                text.push_str(&scalar(name));
                text.push_str(": ");
                write(value, text);
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_that_could_be_misread_are_quoted() {
        let value = json!({ "a-b/c.d": "x", "n": "no", "one": "1", "s": "a: b", "c": "\u{7}\n\"", "e": "", "l": [1, null, true] });
        assert_eq!(
            flow(&value),
            r#"{a-b/c.d: x, "n": "no", one: "1", s: "a: b", c: "\u0007\n\"", e: "", l: [1, null, true]}"#
        );
    }
}
