//! Numbers and bytes as kube-apiserver decodes and encodes them, with Go's messages for invalid ones.
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
