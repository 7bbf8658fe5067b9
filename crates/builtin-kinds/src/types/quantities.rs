//! Quantities: canonical form, value, sum and difference.
//!
//! It must not know resources.
//!
//! Source: apimachinery `api/resource/quantity.go`.

use serde_json::Value;

/// Returns the canonical form of a quantity; digits below 10^`finest` are rounded up. A number is formatted as a string.
pub(super) fn quantity(value: &Value, finest: i32) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    if is_quantity(&text) {
        Ok(canonical_quantity(&text, finest).into())
    } else {
        Err(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        )
    }
}

/// Returns the value of a quantity in billionths, the finest unit; 0 if it is invalid.
pub fn amount(text: &str) -> i128 {
    let (number, suffix) = split(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(digits) = format!("{whole}{fraction}").parse::<i128>() else {
        return 0;
    };
    let (digits, exponent) = match BINARY.iter().position(|known| *known == suffix) {
        Some(power) => (digits.saturating_mul(1 << (10 * (power + 1))), 0),
        None => match decimal_exponent(suffix) {
            Some(exponent) => (digits, exponent),
            None => (
                digits,
                suffix.get(1..).and_then(|text| text.parse().ok()).unwrap_or(0),
            ),
        },
    };
    let exponent = exponent.saturating_add(9 - i32::try_from(fraction.len()).unwrap_or(0));
    let factor = 10_i128.saturating_pow(exponent.unsigned_abs());
    if exponent < 0 {
        digits / factor + i128::from(digits % factor > 0)
    } else {
        digits.saturating_mul(factor)
    }
}

/// Returns the sum of quantities, in the format of the first.
pub fn sum<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let (mut total, mut form) = (0_i128, "");
    for text in texts {
        if total == 0 {
            form = text;
        }
        total = total.saturating_add(amount(text));
    }
    let whole = total / UNIT;
    if form.ends_with('i') && total % UNIT == 0 {
        binary_quantity("", whole, "", 0)
    } else {
        canonical_quantity(&format!("{total}n"), -9)
    }
}

/// Returns a quantity minus another one, in the format of the former; at least 0.
pub fn difference(text: &str, less: &str) -> String {
    let left = amount(text).saturating_sub(amount(less));
    match left {
        ..=0 => "0".to_owned(),
        left if text.ends_with('i') && left % UNIT == 0 => binary_quantity("", left / UNIT, "", 0),
        left => canonical_quantity(&format!("{left}n"), -9),
    }
}

/// Billionths per unit.
const UNIT: i128 = 1_000_000_000;

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Splits a quantity into its number and suffix.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')));
    text.split_at(end.unwrap_or(text.len()))
}

/// Returns the exponent of a decimal suffix; `None` for a suffix with an explicit exponent.
fn decimal_exponent(suffix: &str) -> Option<i32> {
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => return None,
    };
    Some(exponent)
}

/// Returns the canonical form: the largest suffix with an integer (`Quantity.CanonicalizeBytes`).
fn canonical_quantity(text: &str, finest: i32) -> String {
    let (number, suffix) = split(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(mut mantissa) = format!("{whole}{fraction}").parse::<i128>() else {
        return text.to_owned();
    };
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return binary_quantity(text, mantissa, fraction, power + 1);
    }
    // The format with an exponent is kept.
    let Some(exponent) = decimal_exponent(suffix) else {
        return text.to_owned();
    };
    let mut exponent = exponent - i32::try_from(fraction.len()).unwrap_or(0);
    if mantissa == 0 {
        return "0".to_owned();
    }
    while exponent < finest {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 > 0);
        exponent += 1;
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 || exponent > 18 {
        let Some(more) = mantissa.checked_mul(10) else {
            return text.to_owned();
        };
        mantissa = more;
        exponent -= 1;
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
    // Small numbers without a binary factor are formatted as decimal.
    format!("{bytes}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
}

/// Returns whether the text is a quantity.
pub(crate) fn is_quantity(text: &str) -> bool {
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
    #[case(
        "17014118346046923173168730371588410572.7",
        "17014118346046923173168730371588410572.7"
    )]
    fn quantities_have_one_form(#[case] sent: &str, #[case] kept: &str) {
        assert_eq!(quantity(&sent.into(), -9), Ok(kept.into()));
    }

    #[rstest]
    #[case("0.0001", "1m")]
    #[case("1500u", "2m")]
    #[case("3n", "1m")]
    fn amounts_of_resources_are_rounded_up(#[case] sent: &str, #[case] kept: &str) {
        assert_eq!(quantity(&sent.into(), -3), Ok(kept.into()));
    }

    #[rstest]
    #[case("1", UNIT)]
    #[case("0.5", UNIT / 2)]
    #[case("1500m", UNIT * 3 / 2)]
    #[case("1.5Ki", UNIT * 1536)]
    #[case("2e3", UNIT * 2000)]
    #[case("1E", UNIT * 1_000_000_000_000_000_000)]
    #[case("1e2147483647", i128::MAX)]
    #[case("1e-2147483648", 1)]
    #[case("5\u{e4}", 5 * UNIT)]
    #[case("", 0)]
    fn quantities_can_be_compared(#[case] text: &str, #[case] billionths: i128) {
        assert_eq!(amount(text), billionths);
    }

    #[rstest]
    #[case(&["1", "500m"], "1500m")]
    #[case(&["512Mi", "512Mi"], "1Gi")]
    #[case(&["1Gi", "1M"], "1074741824")]
    #[case(&["0", "1Ki"], "1Ki")]
    #[case(&["1e30", "1e30"], "170141183460469231731687303715884105727n")]
    #[case(&[], "0")]
    fn quantities_are_added(#[case] texts: &[&str], #[case] total: &str) {
        assert_eq!(sum(texts.iter().copied()), total);
    }

    #[rstest]
    #[case("1500m", "500m", "1")]
    #[case("1Gi", "512Mi", "512Mi")]
    #[case("2", "3", "0")]
    #[case("3", "0", "3")]
    fn quantities_are_subtracted(#[case] text: &str, #[case] less: &str, #[case] left: &str) {
        assert_eq!(difference(text, less), left);
    }
}
