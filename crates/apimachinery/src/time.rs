//! Timestamps of the API.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

/// Epoch of all times.
const UNIX_EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Formats a time since 1970 as RFC 3339, in whole seconds. Times after the year 9999 are clamped to its last second.
pub fn timestamp(time: Duration) -> String {
    timestamp_at(time.as_secs().try_into().unwrap_or(i64::MAX))
}

/// Formats seconds since 1970, possibly negative, as RFC 3339. Times outside the years -9999 to 9999 are clamped to the first
/// or last second.
pub fn timestamp_at(seconds: i64) -> String {
    let time = UNIX_EPOCH.saturating_add(SignedDuration::from_secs(seconds));
    let Ok(year) = u32::try_from(time.year()) else {
        return format!("{time:.0}Z");
    };
    // Every write has two of them, and formatting costs six times as much.
    let mut text = *b"1970-01-01T00:00:00Z";
    text[..4].copy_from_slice(&[year / 1000, year / 100 % 10, year / 10 % 10, year % 10].map(digit));
    let rest = [
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
    ];
    for (place, number) in text[5..].chunks_mut(3).zip(rest) {
        let number = u32::from(number.unsigned_abs());
        place[..2].copy_from_slice(&[number / 10, number % 10].map(digit));
    }
    String::from_utf8(text.to_vec()).expect("digits are ASCII")
}

/// Parses an RFC 3339 time, possibly with a fraction, as the time since 1970; `None` if it is none, or an earlier one.
pub fn parsed(text: &str) -> Option<Duration> {
    let time: Timestamp = text.parse().ok()?;
    time.duration_since(Timestamp::UNIX_EPOCH).try_into().ok()
}

/// Returns a number below 10 as ASCII.
fn digit(number: u32) -> u8 {
    b"0123456789"[number as usize % 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_whole_seconds() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (-62_167_219_201, "-000001-12-31T23:59:59Z"),
            (1_795_745_045, "2026-11-27T02:04:05Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(timestamp_at(seconds), expected);
        }
    }

    #[test]
    fn times_are_parsed_with_their_fractions() {
        let whole = Duration::from_secs(1_709_208_000);
        for (text, expected) in [
            ("2024-02-29T12:00:00Z", Some(whole)),
            (
                "2024-02-29T12:00:00.000250Z",
                Some(whole + Duration::from_micros(250)),
            ),
            ("2024-02-29T14:00:00+02:00", Some(whole)),
            ("1969-12-31T23:59:59Z", None),
            ("2023-02-29T12:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn fractions_are_truncated() {
        assert_eq!(timestamp(Duration::from_millis(1_999)), "1970-01-01T00:00:01Z");
        assert_eq!(timestamp(Duration::MAX), "9999-12-31T23:59:59Z");
    }
}
