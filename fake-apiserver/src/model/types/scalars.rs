//! Numbers, times, bytes and quantities as a real server reads and writes them, and Go's words for what is none.
//!
//! Source: Go `encoding/json`; apimachinery `api/resource/quantity.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(super) fn fits<T: TryFrom<i64>>(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| T::try_from(number).is_ok())
}

pub(super) fn bytes(text: &str) -> Result<Value, String> {
    // Line breaks are passed over.
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

/// Where Go finds fault with what is no base64: at the first foreign character, or where the last group begins.
fn illegal_byte(text: &str) -> usize {
    let foreign = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let whole = text.trim_end_matches('=').len() / 4 * 4;
    text.bytes().position(foreign).unwrap_or(whole)
}

/// RFC 3339, as far as a typing error would break it.
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

/// A quantity as the server writes it: a number as text, otherwise as it came.
pub(super) fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    if is_quantity(&text) {
        Ok(canonical_quantity(&text).into())
    } else {
        Err(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        )
    }
}

/// How much a quantity is, for comparing; 0 where there is none.
pub(crate) fn amount(text: &str) -> f64 {
    let (number, suffix) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let number: f64 = number.parse().unwrap_or_default();
    let thousands = |base: f64, letters: &str| {
        let power = suffix.chars().next().and_then(|letter| letters.find(letter));
        power.map(|power| base.powi(i32::try_from(power).unwrap_or_default() + 1))
    };
    let binary = suffix.ends_with('i');
    let unit = match suffix {
        "" => Some(1.0),
        "n" => Some(1e-9),
        "u" => Some(1e-6),
        "m" => Some(1e-3),
        _ if is_exponent(suffix) => return text.parse().unwrap_or_default(),
        _ if binary => thousands(1024.0, "KMGTPE"),
        _ => thousands(1000.0, "kMGTPE"),
    };
    number * unit.unwrap_or_default()
}

/// The largest suffix that leaves a whole number, as `Quantity.CanonicalizeBytes` has it.
fn canonical_quantity(text: &str) -> String {
    let digits_end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(mut mantissa) = format!("{whole}{fraction}").parse::<i128>() else {
        return text.to_owned();
    };
    let mut exponent = -i32::try_from(fraction.len()).unwrap_or(0);
    if let Some(power) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .iter()
        .position(|known| *known == suffix)
    {
        return binary_quantity(text, mantissa, fraction, power + 1);
    }
    exponent += match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        "" => 0,
        // Written with an exponent, it stays so.
        _ => return text.to_owned(),
    };
    if mantissa == 0 {
        return "0".to_owned();
    }
    // Nothing is finer than nano; what is, is rounded up.
    while exponent < -9 {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 > 0);
        exponent += 1;
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    while exponent > 18 {
        mantissa *= 1000;
        exponent -= 3;
    }
    let suffix = match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    format!("{mantissa}{suffix}")
}

fn binary_quantity(text: &str, mantissa: i128, fraction: &str, power: usize) -> String {
    let power = u32::try_from(power).unwrap_or(0);
    let scale = 10_i128.pow(u32::try_from(fraction.len().min(18)).unwrap_or(0));
    let Some(bytes) = mantissa.checked_mul(1024_i128.pow(power)) else {
        return text.to_owned();
    };
    if bytes % scale != 0 {
        return text.to_owned();
    }
    let mut bytes = bytes / scale;
    if bytes == 0 {
        return "0".to_owned();
    }
    let mut power = 0;
    while bytes % 1024 == 0 && power < 6 {
        bytes /= 1024;
        power += 1;
    }
    // Small numbers without a binary factor are written as decimal ones.
    format!("{bytes}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
}

/// Is this text a quantity?
fn is_quantity(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &rest[..rest.len() - digits.len()];
    number.chars().any(|c| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (SUFFIXES.contains(&digits) || is_exponent(digits))
}

const SUFFIXES: [&str; 17] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "K",
];

fn is_exponent(text: &str) -> bool {
    let Some(digits) = text.strip_prefix(['e', 'E']) else {
        return false;
    };
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1000m", "1")]
    #[case("0.5", "500m")]
    #[case("1500m", "1500m")]
    #[case("1024Ki", "1Mi")]
    #[case("1.5Gi", "1536Mi")]
    #[case("100Mi", "100Mi")]
    #[case("1000k", "1M")]
    #[case("0", "0")]
    #[case("1e3", "1e3")]
    #[case("10", "10")]
    fn quantities_have_one_form(#[case] sent: &str, #[case] kept: &str) {
        assert_eq!(quantity(&sent.into()), Ok(kept.into()));
    }

    #[rstest]
    #[case("not base64", 3)]
    #[case("abc", 0)]
    fn base64_is_blamed_where_go_blames_it(#[case] text: &str, #[case] at: usize) {
        assert_eq!(
            bytes(text),
            Err(format!("illegal base64 data at input byte {at}"))
        );
    }
}
