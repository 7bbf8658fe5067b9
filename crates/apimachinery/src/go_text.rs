//! Texts of Go's standard library that reach the wire inside messages: quoting, errors of number parsing, durations.

use serde_json::Value;

use crate::depth::TOO_DEEP;

/// Quotes text as `%q` does (`strconv.Quote`).
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            plain if is_printable(plain) => quoted.push(plain),
            other => {
                let code = u32::from(other);
                let escape = match code {
                    ..0x80 => format!("\\x{code:02x}"),
                    0x80..0x10000 => format!("\\u{code:04x}"),
                    0x10000.. => format!("\\U{code:08x}"),
                };
                quoted.push_str(&escape);
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns whether a character is printable, as Go's `unicode.IsPrint` does: not a control or format character, and no space
/// but the ASCII one.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    // At the start of a text, combining characters would be escaped too.
    let text = String::from_iter(['a', character]);
    text.escape_debug().eq(text.chars())
}

/// Formats a JSON value as `%v` does after decoding in Go: `map[a:1 b:[x y]]`.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(name, value)| format!("{name}:{}", self::value(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Returns the type of a JSON value as messages name it.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Parses an unsigned integer (`strconv.ParseUint(text, 10, 64)`). The error is Go's.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        Ok(_) | Err(_) => Err(number_error("ParseUint", text, digits)),
    }
}

/// Parses an integer (`strconv.ParseInt(text, 10, 64)`). The error is Go's.
pub fn parse_int(text: &str) -> Result<i64, String> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| number_error("ParseInt", text, digits))
}

fn number_error(function: &str, text: &str, digits: bool) -> String {
    let fault = if digits {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.{function}: parsing {}: {fault}", quote(text))
}

/// Checks that the text is a duration (`time.ParseDuration`). The error is Go's.
pub fn check_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let number = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .len();
        let digits = rest[..number].bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 || number - digits > 1 {
            return Err(invalid());
        }
        rest = &rest[number..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        match &rest[..unit] {
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            other => {
                return Err(format!(
                    "time: unknown unit {} in duration {}",
                    quote(other),
                    quote(text)
                ));
            }
        }
        rest = &rest[unit..];
    }
    Ok(())
}

/// Returns the literal that is wrong at this byte, and the byte that is expected there.
fn broken_literal(text: &[u8], at: usize) -> Option<(&'static str, char)> {
    ["null", "true", "false"].into_iter().find_map(|literal| {
        let right = (1..literal.len()).find(|length| {
            let from = at.checked_sub(*length);
            from.is_some_and(|from| text[from..at] == literal.as_bytes()[..*length])
        })?;
        literal.chars().nth(right).map(|next| (literal, next))
    })
}

/// Returns the error of `encoding/json` for text that is not JSON; `error` is the error of serde_json for the same text.
pub fn json_error(text: &[u8], error: &serde_json::Error) -> String {
    let lines = text.split(|byte| *byte == b'\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(|line| line.len() + 1)
        .sum();
    let at = (before + error.column()).saturating_sub(1);
    let Some(&byte) = text.get(at).filter(|_| !error.is_eof()) else {
        return "unexpected end of JSON input".to_owned();
    };
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        byte => {
            let quoted = quote(&char::from(byte).to_string());
            quoted[1..quoted.len() - 1].to_owned()
        }
    };
    let found = error.to_string();
    if found.starts_with("expected ident")
        && let Some((literal, next)) = broken_literal(text, at)
    {
        return format!("invalid character '{shown}' in literal {literal} (expecting '{next}')");
    }
    let place = [
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        (
            "key must be a string",
            "looking for beginning of object key string",
        ),
        ("trailing comma", "looking for beginning of object key string"),
        ("trailing characters", "after top-level value"),
        ("control character", "in string literal"),
        ("invalid escape", "in string escape code"),
        ("recursion limit exceeded", TOO_DEEP),
    ]
    .into_iter()
    .find(|(theirs, _)| found.starts_with(theirs))
    .map_or("looking for beginning of value", |(_, go)| go);
    format!("invalid character '{shown}' {place}")
}
