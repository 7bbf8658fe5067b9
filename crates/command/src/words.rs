//! Shell quoting, durations in the format of scenario files, and sizes.

use std::time::Duration;

use fake_apiserver::scenario::duration;

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Parses a duration in the format of scenario files: `250ms`, `5s`, `2m`, `1h`.
///
/// # Errors
///
/// The text is not a duration.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "expected a whole number and a unit (ms, s, m or h), such as 5s".to_owned())
}

/// Parses a size in bytes: `500kB`, `64MiB`, `1GiB`.
///
/// # Errors
///
/// The text is not a size, or zero.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: Option<u64> = match unit {
        "kB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let bytes = factor.and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        "expected a whole number and a unit (kB, MB, GB, KiB, MiB or GiB), such as 64MiB".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("64MiB"), size("5kB")), (Ok(64 << 20), Ok(5_000)));
        for wrong in ["", "5", "0MiB", "MiB", "99999999999GiB", "1mib"] {
            assert!(
                size(wrong).is_err_and(|error| error.contains("such as 64MiB")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn durations_are_those_of_scenario_files() {
        assert_eq!(span("1h"), Ok(Duration::from_secs(3_600)));
        assert!(span("5").is_err_and(|error| error.contains("ms, s, m or h")));
    }
}
