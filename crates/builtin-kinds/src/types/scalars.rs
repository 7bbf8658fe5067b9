//! Numbers, times, bytes and quantities as kube-apiserver decodes and encodes them, with Go's messages for invalid ones.
//!
//! Source: Go `encoding/json`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(super) fn fits<T: TryFrom<i64>>(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| T::try_from(number).is_ok())
}

pub(super) fn bytes(text: &str) -> Result<Value, String> {
    // Line breaks are ignored.
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(&compact) {
        Ok(_) if compact.len() == text.len() => Ok(text.into()),
        Ok(_) => Ok(compact.into()),
        Err(_) => Err(format!(
            "illegal base64 data at input byte {}",
            illegal_byte(&compact)
        )),
    }
}

/// Returns Go's error for text that is not base64.
pub(crate) fn base64_error(text: &str) -> Option<String> {
    bytes(text).err()
}

/// Returns the offset of an error in base64 as Go reports it: the first invalid character, or the start of the last group.
fn illegal_byte(text: &str) -> usize {
    let foreign = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let whole = text.trim_end_matches('=').len() / 4 * 4;
    text.bytes().position(foreign).unwrap_or(whole)
}

/// Checks the format of a time (RFC 3339).
pub(super) fn time(text: &str) -> Result<Value, String> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let layout = "2006-01-02T15:04:05Z07:00";
    let cannot = |at: usize, element: &str| {
        let rest = text.get(at..).unwrap_or_default();
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"")
    };
    for (from, to, element) in [
        (0, 4, "2006"),
        (4, 5, "-"),
        (5, 7, "01"),
        (7, 8, "-"),
        (8, 10, "02"),
        (10, 11, "T"),
        (11, 13, "15"),
        (13, 14, ":"),
        (14, 16, "04"),
        (16, 17, ":"),
        (17, 19, "05"),
    ] {
        let found = if element.len() == 1 {
            bytes.get(from..to) == Some(element.as_bytes())
        } else {
            digits(from, to)
        };
        if !found {
            return Err(cannot(from, element));
        }
    }
    let zone = text[19..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    if zone == "Z" || zone.len() == 6 && zone.starts_with(['+', '-']) {
        Ok(text.into())
    } else {
        let at = text.len() - zone.len();
        Err(cannot(at, "Z07:00"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("not base64", 3)]
    #[case("abc", 0)]
    fn base64_errors_have_the_offset_of_go(#[case] text: &str, #[case] at: usize) {
        assert_eq!(
            bytes(text),
            Err(format!("illegal base64 data at input byte {at}"))
        );
    }
}
